//! The watcher: one process per tmux server that holds the only control-mode connection and answers everybody else.
//!
//! tmux 3.3a's server crashes when control clients connect and disconnect at the same time, and takes every agent with it:
//! two loops of a command that was such a client ended it within seconds. So there is one, and it stays. It starts with the
//! first terminal (whichever command needs it and finds none starts it), ends with the last one, and keeps nothing that is
//! not on disk: when it is killed, the next command starts another. What ends it is that tmux ends the connection.

mod board;
mod client;
mod serve;
mod wire;

pub(crate) use self::client::{Client, Ground, connect};
pub use self::serve::serve;
