//! The commands: one file each. The definitions here make the help, the man page and the completions.

mod acp;
mod batch;
mod capabilities;
mod chat;
pub mod claude;
mod completions;
mod detect;
mod doctor;
pub mod gemini;
mod happening;
mod help;
mod host;
mod install;
mod mock;
pub mod options;
mod parse;
mod report;
pub mod run;
mod serve;
mod sessions;
mod talk;
mod terminal;
mod worker;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::command_error::CommandError;

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
    Chat(Box<chat::Args>),
    Batch(Box<batch::Args>),
    Worker(Box<worker::Args>),
    Serve(Box<serve::Args>),
    Parse(parse::Args),
    Sessions(sessions::Args),
    Detect(detect::Args),
    Capabilities(capabilities::Args),
    Doctor(doctor::Args),
    Install(install::Args),
    Mock(mock::Args),
    Gemini(gemini::Args),
    Claude(claude::Args),
    Acp(Box<acp::Args>),
    Host(host::Args),
    Terminal(terminal::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
    Help(help::Args),
}

impl Cli {
    pub fn execute(self) -> ExitCode {
        let done = match self.command {
            Command::Run(args) => run::execute(*args),
            Command::Chat(args) => chat::execute(*args),
            Command::Batch(args) => batch::execute(*args),
            Command::Worker(args) => worker::execute(*args),
            Command::Serve(args) => serve::execute(*args),
            Command::Parse(args) => parse::execute(args),
            Command::Sessions(args) => sessions::execute(args),
            Command::Detect(args) => detect::execute(args),
            Command::Capabilities(args) => capabilities::execute(args),
            Command::Doctor(args) => doctor::execute(args),
            Command::Install(args) => install::execute(args),
            Command::Mock(args) => mock::execute(args),
            Command::Gemini(args) => gemini::execute(args),
            Command::Claude(args) => claude::execute(args),
            Command::Acp(args) => acp::execute(*args),
            Command::Host(args) => host::execute(args),
            Command::Terminal(args) => terminal::execute(args),
            Command::Completions(args) => completions::execute(args),
            Command::Man(args) => completions::man(args),
            Command::Help(args) => help::execute(args),
        };
        done.unwrap_or_else(CommandError::report)
    }
}

/// Refuses a `-C` that names no directory.
fn check_directory(dir: &Path) -> Result<(), CommandError> {
    Ok(alhena_agent::directory(dir)?)
}
