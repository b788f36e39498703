//! `alhena install`: Gemini CLI from npm, in Alhena's own directory.

use std::path::Path;
use std::process::ExitCode;

use alhena_agent::env::Environment;
use alhena_agent::install::{InstallError, Installer, PINNED, Progress};
use alhena_agent::{Gemini, RunError};
use alhena_model::{Failure, FailureKind, Hint};
use alhena_wire::release::Version;
use serde_json::json;

use crate::command_error::{CommandError, Done};
use crate::output::{Own, Stream, print, print_json, say, say_part};
use crate::signals::{self, Interrupts};
use crate::style::duration;

/// Fetch Gemini CLI by npm into Alhena's own directory.
///
/// Nothing is installed for the system; `alhena run` finds it there when there is no other.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The version, or `latest`; by default the one that Alhena is tested with.
    version: Option<String>,
    /// List what is installed there.
    #[arg(long, conflicts_with_all = ["version", "remove"])]
    list: bool,
    /// Remove that version.
    #[arg(long, requires = "version")]
    remove: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn execute(args: Args) -> Done {
    let interrupts = Interrupts::catch();
    let installer = Installer::new().stop_when(signals::have_come);
    if args.list {
        return Ok(list(&installer, args.json));
    }
    if args.version.as_deref() == Some("latest") && !args.remove {
        let version = installer.latest().map_err(|error| not_fetched(error, &interrupts))?;
        return fetch(&installer, Some(version), args.json, &interrupts);
    }
    let version = args.version.as_deref().map(str::parse::<Version>).transpose().map_err(|_| {
        let text = args.version.as_deref().unwrap_or("");
        CommandError::usage(format!("{text:?} is no version"), "Write it as 0.61.0, or latest.")
    })?;
    if let (true, Some(version)) = (args.remove, &version) {
        return match installer.uninstall(version)? {
            true => Ok(print(&format!("removed {version}"))),
            false => Err(CommandError::failed(
                format!("{version} is not installed"),
                "`alhena install --list` shows what is.",
            )),
        };
    }
    fetch(&installer, version, args.json, &interrupts)
}

fn fetch(installer: &Installer, version: Option<Version>, as_json: bool, interrupts: &Interrupts) -> Done {
    let gemini = installer
        .install(version, Shown::new(false).progress())
        .map_err(|error| not_fetched(error, interrupts))?;
    Ok(match as_json {
        true => print_json(&gemini),
        false => print(&format!("{} {}", gemini.path.display(), gemini.version)),
    })
}

fn not_fetched(error: InstallError, interrupts: &Interrupts) -> CommandError {
    let failed = CommandError::from(error);
    match interrupts.caught() {
        // The same for every signal, as for a run.
        Some(_) => failed.exit(FailureKind::Cancelled.exit_status()),
        None => failed,
    }
}

fn list(installer: &Installer, as_json: bool) -> ExitCode {
    let all = installer.installed();
    if as_json {
        let all: Vec<_> =
            all.iter().map(|one| json!({ "version": one.version.to_string(), "dir": one.dir })).collect();
        return print_json(&all);
    }
    let lines: Vec<String> = all.iter().map(|one| format!("{} {}", one.version, one.dir.display())).collect();
    match lines.is_empty() {
        true => {
            say(format_args!("nothing is installed; `alhena install` fetches Gemini CLI {PINNED}"));
            ExitCode::SUCCESS
        }
        false => print(&lines.join("\n")),
    }
}

/// The version that `--gemini` names instead of a path.
pub fn as_version(gemini: &Path) -> Option<Version> {
    gemini.to_str()?.parse().ok()
}

/// A release, by default the one that Alhena is tested with, fetched if it is not there yet.
pub fn fetched(version: Option<Version>, environment: &Environment, quiet: bool) -> Result<Gemini, RunError> {
    let installer = Installer::new().env(environment.clone()).stop_when(signals::have_come);
    installer.install(version, Shown::new(quiet).progress()).map_err(|error| {
        let kind = match error {
            InstallError::Stopped => FailureKind::Cancelled,
            _ => FailureKind::NotInstalled,
        };
        let failure = Failure::new(kind, error.to_string());
        RunError::Failed(Box::new(failure.with_hint(error.hint().unwrap_or_default())))
    })
}

/// Progress on stderr: a line on a terminal that is written over, and otherwise only what matters.
struct Shown {
    quiet: bool,
    terminal: bool,
}

impl Shown {
    fn new(quiet: bool) -> Self {
        Self { quiet, terminal: Stream::Err.is_terminal() }
    }

    fn progress(self) -> impl FnMut(Progress) {
        move |progress| {
            if self.quiet {
                return;
            }
            match progress {
                Progress::Waiting => say("waiting for another install of the same version"),
                Progress::Started { version, dir } => {
                    say(format_args!("fetching Gemini CLI {version} by npm into {}", dir.display()));
                }
                // What npm fetches is of interest only while it goes by.
                Progress::Line(line) if line.starts_with("npm http") || line.trim().is_empty() => {
                    self.show(&crate::style::one_line(&line, 70));
                }
                // Its errors stand in ours when it fails.
                Progress::Line(line) if line.starts_with("npm error") || line.starts_with("npm ERR!") => {}
                Progress::Line(line) => {
                    self.show("");
                    say(format_args!("npm: {line}"));
                }
                Progress::Tick { elapsed } => {
                    self.show(&format!("fetching… {}", duration(elapsed.as_millis() as u64)));
                }
            }
        }
    }

    /// Writes over the last line, if there can be one.
    fn show(&self, text: &str) {
        if self.terminal {
            say_part(format_args!("{}{text}", Own::ClearLine));
        }
    }
}
