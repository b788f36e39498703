//! The interactive CLI in tmux: launched, watched, fed, read and ended.
//!
//! ```no_run
//! # fn main() -> Result<(), alhena_terminal::TerminalError> {
//! use std::time::Duration;
//! use alhena_terminal::{Force, Launch, Options, Terminals, Until};
//!
//! let terminals = Terminals::open(Options::default())?;
//! let agent = terminals.launch(Launch::default())?;
//! agent.send("Why does the test fail?", Force::OnlyWhenReady)?;
//! agent.wait(Until::Completed, Duration::from_secs(600))?;
//! println!("{}", agent.last_answer()?.text);
//! agent.exit(Duration::from_secs(10))?;
//! # Ok(()) }
//! ```

mod answer;
mod answering;
mod ask;
mod borrowed;
mod command_line;
mod control;
mod ending;
mod equip;
mod error;
mod hosted;
mod known_command;
mod launch;
mod limit;
mod log;
pub mod mcp;
mod notify;
#[doc(hidden)]
pub mod pane;
mod post;
pub mod profile;
pub mod screen;
mod session_turn;
mod state;
mod store;
mod terminal;
mod terminals;
mod tmux;
mod turn;
mod typing;
#[doc(hidden)]
pub mod watcher;
mod window;
mod wording;

pub use answer::{Answer, Source};
pub use answering::Reply;
pub use ask::Asked;
pub use ending::Exit;
pub use error::{TerminalError, TerminalErrorKind, WAITING};
pub use hosted::{Hosted, here};
pub use launch::{Launch, Unready};
pub use log::LogEntry;
pub use store::{Cause, Phase, Record, TerminalEnd};
pub use terminal::{CapturedPane, Terminal, Until, status_name};
pub use terminals::{Described, Listed, Options, SERVER, Terminals};
pub use turn::{How, TurnEnd, TurnNote, TurnRecord};
pub use typing::{Force, Sent};
pub use window::{Layout, usual_tmux_conf};
pub use wording::At;

/// What `GEMINI_CLI_HOME` said where a terminal was launched; in it, the variable names the terminal's own home.
pub const OUTER_GEMINI_HOME: &str = alhena_agent::env::ALHENA_OUTER_GEMINI_HOME;

/// The same for `TMPDIR`.
pub const OUTER_TMPDIR: &str = alhena_agent::env::ALHENA_OUTER_TMPDIR;

/// Tells every process in a terminal which one it is in; the name is CAO's, whose tools look for it.
pub const TERMINAL_ID: &str = mcp::CAO_TERMINAL_ID;
