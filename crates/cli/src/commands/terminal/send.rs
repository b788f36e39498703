//! `alhena terminal send` and `alhena terminal ask`.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena_model::options::time;
use alhena_terminal::{Asked, At, Force, Sent, Terminal, TerminalError, TerminalErrorKind, Terminals};

use super::{Named, how_to_answer, question, shown};
use crate::output::{print, print_json, say};

/// No prompt can be larger.
const MOST: u64 = 8 << 20;

/// Send a message to an agent, and wait until it has taken it.
///
/// A message is text of any content. What Gemini CLI would take for a command (`/quit`) gets an invisible mark in front, and
/// an `@` that could add a file a backslash: the CLI knows no other way. The command says so when it did.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    agent: Named,
    #[command(flatten)]
    message: Message,
    /// It is a command of the CLI's own, such as /compress: run it exactly as it is given, if the CLI has it.
    #[arg(long, conflicts_with = "at_files")]
    command: bool,
}

/// Send a message to an agent, wait for the end of its turn, and print its answer.
///
/// Exits 0 with a whole answer, 1 when there is none or it is not whole (empty, blocked, cut off, an error), 10 when the agent
/// waits for somebody to answer, 124 when the time is up, 130 when somebody interrupted it.
#[derive(Debug, clap::Args)]
pub struct AskArgs {
    #[command(flatten)]
    agent: Named,
    #[command(flatten)]
    message: Message,
    /// How long it may take.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    timeout: Duration,
}

/// What to say.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct Message {
    /// The message; `-` reads it from stdin.
    #[arg(value_name = "TEXT", required_unless_present = "file", conflicts_with = "file")]
    text: Option<String>,
    /// Read the message from a file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Send it although the agent works (the CLI queues it), and throw away an unsent text.
    #[arg(long)]
    force: bool,
    /// Let @path add files, as for somebody who types it.
    #[arg(long)]
    at_files: bool,
}

impl Message {
    fn how(&self) -> (Force, At) {
        let force = if self.force { Force::Anyway } else { Force::OnlyWhenReady };
        (force, if self.at_files { At::Files } else { At::Text })
    }

    fn read(self) -> Result<String, TerminalError> {
        match (self.text, self.file) {
            (_, Some(file)) => {
                let opened = std::fs::File::open(&file);
                text_of(&file.display().to_string(), opened)
            }
            (Some(text), None) if text == "-" => text_of("stdin", Ok(io::stdin().lock())),
            (text, None) => Ok(text.unwrap_or_default()),
        }
    }
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.agent.terminal)?;
    let (force, at) = args.message.how();
    let text = args.message.read()?;
    let sent = match args.command {
        true => terminal.command(&text, force)?,
        false => terminal.send_with(&text, force, at)?,
    };
    if json {
        return Ok(print_json(&sent));
    }
    tell(&sent);
    Ok(ExitCode::SUCCESS)
}

pub fn ask(args: AskArgs, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.agent.terminal)?;
    let how = args.message.how();
    let tell = |sent: &Sent| {
        if !json {
            tell(sent)
        }
    };
    let asked = terminal.ask(&args.message.read()?, how, args.timeout, tell)?;
    let printed = if json { print_json(&asked) } else { told(&terminal, &asked) };
    Ok(match asked.exit_status() {
        0 => printed,
        code => ExitCode::from(code),
    })
}

fn told(terminal: &Terminal, asked: &Asked) -> ExitCode {
    let printed = asked.text.as_deref().map_or(ExitCode::SUCCESS, |text| print(&shown(text)));
    if let Some(waiting) = &asked.waiting_for {
        say(question(waiting));
        say(how_to_answer(terminal, waiting));
    } else if let Some(warning) = &asked.warning {
        say(format_args!("warning: {warning}"));
    }
    printed
}

/// Tells what was changed in a message.
fn tell(sent: &Sent) {
    sent.notices().iter().for_each(say);
}

fn text_of(name: &str, from: io::Result<impl Read>) -> Result<String, TerminalError> {
    let failed = |message: String, hint: &str| {
        Err(TerminalError::new(TerminalErrorKind::Usage, message).with_hint(hint))
    };
    let mut bytes = Vec::new();
    let read = from.and_then(|from| from.take(MOST + 1).read_to_end(&mut bytes));
    match (read, String::from_utf8(bytes)) {
        (Err(error), _) => failed(format!("{name}: {error}"), "Give a file that can be read."),
        (Ok(_), Ok(text)) if text.len() as u64 <= MOST => Ok(text),
        (Ok(_), Ok(_)) => failed(format!("{name} is larger than 8 MiB"), "Name the file in a message."),
        (Ok(_), Err(_)) => failed(format!("{name} is not UTF-8 text"), "Name the file in a message."),
    }
}
