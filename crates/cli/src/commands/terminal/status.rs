//! `alhena terminal status`.

use std::process::ExitCode;

use alhena_terminal::{TerminalError, Terminals};

/// Tell what an agent does: starting, idle, processing, completed, waiting, error, exited.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let reading = terminal.status()?;
    super::print_reading(&terminal, reading, json)
}
