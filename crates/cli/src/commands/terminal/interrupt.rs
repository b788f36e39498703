//! `alhena terminal interrupt`.

use std::process::ExitCode;
use std::time::Duration;

use alhena_terminal::{TerminalError, Terminals};

use alhena_model::options::time;

/// Interrupt what an agent does, and wait until it takes a prompt again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// How long it may take.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    timeout: Duration,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let reading = terminal.interrupt(args.timeout)?;
    super::print_reading(&terminal, reading, json)
}
