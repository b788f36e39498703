//! `alhena terminal exit` and `alhena terminal kill`.

use std::process::ExitCode;
use std::time::Duration;

use alhena_terminal::{Exit, TerminalError, Terminals};

use crate::output::{print, print_json};
use alhena_model::options::time;

/// Ask an agent to leave, end what does not, and put the terminal away.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// How long it may take to leave by itself.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    timeout: Duration,
}

/// End an agent and everything that it started at once, and put the terminal away.
#[derive(Debug, clap::Args)]
pub struct KillArgs {
    /// The terminal, by its name or id.
    terminal: String,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    Ok(told(&terminals.find(&args.terminal)?.exit(args.timeout)?, json))
}

pub fn kill(args: &KillArgs, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    Ok(told(&terminals.find(&args.terminal)?.kill()?, json))
}

fn told(exit: &Exit, json: bool) -> ExitCode {
    if json {
        return print_json(exit);
    }
    match exit.ended.sessions.last() {
        Some(session) => print(&format!("The session is in {}", session.display())),
        None => ExitCode::SUCCESS,
    }
}
