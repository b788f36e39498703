//! `alhena terminal send`.

use std::process::ExitCode;

use alhena_terminal::{At, Force, TerminalError, Terminals};

use super::message::{self, Message};
use crate::output::print_json;

/// Send a message to an agent, and wait until it has taken it.
///
/// A message is text of any content. What Gemini CLI would take for a command (`/quit`) gets an invisible mark in front, and
/// an `@` that could add a file a backslash: the CLI knows no other way. The command says so when it did.
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
    #[arg(long, conflicts_with = "command")]
    at_files: bool,
    /// It is a command of the CLI's own, such as /compress: run it exactly as it is given, if the CLI has it.
    #[arg(long)]
    command: bool,
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let text = args.message.read()?;
    let force = if args.force { Force::Anyway } else { Force::OnlyWhenReady };
    let sent = match args.command {
        true => terminal.command(&text, force)?,
        false => terminal.send_with(&text, force, if args.at_files { At::Files } else { At::Text })?,
    };
    if json {
        return Ok(print_json(&sent));
    }
    message::tell(&sent);
    Ok(ExitCode::SUCCESS)
}
