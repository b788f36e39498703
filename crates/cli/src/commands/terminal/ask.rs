//! `alhena terminal ask`.

use std::process::ExitCode;
use std::time::Duration;

use alhena_terminal::{Asked, At, Force, Sent, Terminal, TerminalError, Terminals};

use super::message::{self, Message};
use crate::output::{print, print_json, say};
use alhena_model::options::time;

/// Send a message to an agent, wait for the end of its turn, and print its answer.
///
/// Exits 0 with a whole answer, 1 when there is none or it is not whole (empty, blocked, cut off, an error), 10 when the agent
/// waits for somebody to answer, 124 when the time is up, 130 when somebody interrupted it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    #[command(flatten)]
    message: Message,
    /// Send it although the agent works (the CLI queues it), and throw away an unsent text.
    #[arg(long)]
    force: bool,
    /// Let @path add files, as for somebody who types it.
    #[arg(long)]
    at_files: bool,
    /// How long it may take.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    timeout: Duration,
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let force = if args.force { Force::Anyway } else { Force::OnlyWhenReady };
    let at = if args.at_files { At::Files } else { At::Text };
    let tell = |sent: &Sent| {
        if !json {
            message::tell(sent)
        }
    };
    let asked = terminal.ask(&args.message.read()?, (force, at), args.timeout, tell)?;
    let printed = if json { print_json(&asked) } else { told(&terminal, &asked) };
    Ok(match asked.exit_status() {
        0 => printed,
        code => ExitCode::from(code),
    })
}

fn told(terminal: &Terminal, asked: &Asked) -> ExitCode {
    let printed = asked.text.as_deref().map_or(ExitCode::SUCCESS, |text| print(&super::shown(text)));
    if let Some(waiting) = &asked.waiting_for {
        say(super::question(waiting));
        say(super::how_to_answer(terminal, waiting));
    } else if let Some(warning) = &asked.warning {
        say(format_args!("warning: {warning}"));
    }
    printed
}
