//! `alhena terminal answer`.

use std::process::ExitCode;

use alhena::terminal::{TerminalError, Terminals};

/// Answer a dialog of an agent: an approval, a question.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// The number of an option, the beginning of its label, or a text where one is asked for.
    answer: String,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let reading = terminal.answer(&args.answer)?;
    super::print_reading(&terminal, reading, json)
}
