//! The interactive CLI in tmux.

pub mod loan;
pub mod mcp;
pub mod profile;
pub mod screen;
