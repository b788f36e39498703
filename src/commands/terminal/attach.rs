//! `alhena terminal attach`.

use std::process::ExitCode;

use alhena::terminal::{TerminalError, Terminals};

/// Show a terminal in this one, to watch and to type; ^B D leaves it running.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
}

pub fn execute(args: &Args, terminals: &Terminals) -> Result<ExitCode, TerminalError> {
    let status = terminals.find(&args.terminal)?.attach()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
