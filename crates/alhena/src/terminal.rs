//! The interactive CLI in tmux.

pub use alhena_terminal::mcp::McpScope;
pub use alhena_terminal::profile::{Places, Profile, ProfileBy, ProfileError};
pub use alhena_terminal::screen;
pub use alhena_terminal::{
    Answer, Asked, CapturedPane, Cause, Described, Exit, Force, Hosted, How, Launch, Layout, Listed,
    LogEntry, Options, Phase, Record, Reply, Sent, Source, Terminal, TerminalEnd, TerminalError,
    TerminalErrorKind, Terminals, TurnEnd, TurnNote, TurnRecord, Unready, Until, here,
};
