//! `alhena terminal read`.

use std::process::ExitCode;

use alhena_terminal::{TerminalError, Terminals};
use serde_json::json;

use crate::output::{print, print_json, say};

/// Read what an agent said: the last answer, all turns, or the screen.
///
/// The text comes from the CLI's session file where it can be found, else from the screen; --json says which.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The terminal, by its name or id.
    terminal: String,
    /// The last answer; the default.
    #[arg(long)]
    last: bool,
    /// The answer of one turn, by its number.
    #[arg(long, value_name = "N", conflicts_with_all = ["last", "all", "screen"])]
    turn: Option<u64>,
    /// All turns.
    #[arg(long, conflicts_with = "last")]
    all: bool,
    /// The screen as it is now.
    #[arg(long, conflicts_with_all = ["last", "all"])]
    screen: bool,
}

pub fn execute(args: &Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.find(&args.terminal)?;
    if args.screen {
        let look = terminal.captured()?;
        return Ok(match json {
            true => print_json(&look),
            false => print(&super::shown(look.text.trim_end())),
        });
    }
    terminal.wait_for_session();
    if !args.all {
        let answer = match args.turn {
            Some(turn) => terminal.answer_of(turn)?,
            None => terminal.last_answer()?,
        };
        if let Some(warning) = answer.warning.as_ref().filter(|_| !json) {
            say(warning);
        }
        return Ok(match json {
            true => print_json(&answer),
            false => print(&super::shown(&answer.text)),
        });
    }
    let (turns, source) = terminal.turns()?;
    if json {
        return Ok(print_json(&json!({ "turns": turns, "source": source })));
    }
    let text: Vec<String> = turns
        .iter()
        .map(|turn| format!("> {}\n\n{}", turn.query.replace('\n', "\n> "), turn.answer))
        .collect();
    Ok(print(&super::shown(&text.join("\n\n"))))
}
