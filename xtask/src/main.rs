//! `cargo xtask`: the project's own chores, with all their set-up.

mod bench;
mod checks;
mod commands;
mod coverage;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod library;
mod lints;
mod package;
mod screenshot;
mod setup;
mod soak;
mod stages;
mod tally;
mod torture;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// The project's own chores, with all their set-up.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Chore {
    /// Check everything that has to hold: format, lints, documentation, tests, two minutes of torture, packages
    Test(checks::Options),
    /// Fetch what the tests need from outside; without NAME, list it
    Fetch { name: Option<String>, version: Option<String> },
    /// Measure against a baseline; without NAME, list the measurements
    Bench {
        /// NAME and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Print the line coverage per crate
    Coverage(coverage::Options),
    /// Build packages, install each where nothing is, and run its example
    Package(package::Options),
    /// Take the README's picture of the page, docs/page.png
    Screenshot { path: Option<PathBuf> },
    /// Run the test of the same name for longer
    #[command(subcommand)]
    Soak(soak::Soak),
    /// Stop, break and attack runs at random; `--trial SEED` repeats one
    Torture(torture::Options),
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Test(options) => checks::run(&options),
        Chore::Fetch { name, version } => setup::fetch(name.as_deref(), version.as_deref()),
        Chore::Bench { words } => bench::run(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        Chore::Coverage(options) => coverage::run(&options),
        Chore::Package(options) => package::command(&options),
        Chore::Screenshot { path } => screenshot::take(path),
        Chore::Soak(soak) => soak::command(soak),
        Chore::Torture(options) => torture::command(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                eprintln!("xtask: {message}");
            }
            ExitCode::FAILURE
        }
    }
}
