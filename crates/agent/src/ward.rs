//! A CLI in custody: its keeper, its home and its directories, what the keeper has reported, and what is to be done at its end.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::{Exit, complaints};

use crate::home::{self, Finished, Home, Stopped};
use crate::prepare::DEBUG_LOG;
use crate::prepare::arguments::OUR_POLICY;
use crate::run_dir::RunDir;
use crate::supervise::custody::{Custody, PATIENCE_WITH_GUARD, PATIENCE_WITH_SILENT_GUARD};
use crate::supervise::protocol::{Gentle, ProcessEnd, Report};

/// How long a keeper may take from the order to stop until the CLI is gone. Its ladder takes four seconds.
const PATIENCE_WITH_LADDER: Duration = Duration::from_secs(7);
/// How long a keeper may take to clean up when the CLI is gone. Long, because one that is ended early on a busy machine may have
/// many processes left to find and a large session to save.
const PATIENCE_WITH_KEEPER: Duration = Duration::from_secs(20);
/// What cleaning up may take beyond the time limit of the run.
const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(5);

/// The documented bounds (`concepts/stopping.md`). If neither the keeper nor its guard answers, the run is ended ten seconds after
/// the order to stop. If both answer once and are stopped then, it is ended after 47.
const _: () = {
    assert!(PATIENCE_WITH_LADDER.as_secs() + PATIENCE_WITH_SILENT_GUARD.as_secs() <= 10);
    assert!(PATIENCE_WITH_LADDER.as_secs() + PATIENCE_WITH_GUARD.as_secs() <= 27);
    assert!(
        PATIENCE_WITH_LADDER.as_secs() + PATIENCE_WITH_KEEPER.as_secs() + PATIENCE_WITH_GUARD.as_secs() <= 47
    );
};

const KEEPER_KILLED: &str = "The keeper of the run was killed; what it held was ended without it";

pub(crate) struct Ward {
    pub custody: Custody,
    pub stderr: PathBuf,
    /// How much was on it when this CLI was started.
    stderr_before: u64,
    /// Removed when the run is over.
    pub run_dir: RunDir,
    /// Ours as long as nobody else holds it: without a keeper process we keep it.
    pub home: Option<Home>,
    /// What people should know of all this.
    pub warnings: Vec<String>,
    /// The CLI's own process, once it has started.
    pub pid: Option<u32>,
    /// When it was told to stop.
    pub stopping: Option<Instant>,
    /// How the CLI ended.
    pub ended: Option<ProcessEnd>,
    /// When the CLI's own process was gone: from then on only the keeper is waited for.
    exited: Option<Instant>,
    /// Whether the keeper had not answered for too long, and its guard was told to take over.
    taken_over: bool,
    not_started: Option<(bool, String)>,
    /// Nothing more will be reported.
    pub over: bool,
    /// What became of the home, if the keeper has put it away.
    finished: Option<Finished>,
}

/// How long the CLI may go on when the model may not be asked any more. It ends at once, unless another hook says the contrary
/// of ours and comes later: the last one counts (0.61.0).
const AFTER_BUDGET: Duration = Duration::from_secs(5);

impl Ward {
    /// Whether it goes on although there is nothing left to spend.
    pub(crate) fn is_over_budget(&self) -> bool {
        let Some(meter) = self.run_dir.meter() else { return false };
        meter.is_overrun() || meter.refused_for().is_some_and(|time| time > AFTER_BUDGET)
    }

    pub(crate) fn new(custody: Custody, stderr: PathBuf, run_dir: RunDir, home: Option<Home>) -> Self {
        Self {
            warnings: custody.unkept().map(str::to_owned).into_iter().collect(),
            custody,
            stderr,
            stderr_before: 0,
            run_dir,
            home,
            pid: None,
            stopping: None,
            ended: None,
            exited: None,
            taken_over: false,
            not_started: None,
            over: false,
            finished: None,
        }
    }

    /// Another CLI takes the place of the one that has ended, in the same directories.
    pub(crate) fn begin_again(&mut self, custody: Custody, home: Option<Home>) {
        self.warnings.extend(custody.unkept().map(str::to_owned));
        self.stderr_before = std::fs::metadata(&self.stderr).map_or(0, |data| data.len());
        (self.custody, self.home) = (custody, home);
        (self.pid, self.stopping, self.ended) = (None, None, None);
        (self.exited, self.taken_over, self.not_started) = (None, false, None);
        (self.over, self.finished) = (false, None);
    }

    /// Whether the CLI could be started at all, as far as it is known.
    pub(crate) fn has_started(&self) -> bool {
        self.not_started.is_none()
    }

