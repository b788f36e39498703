//! A short program under a keeper: it has no home to put away, and nothing of it is left, whoever is killed meanwhile.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use alhena_sys::processes;

use super::custody::{Custody, Locks, keeper_program};
use super::protocol::{self, Gentle, Launch, ProcessEnd, Report, Stdin};
use crate::env::Environment;

/// A program on its way. Dropping it ends it.
pub struct Errand {
    custody: Custody,
    status: Option<ExitStatus>,
    over: bool,
}

/// Where an errand writes and what goes with it.
pub struct ErrandFiles<'a> {
    /// Its output; one file for both is fine.
    pub stdout: &'a Path,
    /// What it says beside that.
    pub stderr: &'a Path,
    /// What it reads; nothing without.
    pub stdin: Option<&'a Path>,
    /// A directory that goes when nobody is left to look at it.
    pub remove_when_abandoned: &'a Path,
    /// Held until nothing of it is left.
    pub lock: Option<&'a File>,
}

impl Errand {
    /// Starts a command. An environment that it has been given is the whole of it; without one it gets this process's.
    /// Where its input comes from and its output goes the place says.
    pub fn start(command: &Command, place: &ErrandFiles<'_>) -> io::Result<Self> {
        let given: Vec<(OsString, OsString)> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        let env = if given.is_empty() { std::env::vars_os().collect() } else { given };
        let name = place.remove_when_abandoned.file_name().unwrap_or_default().to_string_lossy();
        let launch = Launch {
            version: protocol::VERSION,
            mark: format!("errand-{}-{name}", std::process::id()),
            program: command.get_program().to_owned(),
            args: command.get_args().map(ToOwned::to_owned).collect(),
            env,
            dir: command.get_current_dir().unwrap_or(Path::new("/")).as_os_str().to_owned(),
            stdin: place.stdin.map_or(Stdin::Null, |path| Stdin::File(path.as_os_str().to_owned())),
            stdout: place.stdout.as_os_str().to_owned(),
            stderr: place.stderr.as_os_str().to_owned(),
            finish: None,
            remove_when_abandoned: vec![place.remove_when_abandoned.as_os_str().to_owned()],
            remove: Vec::new(),
            require_keeper: false,
        };
        let keeper = keeper_program(&Environment::of_process());
        let locks = Locks { home: place.lock, run: None };
        let custody = Custody::take(&launch, keeper.as_deref(), locks)?;
        Ok(Self { custody, status: None, over: false })
    }

    /// The keeper that it cannot begin without and that has not said a word yet.
    pub(crate) fn awaited(&self) -> Option<&Path> {
        self.custody.awaited()
    }

    /// Waits for its end, and for the end of all that it started. None when the time is up before.
    pub fn wait(&mut self, longest: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + longest;
        while !self.over {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.custody.has_report_within(left) {
                if left.is_zero() {
                    return Ok(None);
                }
                continue;
            }
            match self.custody.report()? {
                Some(Report::Exited(ProcessEnd::Code(code))) => {
                    self.status = Some(processes::exited_with(code));
                }
                Some(Report::Exited(ProcessEnd::Signal(signal))) => {
                    self.status = Some(processes::ended_by(signal));
                }
                Some(Report::NotStarted { missing, message }) => {
                    let kind = if missing { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
                    return Err(io::Error::new(kind, message));
                }
                Some(
                    Report::Hello { .. } | Report::Started { .. } | Report::Swept { .. } | Report::KeeperLost,
                ) => {}
                Some(Report::Finished(_)) | None => self.over = true,
            }
        }
        // Without a word about its end it was killed with its keeper.
        Ok(Some(self.status.unwrap_or_else(|| processes::ended_by(9))))
    }

    /// Ends it, and all that it started.
    pub fn stop(mut self, gentle: Gentle) {
        self.custody.stop(gentle);
        let _in_time = self.wait(LONGEST_STOP);
    }
}

/// The keeper's ladder and its sweep; who takes longer is ended by [`Custody::end`].
const LONGEST_STOP: Duration = Duration::from_secs(15);
