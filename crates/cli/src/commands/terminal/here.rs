//! `alhena terminal here`.

use std::process::ExitCode;

use alhena_agent::env::Environment;
use alhena_terminal::{TerminalError, here};

use super::launch;
use crate::output::say;

/// Run an interactive agent in this terminal, until it ends.
///
/// For those who have a terminal of their own for it. It gets a home of its own as `launch` gives it, and when it ends, or
/// the terminal is closed, none of its processes is left.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// What others call this terminal; MCP servers learn it as CAO_TERMINAL_ID.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    launch: launch::Args,
}

pub fn execute(args: Args) -> Result<ExitCode, TerminalError> {
    here(launch::launch(args.launch)?, args.id, &Environment::of_process(), &|text| say(text))
        .map(ExitCode::from)
}
