//! `alhena terminal send`.

use std::process::ExitCode;

use alhena::terminal::{Force, TerminalError, Terminals};

use super::message::Message;
use crate::output::{print_json, say};

/// Send a message to an agent, and wait until it has taken it.
///
/// A message is text of any content. What the CLI understands in it is still understood: `@path` adds a file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    #[command(flatten)]
    message: Message,
    /// Send it although the agent works (the CLI queues it), and throw away an unsent text.
    #[arg(long)]
    force: bool,
    /// It is a command of the CLI's own, such as /compress.
    #[arg(long)]
    command: bool,
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let text = args.message.read()?;
    let force = if args.force { Force::Yes } else { Force::No };
    let sent = match args.command {
        true => terminal.command(&text, force)?,
        false => terminal.send(&text, force)?,
    };
    if json {
        return Ok(print_json(&sent));
    }
    if sent.removed > 0 {
        say(format_args!("{} control characters were left out.", sent.removed));
    }
    Ok(ExitCode::SUCCESS)
}
