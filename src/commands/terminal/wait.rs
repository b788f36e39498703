//! `alhena terminal wait`.

use std::process::ExitCode;
use std::time::Duration;

use alhena::terminal::screen::Status;
use alhena::terminal::{TerminalError, Terminals, Until};

use crate::limit::time;

/// Wait until an agent does something; exits 1 when its turn ended with an error, 124 when the time is up.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// What to wait for: idle, completed, waiting, processing, exited, or settled (anything that is somebody's turn).
    #[arg(long, value_name = "STATUS", default_value = "settled")]
    until: Until,
    /// How long.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    timeout: Duration,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let reading = terminal.wait(args.until, args.timeout)?;
    let failed = reading.status == Status::Error;
    let printed = super::print_reading(&terminal, reading, json)?;
    Ok(if failed { ExitCode::FAILURE } else { printed })
}
