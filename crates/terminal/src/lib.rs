//! The interactive CLI in tmux.
