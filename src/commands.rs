//! The commands: one file each. The definitions here make the help, the man page and the completions.

mod agent;
mod capabilities;
mod completions;
mod detect;
mod doctor;
pub mod gemini;
mod help;
mod host;
mod install;
mod parse;
mod run;
mod sessions;
mod terminal;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::style::{Colours, Paint};

/// Makes Gemini CLI a part that other software can rely on.
#[derive(Debug, Parser)]
#[command(name = "alhena", version, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "`alhena help exit-codes`, `help environment` and `help views` explain more.")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Parse(parse::Args),
    Sessions(sessions::Args),
    Detect(detect::Args),
    Capabilities(capabilities::Args),
    Doctor(doctor::Args),
    Install(install::Args),
    Gemini(gemini::Args),
    Host(host::Args),
    Terminal(terminal::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
    Help(help::Args),
}

impl Cli {
    pub fn execute(self) -> ExitCode {
        match self.command {
            Command::Run(args) => run::execute(*args),
            Command::Parse(args) => parse::execute(args),
            Command::Sessions(args) => sessions::execute(args),
            Command::Detect(args) => detect::execute(args),
            Command::Capabilities(args) => capabilities::execute(args),
            Command::Doctor(args) => doctor::execute(args),
            Command::Install(args) => install::execute(args),
            Command::Gemini(args) => gemini::execute(args),
            Command::Host(args) => host::execute(args),
            Command::Terminal(args) => terminal::execute(args),
            Command::Completions(args) => completions::execute(args),
            Command::Man(args) => completions::man(args),
            Command::Help(args) => help::execute(args),
        }
    }
}

/// Says what went wrong and what to do, on stderr.
pub fn complain(message: &dyn fmt::Display, hint: &str) {
    let colours = Colours::of(&io::stderr());
    let mut err = io::stderr().lock();
    let _closed = writeln!(err, "{} {message}", colours.paint(Paint::Red, "error:"));
    if !hint.is_empty() {
        let _closed = writeln!(err, "{} {hint}", colours.paint(Paint::Cyan, "hint:"));
    }
}

/// Prints a value as JSON; a reader that went away is no error.
pub fn print_json(value: &impl serde::Serialize) -> ExitCode {
    let text = match serde_json::to_string_pretty(value) {
        Ok(text) => text,
        Err(error) => {
            complain(&error, "");
            return ExitCode::FAILURE;
        }
    };
    print(&text)
}

/// Prints text and a line end.
pub fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _closed = writeln!(out, "{text}").and_then(|()| out.flush());
    ExitCode::SUCCESS
}
