//! The interactive CLI in tmux.

pub mod screen;
