//! `alhena terminal`: interactive agents in tmux. One file per command.

mod answer;
mod ask;
mod attach;
mod classify;
mod exit;
mod here;
mod interrupt;
mod launch;
mod list;
mod logs;
mod message;
mod read;
mod send;
mod serve_mcp;
mod status;
#[cfg(feature = "top")]
mod top;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use alhena_terminal::screen::{Reading, Waiting};
use alhena_terminal::{
    Described, Options, SERVER, Terminal, TerminalError, TerminalErrorKind, Terminals, pane, watcher,
};
use clap::Subcommand;

use crate::command_error::Done;
use crate::output::{Stream, print, print_json, say};
use crate::style::Harmless;

/// Run interactive agents in tmux: launch, watch, feed, read and end them.
///
/// They live in a tmux server of Alhena's own, and outlive the command that launched them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena terminal launch --name fixer --approval yolo --trust
  alhena terminal ask fixer \"What does this project do?\"
  alhena terminal send fixer \"Fix the failing test\"
  alhena terminal wait fixer --timeout 10m
  alhena terminal read fixer
  alhena terminal exit fixer")]
pub struct Args {
    #[command(flatten)]
    place: ServerArgs,
    #[command(subcommand)]
    command: Command,
}

/// Where the terminals are.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// The tmux server, by its name.
    #[arg(long, global = true, value_name = "NAME", default_value = SERVER)]
    server: String,
    /// The tmux to use.
    #[arg(long, global = true, value_name = "PATH")]
    tmux: Option<PathBuf>,
    /// Print JSON, errors too.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Launch(Box<launch::Args>),
    List(list::Args),
    #[cfg(feature = "top")]
    Top(top::Args),
    Status(status::Args),
    Ask(ask::Args),
    Send(send::Args),
    Wait(wait::Args),
    Read(read::Args),
    Logs(logs::Args),
    Answer(answer::Args),
    Interrupt(interrupt::Args),
    Attach(attach::Args),
    Exit(exit::Args),
    Kill(exit::KillArgs),
    Here(Box<here::Args>),
    ServeMcp(serve_mcp::Args),
    Classify(classify::Args),
    /// The process in a pane.
    #[command(hide = true)]
    Agent {
        record: PathBuf,
    },
    /// Cleans up after it.
    #[command(hide = true)]
    Guard {
        step: String,
    },
    /// Watches all panes of a server.
    #[command(hide = true)]
    Watcher {
        dir: PathBuf,
        step: String,
    },
}

pub fn execute(args: Args) -> Done {
    match args.command {
        Command::Classify(args) => return classify::execute(args),
        Command::Agent { record } => return Ok(ExitCode::from(pane::serve(&record, &|text| say(text)))),
        Command::Guard { step } => return Ok(ExitCode::from(u8::from(pane::guard(&step).is_err()))),
        Command::Watcher { dir, step } => {
            let tmux = args.place.tmux.unwrap_or_else(|| "tmux".into());
            let served = watcher::serve(&args.place.server, &tmux, &dir, &step);
            return Ok(ExitCode::from(u8::from(served.is_err())));
        }
        _ => {}
    }
    let json = args.place.json;
    if let Command::Here(args) = args.command {
        return Ok(here::execute(*args)?);
    }
    let options = Options { server: args.place.server, tmux: args.place.tmux, ..Options::default() };
    if let Command::ServeMcp(args) = args.command {
        return Ok(serve_mcp::execute(args, options)?);
    }
    let terminals = Terminals::open(options)?;
    let done = match args.command {
        Command::Launch(args) => launch::execute(*args, &terminals, json),
        Command::List(_) => list::execute(&terminals, json),
        #[cfg(feature = "top")]
        Command::Top(_) => top::execute(&terminals),
        Command::Status(args) => status::execute(&args, &terminals, json),
        Command::Ask(args) => ask::execute(args, &terminals, json),
        Command::Send(args) => send::execute(args, &terminals, json),
        Command::Wait(args) => wait::execute(&args, &terminals, json),
        Command::Read(args) => read::execute(&args, &terminals, json),
        Command::Logs(args) => logs::execute(&args, &terminals, json),
        Command::Answer(args) => answer::execute(args, &terminals, json),
        Command::Interrupt(args) => interrupt::execute(&args, &terminals, json),
        Command::Attach(args) => attach::execute(&args, &terminals),
        Command::Exit(args) => exit::execute(&args, &terminals, json),
        Command::Kill(args) => exit::kill(&args, &terminals, json),
        Command::Classify(_)
        | Command::Here(_)
        | Command::ServeMcp(_)
        | Command::Agent { .. }
        | Command::Guard { .. }
        | Command::Watcher { .. } => Ok(ExitCode::SUCCESS),
    };
    Ok(done?)
}