    pub(crate) fn take_report(&mut self, report: Report) {
        match report {
            Report::Hello { .. } => self.warnings.extend(self.custody.unkept().map(str::to_owned)),
            Report::Started { pid } => {
                tracing::debug!(pid, "Gemini CLI started");
                self.pid = Some(pid);
            }
            Report::NotStarted { missing, message } => {
                self.over = true;
                self.not_started = Some((missing, message));
            }
            Report::Exited(ended) => {
                self.ended = Some(ended);
                self.exited = Some(Instant::now());
            }
            Report::KeeperLost => {
                if !self.taken_over {
                    self.warnings.push(KEEPER_KILLED.to_owned());
                }
            }
            Report::Swept { ended, names, left } => {
                // Who stops a run knows that it ends what the run had started.
                if ended > 0 && self.stopping.is_none() {
                    self.warnings.push(left_running(ended, &names));
                }
                if left > 0 {
                    self.warnings.push(format!("{left} processes of the run could not be ended"));
                }
            }
            Report::Finished(finished) => {
                self.over = true;
                self.finished = Some(finished);
            }
        }
    }

    /// Begins to stop it.
    pub(crate) fn stop(&mut self, gentle: Gentle) {
        self.stopping.get_or_insert_with(Instant::now);
        self.custody.stop(gentle);
    }

    /// A keeper that was told to stop, or whose CLI is gone, finishes soon, or it is stuck.
    pub(crate) fn check(&mut self, out_of_time: bool) {
        if self.taken_over {
            self.over |= self.custody.guard_is_stuck();
            return;
        }
        let (since, patience) = match (self.exited, self.stopping) {
            (Some(exited), _) if out_of_time => (exited, TIME_TO_CLEAN_UP),
            (Some(exited), _) => (exited, PATIENCE_WITH_KEEPER),
            (None, Some(stopping)) => (stopping, PATIENCE_WITH_LADDER),
            (None, None) => return,
        };
        if since.elapsed() > patience {
            self.taken_over = true;
            self.warnings.push("The keeper of the run did not answer any more and was ended".to_owned());
            self.custody.take_over();
        }
    }

    /// Nothing more is reported: ends the custody, and says what became of the home.
    pub(crate) fn end(&mut self) -> Finished {
        self.custody.end();
        if let Some(finished) = self.finished.take() {
            return finished;
        }
        if self.not_started.is_some() {
            return Finished::default();
        }
        if !self.taken_over && self.custody.has_begun() {
            self.warnings.push(KEEPER_KILLED.to_owned());
        }
        self.home.as_ref().map(|home| home::finish(&home.plan(), Stopped::Midway)).unwrap_or_default()
    }

    /// How it ended, and what it last wrote to standard error.
    pub(crate) fn exit(&self) -> (Exit, String) {
        let exit = match (self.ended, &self.not_started) {
            (Some(ProcessEnd::Code(code)), _) => Exit::Code(code),
            (Some(ProcessEnd::Signal(signal)), _) => Exit::Signal(signal),
            // As a shell would say it.
            (None, Some((true, _))) => Exit::Code(127),
            (None, Some((false, _))) => Exit::Code(126),
            (None, _) => Exit::Signal(9),
        };
        let stderr = self.last_words();
        match &self.not_started {
            Some((_, message)) => (exit, format!("{stderr}Gemini CLI could not be started: {message}")),
            None => (exit, stderr),
        }
    }

    /// The last of what it wrote to standard error.
    fn last_words(&self) -> String {
        self.last_words_since(self.stderr_before)
    }

    /// The same, without what was there when so much had been written.
    pub(crate) fn last_words_since(&self, before: u64) -> String {
        self.in_the_users_words(tail_since(&self.stderr, before))
    }

    /// What the CLI went on without, by its own words.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let said = self.in_the_users_words(head(&self.stderr));
        let log = head(&self.run_dir.path().join(DEBUG_LOG));
        let mut complaints = complaints(&said, &log);
        complaints.retain(|complaint| !complaint.contains(OUR_POLICY));
        complaints
    }

    /// People know their own home, not the one that stood in for it.
    fn in_the_users_words(&self, text: String) -> String {
        match &self.home {
            Some(home) => text.replace(&*home.path().to_string_lossy(), &home.user_home().to_string_lossy()),
            None => text,
        }
    }
}

fn left_running(ended: usize, names: &[String]) -> String {
    let more = if ended > names.len() { ", …" } else { "" };
    let names = names.join(", ");
    match ended {
        1 => format!("A process that was left running when Gemini CLI ended was ended too: {names}"),
        _ => format!(
            "{ended} processes that were left running when Gemini CLI ended were ended too: {names}{more}"
        ),
    }
}

/// The first 64 KiB of a file: the CLI complains when it starts.
fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut bytes));
    String::from_utf8_lossy(if read.is_ok() { &bytes } else { &[] }).into_owned()
}

/// The last 64 KiB of standard error.
pub(crate) fn tail(path: &Path) -> String {
    tail_since(path, 0)
}

fn tail_since(path: &Path, before: u64) -> String {
    fn read(path: &Path, before: u64) -> io::Result<Vec<u8>> {
        use std::io::{Seek, SeekFrom};
        let mut file = std::fs::File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(64 << 10).max(before)))?;
        let mut bytes = Vec::new();
        file.take(64 << 10).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
    String::from_utf8_lossy(&read(path, before).unwrap_or_default()).into_owned()
}
