//! `alhena terminal logs`.

use std::process::ExitCode;
use std::time::Duration;

use alhena_model::Timestamp;
use alhena_terminal::screen::Status;
use alhena_terminal::{How, LogEntry, Terminal, TerminalError, Terminals};

use crate::output::{Stream, is_gone, print, print_json, write, write_json, written};
use crate::style::{Colours, Paint, duration, number, one_line};

/// Between two looks for more.
const PAUSE: Duration = Duration::from_millis(500);
/// So many characters of a prompt or an answer are shown.
const WIDTH: usize = 100;

/// List an agent's turns: when, how long, how each ended, what it took, and how prompt and answer begin.
///
/// What a person typed in the pane is listed too, without a number, and so are the earlier turns of a session that was
/// resumed. `read --turn N` prints a whole answer.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// The last so many, at least one.
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    n: Option<u32>,
    /// Print each turn when it has ended, until the agent has gone; with --json a line each.
    #[arg(long, short)]
    follow: bool,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    terminal.wait_for_session();
    let mut entries = terminal.log()?;
    let all = entries.len();
    let last = args.n.map_or(all, |n| usize::try_from(n).unwrap_or(all));
    entries.drain(..all.saturating_sub(last));
    if args.follow {
        return follow(&terminal, entries, all, json);
    }
    if json {
        return Ok(print_json(&entries));
    }
    if all == 0 {
        return Ok(print(&format!("{} has had no turns.", terminal.name())));
    }
    let shown: Vec<String> = entries.iter().map(shown).collect();
    Ok(print(&shown.join("\n")))
}

/// Prints what has ended, in the order in which it was asked.
fn follow(
    terminal: &Terminal,
    first: Vec<LogEntry>,
    all: usize,
    json: bool,
) -> Result<ExitCode, TerminalError> {
    let mut told = all - first.len();
    loop {
        // In this order: what was said last is there when the agent has gone.
        let gone = terminal.status_now().map_or(true, |reading| reading.status == Status::Exited);
        if gone {
            terminal.wait_for_session();
        }
        // Whoever put it away took its log along.
        let Ok(entries) = terminal.log() else { return Ok(ExitCode::SUCCESS) };
        for entry in entries.iter().skip(told).take_while(|entry| gone || entry.ended.is_some()) {
            let done = match json {
                true => write_json(|out| {
                    serde_json::to_writer(&mut *out, entry)?;
                    writeln!(out)
                }),
                false => write(|out| writeln!(out, "{}", shown(entry))),
            };
            match done {
                Ok(()) => told += 1,
                Err(error) if is_gone(&error) => return Ok(ExitCode::SUCCESS),
                Err(error) => return Ok(written(Err(error))),
            }
        }
        if gone {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(PAUSE);
    }
}

fn shown(entry: &LogEntry) -> String {
    let colours = Colours::of(Stream::Out);
    let number_of = match entry.turn {
        Some(turn) => format!("turn {turn}"),
        None if entry.earlier => "earlier".to_owned(),
        None => "typed".to_owned(),
    };
    let time = match entry.duration_ms {
        Some(millis) => duration(millis),
        None => format!("{} so far", duration(since(entry.at))),
    };
    let (paint, how) = match entry.ended {
        None => (Paint::Cyan, "open"),
        Some(How::Answered) => (Paint::Green, "answered"),
        Some(how) => (Paint::Yellow, how.name()),
    };
    let how = colours.paint(paint, how);
    let tokens = entry.tokens.map_or_else(String::new, |tokens| format!("  {} tokens", number(tokens)));
    let mut text = format!("{number_of}  {}  {time}  {how}{tokens}", colours.paint(Paint::Dim, entry.at));
    text.push_str(&format!("\n  > {}", one_line(&entry.prompt, WIDTH)));
    if let Some(answer) = &entry.answer {
        text.push_str(&format!("\n  {}", one_line(answer, WIDTH)));
    }
    if let Some(warning) = &entry.warning {
        text.push_str(&format!("\n  {}", colours.paint(Paint::Yellow, one_line(warning, WIDTH))));
    }
    text
}

fn since(moment: Timestamp) -> u64 {
    u64::try_from(Timestamp::now().as_millis() - moment.as_millis()).unwrap_or(0)
}