/// Refuses what draws on a terminal where there is none, with the command that says the same without one.
fn needs_terminal(command: &str, instead: &str) -> Result<(), TerminalError> {
    if Stream::Out.is_terminal() && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Ok(());
    }
    let message = format!("{command} needs a terminal, for its input and its output");
    Err(TerminalError::new(TerminalErrorKind::Usage, message)
        .with_hint(format!("`{instead}` prints what is there once.")))
}

/// What people see of a reading: its status, and why.
fn summary(reading: &Reading) -> String {
    let status = alhena_terminal::status_name(reading.status);
    if let Some(waiting) = &reading.waiting_for {
        return format!("{status}: {}", question(waiting));
    }
    match reading.error.as_ref().or(reading.warning.as_ref()) {
        Some(why) => format!("{status}: {why}"),
        None => status.to_owned(),
    }
}

/// What an agent wants to know, what it is about (nobody should allow what they have not seen), and what can be chosen.
fn question(waiting: &Waiting) -> String {
    const MOST_LINES: usize = 40;
    let detail: Vec<&str> = waiting.detail.iter().flat_map(|detail| detail.lines()).collect();
    let mut text = waiting.question.clone();
    for line in detail.iter().take(MOST_LINES) {
        text.push_str(&format!("\n  │ {line}"));
    }
    if let Some(more @ 1..) = detail.len().checked_sub(MOST_LINES) {
        text.push_str(&format!("\n  │ … {more} more lines; --json has all of them"));
    }
    for option in &waiting.options {
        text.push_str(&format!("\n  {}. {}", option.number, option.label));
    }
    text
}

/// What to type to answer it.
fn how_to_answer(terminal: &Terminal, waiting: &Waiting) -> String {
    let line = |more: &[&str]| terminal.command_line("answer", more);
    match waiting.options.as_slice() {
        [] if waiting.is_review() => format!(
            "Submit them with `{}`, or take it back with `{}`.",
            line(&["submit"]),
            terminal.command_line("interrupt", &[])
        ),
        [first, ..] if first.checked.is_some() => format!(
            "Answer it with `{}`; several numbers with commas between them.",
            line(&["--choose", &first.number.to_string()])
        ),
        [] => format!("Answer it with `{}`.", line(&["TEXT"])),
        [first, ..] => {
            format!("Answer it with `{}`, or another number.", line(&[&first.number.to_string()]))
        }
    }
}

/// Why an agent has gone, and how to go on.
fn farewell(terminal: &Terminal, why: &str, session: Option<&str>) -> String {
    match session {
        Some(id) => {
            let id: String = id.chars().take(8).collect();
            format!("{why}; `{}` goes on", terminal.resume_line(&id))
        }
        None => why.to_owned(),
    }
}

/// Prints a reading, the way that was asked for.
fn print_reading(terminal: &Terminal, reading: Reading, json: bool) -> Result<ExitCode, TerminalError> {
    match json {
        true => Ok(print_json(&Described { record: terminal.record()?, reading })),
        false => Ok(print(&shown(&summary(&reading)))),
    }
}

/// Foreign text as it is for programs, and without what a terminal would obey for people.
fn shown(text: &str) -> String {
    match Stream::Out.is_terminal() {
        true => Harmless::default().clean(text),
        false => text.to_owned(),
    }
}
