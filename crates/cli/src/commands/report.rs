//! `alhena host report`: a release of Gemini CLI that has no stream (before 0.11), for adapters that make do with its report.
//!
//! It is found as a run finds it and started under the keeper, so that nothing of it is left, whoever is killed. What it says
//! and its exit code are passed on as they are, when it is over.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_agent::supervise::adoption;
use alhena_agent::supervise::custody::{Custody, Locks, keeper_program};
use alhena_agent::supervise::protocol::{self, Gentle, Launch, ProcessEnd, Report, Stdin};
use alhena_agent::{Finder, Gemini, Trust, programs};
use alhena_sys::{handles, poll};

use super::check_directory;
use crate::command_error::{CommandError, Done};
use crate::output;
use crate::signals::{self, Interrupts};
use crate::stdin::{self, Silence};

/// How often is looked whether anybody still wants it.
const NOW_AND_THEN: Duration = Duration::from_millis(200);
const CANCELLED: u8 = 130;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Work in this directory.
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The Gemini CLI to run.
    #[arg(long, value_name = "PATH|VERSION")]
    gemini: Option<PathBuf>,
    /// Arguments for Gemini CLI itself; the prompt is read from stdin.
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

pub fn execute(args: Args) -> Done {
    check_directory(&args.dir)?;
    let failed = |error: io::Error| CommandError::failed(error, "");
    let interrupts = Interrupts::catch();
    let _by_mark_only = adoption::every_child_is_a_runs();
    let mut finder = Finder::new().dir(&args.dir).trust(Trust::Run).stop_when(signals::have_come);
    if let Some(path) = args.gemini {
        finder = finder.path(path);
    }
    let gemini = finder.find()?;
    let prompt = stdin::read(Silence::Wait, &interrupts, || {})
        .map_err(|unread| CommandError::failed(unread.to_string(), "Give the prompt on stdin."))?;
    let files = tempfile::Builder::new().prefix("alhena-report-").tempdir().map_err(failed)?;
    let file = |name: &str| files.path().join(name);
    std::fs::write(file("prompt"), &prompt).map_err(failed)?;
    let launch = launch(&gemini, args.args, &args.dir, files.path());
    let keeper = keeper_program(&Environment::of_process());
    let custody = Custody::take(&launch, keeper.as_deref(), Locks::default()).map_err(failed)?;
    let code = follow(custody).map_err(failed)?;
    let complaints = std::fs::read(file("stderr")).map_err(failed)?;
    output::say_part(String::from_utf8_lossy(&complaints));
    let written = output::write(|out| io::copy(&mut File::open(file("stdout"))?, out).map(|_| ()));
    match written {
        Err(error) if !output::is_gone(&error) => Ok(output::written(Err(error))),
        _ => Ok(ExitCode::from(code)),
    }
}

fn launch(gemini: &Gemini, args: Vec<OsString>, dir: &Path, files: &Path) -> Launch {
    let mut environment = Environment::of_process();
    programs::leave_out_relative(&mut environment);
    let name = files.file_name().unwrap_or_default().to_string_lossy();
    let file = |name: &str| files.join(name).into_os_string();
    Launch {
        version: protocol::VERSION,
        mark: format!("report-{}-{name}", std::process::id()),
        program: gemini.path.clone().into_os_string(),
        args,
        env: environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        dir: dir.canonicalize().unwrap_or_else(|_| dir.to_owned()).into_os_string(),
        stdin: Stdin::File(file("prompt")),
        stdout: file("stdout"),
        stderr: file("stderr"),
        finish: None,
        remove_when_abandoned: vec![files.as_os_str().to_owned()],
        remove: Vec::new(),
        require_keeper: false,
    }
}

/// Waits until nothing of it is left, and stops it when it is told to or when nobody reads any more. Its exit code.
fn follow(mut custody: Custody) -> io::Result<u8> {
    let mut stopped = false;
    // Without a word about its end it was killed with its keeper.
    let mut code = 128 + 9;
    loop {
        if custody.has_report_within(NOW_AND_THEN) {
            match custody.report()? {
                Some(Report::Exited(ProcessEnd::Code(number))) => code = u8::try_from(number).unwrap_or(1),
                Some(Report::Exited(ProcessEnd::Signal(signal))) => {
                    code = u8::try_from(128 + signal).unwrap_or(code);
                }
                Some(Report::NotStarted { message, .. }) => return Err(io::Error::other(message)),
                Some(Report::Finished(_)) | None => break,
                Some(
                    Report::Hello { .. } | Report::Started { .. } | Report::Swept { .. } | Report::KeeperLost,
                ) => {}
            }
        }
        let unwanted = || poll::has_hung_up(handles::stdout(), Duration::ZERO).unwrap_or(false);
        if !stopped && (signals::have_come() || unwanted()) {
            stopped = true;
            custody.stop(Gentle::No);
        }
    }
    Ok(if stopped { CANCELLED } else { code })
}
