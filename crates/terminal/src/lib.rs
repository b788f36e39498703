//! The interactive CLI in tmux: launched, watched, fed, read and ended.
//!
//! ```no_run
//! # fn main() -> Result<(), alhena_terminal::TerminalError> {
//! use std::time::Duration;
//! use alhena_terminal::{Force, Launch, Options, Terminals, Until};
//!
//! let terminals = Terminals::open(Options::default())?;
//! let agent = terminals.launch(Launch::default())?;
//! agent.send("Why does the test fail?", Force::No)?;
//! agent.wait(Until::Completed, Duration::from_secs(600))?;
//! println!("{}", agent.last_answer()?.text);
//! agent.exit(Duration::from_secs(10))?;
//! # Ok(()) }
//! ```

mod answer;
mod attach;
mod control;
mod ending;
mod equip;
mod error;
mod here;
mod launch;
pub mod loan;
pub mod mcp;
mod orders;
pub mod pane;
pub mod profile;
pub mod screen;
mod store;
mod terminal;
mod terminals;
mod tmux;
mod typing;

pub use answer::{Answer, Source};
pub use ending::Exit;
pub use error::{TerminalError, TerminalErrorKind};
pub use here::here;
pub use launch::{Launch, Unready};
pub use store::{Ended, Phase, Record};
pub use terminal::{Look, Terminal, Until, status_name};
pub use terminals::{Options, SERVER, Terminals};
pub use typing::{Force, Sent};

/// Tells every process in a terminal which one it is in; the name is CAO's, whose tools look for it.
pub const TERMINAL_ID: &str = mcp::CAO_TERMINAL_ID;
