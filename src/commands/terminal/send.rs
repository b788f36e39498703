//! `alhena terminal send`.

use std::io::{self, Read};
use std::process::ExitCode;

use alhena::terminal::{Force, TerminalError, TerminalErrorKind, Terminals};

use crate::output::{print_json, say};

/// Send a message to an agent, and wait until it has taken it.
///
/// A message is text of any content. What the CLI understands in it is still understood: `@path` adds a file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// The message; `-` reads it from stdin.
    text: String,
    /// Send it although the agent works (the CLI queues it), and throw away an unsent text.
    #[arg(long)]
    force: bool,
    /// It is a command of the CLI's own, such as /compress.
    #[arg(long)]
    command: bool,
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    let text = if args.text == "-" { from_stdin()? } else { args.text };
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

fn from_stdin() -> Result<String, TerminalError> {
    let mut bytes = Vec::new();
    let failed = |message: String| TerminalError::new(TerminalErrorKind::Usage, message);
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| failed(format!("stdin: {error}")))?;
    String::from_utf8(bytes).map_err(|_| failed("the message on stdin is not UTF-8 text".to_owned()))
}
