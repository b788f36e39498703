//! `alhena terminal`: interactive agents in tmux. The larger commands have a file each.

mod classify;
mod launch;
mod logs;
mod read;
mod send;
mod serve_mcp;
#[cfg(feature = "top")]
mod top;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_model::options::time;
use alhena_terminal::screen::{Reading, Waiting};
use alhena_terminal::{
    Described, Exit, Listed, Options, Reply, SERVER, Terminal, TerminalError, TerminalErrorKind, Terminals,
    here, pane, status_name, watcher,
};
use clap::Subcommand;

use crate::command_error::Done;
use crate::output::{Stream, print, print_json, say};
use crate::signals::Interrupts;
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
    /// List the terminals and what their agents do; of those that have gone, why, and how to go on.
    List,
    /// Show all agents on one screen, live: what they do, since when, what it took, what they wait for.
    ///
    /// Keys attach to the chosen agent, answer its question, interrupt it, read its last answer or end it; ? lists them.
    #[cfg(feature = "top")]
    Top,
    /// Tell what an agent does: starting, idle, processing, completed, waiting, error, exited.
    Status(Named),
    Ask(send::AskArgs),
    Send(send::Args),
    Wait(wait::Args),
    Read(read::Args),
    Logs(logs::Args),
    Answer(AnswerArgs),
    /// Interrupt what an agent does, and wait until it takes a prompt again.
    Interrupt {
        #[command(flatten)]
        agent: Named,
        /// How long it may take.
        #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
        timeout: Duration,
    },
    /// Show a terminal in this one, to watch and to type; ^B D leaves it running.
    Attach(Named),
    /// Ask an agent to leave, end what does not, and put the terminal away.
    Exit {
        #[command(flatten)]
        agent: Named,
        /// How long it may take to leave by itself.
        #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
        timeout: Duration,
    },
    /// End an agent and everything that it started at once, and put the terminal away.
    Kill(Named),
    Here(Box<HereArgs>),
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

#[derive(Debug, clap::Args)]
struct Named {
    /// The terminal, by its name or id.
    terminal: String,
}

/// Answer a dialog of an agent: an approval, a question.
///
/// A question may take several options, or a text of your own, or both. A text with an approval or a refusal is a word of
/// feedback: the agent gets it as its next message.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena terminal answer fixer 1
  alhena terminal answer fixer --choose 1,3 --text \"and a bit of grey\"
  alhena terminal answer fixer --choose no --text \"Use a temporary directory\"")]
struct AnswerArgs {
    #[command(flatten)]
    agent: Named,
    /// The number of an option, the beginning of its label, or a text where one is asked for.
    #[arg(required_unless_present_any = ["choose", "text"], conflicts_with_all = ["choose", "text"])]
    answer: Option<String>,
    /// Options, by number or by the beginning of their labels.
    #[arg(long, value_name = "OPTIONS", value_delimiter = ',')]
    choose: Vec<String>,
    /// A text of your own.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

/// Run an interactive agent in this terminal, until it ends.
///
/// For those who have a terminal of their own for it. It gets a home of its own as `launch` gives it, and when it ends, or
/// the terminal is closed, none of its processes is left.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct HereArgs {
    /// What others call this terminal; MCP servers learn it as CAO_TERMINAL_ID.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    launch: launch::Args,
}

pub fn execute(args: Args) -> Done {
    let ServerArgs { server, tmux, json } = args.place;
    let options = Options { server, tmux, ..Options::default() };
    let open = || Terminals::open(options.clone());
    let find = |agent: &Named| open()?.find(&agent.terminal);
    Ok(match args.command {
        Command::Launch(args) => launch::execute(*args, &open()?, json)?,
        Command::List => list(&open()?, json)?,
        #[cfg(feature = "top")]
        Command::Top => top::execute(&open()?)?,
        Command::Status(agent) => {
            let terminal = find(&agent)?;
            print_reading(&terminal, terminal.status()?, json)?
        }
        Command::Ask(args) => send::ask(args, &open()?, json)?,
        Command::Send(args) => send::execute(args, &open()?, json)?,
        Command::Wait(args) => wait::execute(&args, &open()?, json)?,
        Command::Read(args) => read::execute(&args, &open()?, json)?,
        Command::Logs(args) => logs::execute(&args, &open()?, json)?,
        Command::Answer(AnswerArgs { agent, answer, choose, text }) => {
            let terminal = find(&agent)?;
            let reading = match answer {
                Some(answer) => terminal.answer(&answer)?,
                None => terminal.reply(&Reply { choose, text })?,
            };
            print_reading(&terminal, reading, json)?
        }
        Command::Interrupt { agent, timeout } => {
            let terminal = find(&agent)?;
            print_reading(&terminal, terminal.interrupt(timeout)?, json)?
        }
        Command::Attach(agent) => attach(&find(&agent)?)?,
        Command::Exit { agent, timeout } => told(&find(&agent)?.exit(timeout)?, json),
        Command::Kill(agent) => told(&find(&agent)?.kill()?, json),
        Command::Here(args) => {
            let launch = launch::launch(args.launch)?;
            ExitCode::from(here(launch, args.id, &Environment::of_process(), &|text| say(text))?)
        }
        Command::ServeMcp(args) => serve_mcp::execute(args, options)?,
        Command::Classify(args) => classify::execute(args)?,
        Command::Agent { record } => ExitCode::from(pane::serve(&record, &|text| say(text))),
        Command::Guard { step } => ExitCode::from(u8::from(pane::guard(&step).is_err())),
        Command::Watcher { dir, step } => {
            let tmux = options.tmux.unwrap_or_else(|| "tmux".into());
            let served = watcher::serve(&options.server, &tmux, &dir, &step);
            ExitCode::from(u8::from(served.is_err()))
        }
    })
}

fn list(terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let rows = terminals.listed()?;
    if json {
        let rows: Vec<Listed> = rows.into_iter().map(|(_, row)| row).collect();
        return Ok(print_json(&rows));
    }
    if rows.is_empty() {
        return Ok(print("There are no terminals."));
    }
    let width = rows.iter().map(|(terminal, _)| terminal.name().len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(terminal, row)| line(terminal, row, width)).collect();
    Ok(print(&shown(&lines.join("\n"))))
}

fn line(terminal: &Terminal, row: &Listed, width: usize) -> String {
    let Described { record, reading } = &row.described;
    let (name, status) = (&record.name, status_name(reading.status));
    let line = format!("{name:<width$}  {}  {status:<10}  {}", record.id, record.dir.display());
    match &row.why {
        Some(why) => {
            let farewell = farewell(terminal, why, row.session_id.as_deref());
            format!("{line}\n{:width$}  {farewell}", "")
        }
        None => line,
    }
}

fn attach(terminal: &Terminal) -> Result<ExitCode, TerminalError> {
    needs_terminal("attach", &terminal.command_line("read", &["--screen"]))?;
    // Whoever closes their window ends tmux's client, and whoever is told to end does; the agent's window gets its size back
    // after that.
    let interrupts = Interrupts::catch();
    let status = terminal.attach(|| interrupts.caught().is_some())?;
    Ok(match interrupts.caught() {
        Some(_) => ExitCode::from(130),
        None => ExitCode::from(u8::from(!status.success())),
    })
}

/// Tells where the session of an agent that has ended is.
fn told(exit: &Exit, json: bool) -> ExitCode {
    if json {
        return print_json(exit);
    }
    match exit.ended.sessions.last() {
        Some(session) => print(&format!("The session is in {}", session.display())),
        None => ExitCode::SUCCESS,
    }
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
    let status = status_name(reading.status);
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
