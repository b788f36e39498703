//! Who agents are and how they work together: profiles, MCP servers and supervisors, on the real CLI in real tmux.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod asking;
mod back;
mod here;
mod logs;
mod lying;
mod person;
#[allow(dead_code)]
#[path = "../real_terminal/place.rs"]
mod place;
mod post;
mod profiles;
mod team;
mod top;
