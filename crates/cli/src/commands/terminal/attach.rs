//! `alhena terminal attach`.

use std::process::ExitCode;

use alhena_terminal::{TerminalError, Terminals};

use super::needs_terminal;
use crate::signals::Interrupts;

/// Show a terminal in this one, to watch and to type; ^B D leaves it running.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
}

pub fn execute(args: &Args, terminals: &Terminals) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    needs_terminal("attach", &terminal.command_line("read", &["--screen"]))?;
    // Whoever closes their window ends tmux's client, and whoever is told to end does; the agent's window gets its size back
    // after that.
    let interrupts = Interrupts::catch();
    let status = terminal.attach(|| interrupts.caught().is_some())?;
    Ok(match interrupts.caught() {
        Some(_) => ExitCode::from(130),
        None => ExitCode::from(u8::from(!status.success())),
    })
}
