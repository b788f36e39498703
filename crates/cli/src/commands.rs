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
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use alhena::Hint;
use clap::{Parser, Subcommand};
use serde_json::json;

use crate::output::{Stream, say, write_json};
use crate::style::{Colours, Paint};

/// Makes Gemini CLI a part that other software can rely on.
#[derive(Debug, Parser)]
#[command(
    name = "alhena",
    bin_name = "alhena",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "`alhena help exit-codes`, `help environment`, `help views` and `help config` explain more."
)]
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

/// Whether what goes wrong is said as JSON: for whoever asked for JSON.
static IN_JSON: AtomicBool = AtomicBool::new(false);

/// From now on [`complain`] says everything as JSON.
pub fn complain_in_json() {
    IN_JSON.store(true, Ordering::Relaxed);
}

pub fn complains_in_json() -> bool {
    IN_JSON.load(Ordering::Relaxed)
}

/// Complains of a `-C` that names no directory.
fn check_directory(dir: &Path) -> Result<(), ExitCode> {
    agent::directory(dir).map_err(|error| {
        complain(&error, &error.hint().unwrap_or_default());
        ExitCode::from(error.exit_status())
    })
}

/// Says what went wrong and what to do, on stderr: as words on stderr, or to whoever asked for JSON on stdout, where the data would
/// have been.
pub fn complain(message: &dyn fmt::Display, hint: &str) {
    if complains_in_json() {
        let error = json!({ "error": { "message": message.to_string(), "hint": hint } });
        // Where stdout is what is wrong, words are better than nothing.
        if write_json(|out| writeln!(out, "{error:#}")).is_ok() {
            return;
        }
    }
    let colours = Colours::of(Stream::Err);
    say(format_args!("{} {message}", colours.paint(Paint::Red, "error:")));
    if !hint.is_empty() {
        say(format_args!("{} {hint}", colours.paint(Paint::Cyan, "hint:")));
    }
}
