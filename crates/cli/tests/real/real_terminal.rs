//! Interactive agents: the real CLI in real tmux, against the scripted API.
//!
//! Every test has a tmux server of its own, which is gone in the end.

mod answers;
mod commands;
mod dialogs;
mod endings;
mod launching;
mod matrix;
pub mod place;
mod releases;
mod soak;
mod states;
mod turns;
mod typing;
