//! Interactive agents: the real CLI in real tmux, against the scripted API.
//!
//! Every test has a tmux server of its own, which is gone in the end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod answers;
mod commands;
mod dialogs;
mod endings;
mod launching;
mod many;
mod matrix;
mod place;
mod releases;
mod soak;
mod states;
mod truth;
mod turns;
mod typing;
