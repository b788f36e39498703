//! `alhena help [TOPIC]`: the tables that the program itself is made from.

use std::process::ExitCode;

use alhena::FailureKind;
use clap::CommandFactory;

use super::{Cli, complain};
use crate::output::print;
use crate::views::Name;

/// Explain a command or a topic: exit-codes, environment, views.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A command, or exit-codes, environment, views.
    topic: Option<String>,
}

pub fn execute(args: Args) -> ExitCode {
    match args.topic.as_deref() {
        None => print(Cli::command().render_help().to_string().trim_end()),
        Some("exit-codes") => print(&exit_codes()),
        Some("environment") => print(&environment()),
        Some("views") => print(&views()),
        Some(name) => match Cli::command().find_subcommand_mut(name) {
            Some(command) => {
                let mut command = command.clone().bin_name(format!("alhena {name}"));
                print(command.render_long_help().to_string().trim_end())
            }
            None => {
                complain(
                    &format_args!("there is no command or topic {name:?}"),
                    "Topics are exit-codes, environment and views; `alhena --help` lists the commands.",
                );
                ExitCode::from(2)
            }
        },
    }
}

/// Made from the table of failure kinds, so that it cannot disagree with what the program does.
fn exit_codes() -> String {
    let meanings = [
        (0, "success"),
        (1, "the run failed"),
        (2, "wrong usage"),
        (3, "Gemini CLI not found"),
        (4, "authentication"),
        (5, "untrusted folder"),
        (6, "rate limited"),
        (7, "turn limit"),
        (124, "timeout or stall"),
        (130, "cancelled"),
    ];
    let mut text = String::from("Exit codes of alhena:\n");
    for (code, meaning) in meanings {
        let kinds: Vec<String> = FailureKind::all()
            .filter(|kind| kind.exit_status() == code)
            .filter_map(|kind| serde_json::to_value(kind).ok()?.as_str().map(str::to_owned))
            .collect();
        text.push_str(&format!("  {code:>3}  {meaning}"));
        if !kinds.is_empty() {
            text.push_str(&format!(" ({})", kinds.join(", ")));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn environment() -> String {
    let mut text = String::from("Environment variables:\n");
    for variable in alhena::env::TABLE {
        text.push_str(&format!("  {}\n      {}\n", variable.name, variable.meaning));
    }
    text.trim_end().to_owned()
}

fn views() -> String {
    let mut text = String::from("Views, for --as:\n");
    let width = Name::table().iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, meaning) in Name::table() {
        text.push_str(&format!("  {name:<width$}  {meaning}\n"));
    }
    text.trim_end().to_owned()
}
