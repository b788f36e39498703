//! The binary without the real CLI: its commands, stand-ins in the place of Gemini CLI, the server, and workers.
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

mod cli;
mod hostile_batch;
mod hostile_floods;
mod hostile_keeper;
mod hostile_run;
mod queue;
mod serve;
mod stops;
