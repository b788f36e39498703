//! Everything on the real CLI, against the scripted API. `cargo xtask test --quick` leaves this binary out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../fleet/mod.rs"]
mod fleet;
#[path = "../lab/mod.rs"]
mod lab;
#[path = "../serve_client/mod.rs"]
mod serve_client;

mod real_acp;
mod real_acp_agent;
mod real_asked;
mod real_batch;
mod real_budget;
mod real_cassette;
mod real_chat;
mod real_confirm;
mod real_conversation;
mod real_files;
mod real_hooks;
mod real_hosts;
mod real_lossless;
mod real_mock;
mod real_offline;
mod real_page;
mod real_pool;
mod real_prompt;
mod real_queue;
mod real_rate_limit;
mod real_run;
mod real_schema;
mod real_serve;
mod real_sessions;
mod real_stops;
mod real_terminal;
mod real_terminal_people;
mod real_tour;
mod real_trust;
