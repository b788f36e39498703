//! `alhena terminal wait`.

use std::process::ExitCode;
use std::time::Duration;

use alhena_terminal::screen::{Reading, Status};
use alhena_terminal::{Terminal, TerminalError, TerminalErrorKind, Terminals, Until, WAITING};

use super::Described;
use crate::output::{print, print_json, say};
use alhena_model::options::time;

/// Wait until an agent does something.
///
/// Exits 1 when its turn ended with an error or the agent has gone, 10 when it waits for somebody to answer (0 with --until
/// waiting), 124 when the time is up.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id; several with --any.
    #[arg(value_name = "TERMINAL", required_unless_present = "any")]
    terminals: Vec<String>,
    /// Wait for the first of several, and say which; without names, of all that are at work.
    #[arg(long)]
    any: bool,
    /// What to wait for: idle, completed, waiting, processing, exited, or settled (anything that is somebody's turn).
    #[arg(long, value_name = "STATUS", default_value = "settled")]
    until: Until,
    /// How long.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10m")]
    timeout: Duration,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let named = args.terminals.iter().map(|name| terminals.find(name));
    let named = named.collect::<Result<Vec<Terminal>, TerminalError>>()?;
    let (terminal, reading) = match (args.any, named.as_slice()) {
        (true, []) => {
            let chosen = terminals.all_but(args.until)?;
            // Whoever named none is told whom they wait for: one that begins later does not count.
            let names: Vec<&str> = chosen.iter().map(Terminal::name).collect();
            if !names.is_empty() {
                say(format_args!("Waiting for {}.", names.join(", ")));
            }
            terminals.wait_any(chosen, args.until, args.timeout)?
        }
        (true, _) => terminals.wait_any(named, args.until, args.timeout)?,
        (false, [one]) => (one.clone(), one.wait(args.until, args.timeout)?),
        (false, _) => {
            return Err(TerminalError::new(TerminalErrorKind::Usage, "these are several terminals")
                .with_hint("Wait for the first of them with --any, or for one after the other."));
        }
    };
    let (name, code) = (terminal.name(), code(&reading, args.until));
    let waiting = reading.waiting_for.clone();
    let printed = match (json, args.any) {
        (false, true) => print(&super::shown(&format!("{name}: {}", super::summary(&reading)))),
        (false, false) => print(&super::shown(&super::summary(&reading))),
        (true, _) => print_json(&Described { record: terminal.record()?, reading }),
    };
    if let Some(waiting) = waiting.filter(|_| !json) {
        say(super::how_to_answer(&terminal, &waiting));
    }
    Ok(if code == 0 { printed } else { ExitCode::from(code) })
}

/// What a wait comes to: that which was waited for is never a failure.
fn code(reading: &Reading, until: Until) -> u8 {
    match reading.status {
        Status::Waiting if until != Until::Waiting => WAITING,
        Status::Exited if until != Until::Exited => 1,
        Status::Error => 1,
        _ => 0,
    }
}
