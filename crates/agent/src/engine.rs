//! The engine of a run: one thread that follows what the CLI writes, keeps the clocks, and stops it.
//!
//! It never waits for the reader of the events: what the reader has not taken stays in the output file, and the clocks
//! go on.

mod finish;
mod happening;
mod reading;

pub(crate) use self::finish::tail;

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use alhena_model::{Input, Stop};
use alhena_sys::growth::Growth;
use alhena_wire::frame::Framer;

use self::happening::Happening;
use self::reading::Progress;
use crate::account::Account;
use crate::follow::Follower;
use crate::home::{Finished, Home};
use crate::recording::LONGEST_LINE;
use crate::retries::Retries;
use crate::run::{Over, Queue, Sessions};
use crate::supervise::custody::{Custody, PATIENCE_WITH_GUARD};
use crate::supervise::protocol::{Ended, Gentle, Report};

/// How long the CLI may take to exit after its `result`.
const GRACE: Duration = Duration::from_secs(10);
/// A keeper that does not finish within this is itself stuck.
const PATIENCE_WITH_KEEPER: Duration = Duration::from_secs(20);
/// How long what a stopped CLI has written is read.
const READING_AFTER_STOP: Duration = Duration::from_secs(3);
/// What cleaning up may take beyond the time limit of the run.
const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(5);

const KEEPER_KILLED: &str = "The keeper of the run was killed; what it held was ended without it";

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of the whole, and since when.
    pub timeout: Option<Duration>,
    pub began: Instant,
    pub first_event: Option<Duration>,
    pub stall: Option<Duration>,
    pub output: u64,
    pub stderr: u64,
}

pub(crate) struct Engine {
    pub custody: Custody,
    pub stdout: Follower,
    pub stderr: PathBuf,
    pub growth: Growth,
    pub asked_to_stop: UnixStream,
    pub queue: Queue,
    pub account: Account,
    pub limits: Limits,
    /// Tools that the caller denied.
    pub denied: Vec<String>,
    pub started: Instant,
    /// Removed when the run is over.
    pub run_dir: crate::run_dir::RunDir,
    /// Ours as long as nobody else holds it: without a keeper process we keep it.
    pub home: Option<Home>,
    pub sessions: Sessions,
    /// Set when nothing of the run is left.
    pub over: Over,
}

/// What the thread knows while it runs.
struct RunState {
    framer: Framer,
    /// When the CLI last wrote something, as far as it has been read.
    heard: Instant,
    /// When the `result` came.
    result: Option<Instant>,
    stopping: Option<Instant>,
    /// Why it is being stopped, and what was there by then.
    stop: Option<Stopped>,
    /// Some of what the CLI wrote was left unread, because it was being stopped.
    cut_short: bool,
    /// How long a reader that took nothing has kept us since the CLI was gone.
    waited_for_reader: Duration,
    ended: Option<Ended>,
    /// When the CLI's own process was gone: from then on only the keeper is waited for.
    exited: Option<Instant>,
    /// When the keeper had not answered for too long, and its guard was told to take over.
    taken_over: Option<Instant>,
    not_started: Option<(bool, String)>,
    keeper_gone: bool,
    /// The keeper has put the run's home away.
    finished_by_keeper: bool,
    /// Whoever could ask for a stop is gone.
    nobody_can_ask: bool,
    /// The ids of the run's sessions that are in the user's store.
    stored_sessions: Vec<String>,
    retries: Retries,
}

/// A stop that was begun.
#[derive(Clone, Copy, Debug)]
struct Stopped {
    why: Stop,
    at: Instant,
    /// How much the CLI had written by then.
    written: u64,
    /// Whether the interpreter knows.
    told: bool,
    /// Somebody asked again, and wants no more patience with anything.
    at_once: bool,
    /// The CLI had ended by itself: the stop matters only if it keeps us from reading how.
    after_end: bool,
}

impl RunState {
    /// Whether to read on: after a stop only for a while, since nobody waits for the rest.
    fn may_read(&self) -> bool {
        self.stop.is_none_or(|stop| !stop.at_once && stop.at.elapsed() < READING_AFTER_STOP)
    }
}

impl Engine {
    /// Runs to the end.
    pub(crate) fn run(mut self) {
        let mut watch = RunState {
            framer: Framer::new(LONGEST_LINE),
            heard: self.started,
            result: None,
            stopping: None,
            stop: None,
            cut_short: false,
            waited_for_reader: Duration::ZERO,
            ended: None,
            exited: None,
            taken_over: None,
            not_started: None,
            keeper_gone: false,
            finished_by_keeper: false,
            nobody_can_ask: false,
            stored_sessions: Vec::new(),
            retries: Retries::new(&self.stderr),
        };
        if !self.denied.is_empty() {
            let denied = std::mem::take(&mut self.denied);
            self.account.feed(Input::Denied(denied));
        }
        self.account.tick();
        self.account.warn_all();
        let mut progress = Progress::ThereIsMore;
        while !watch.keeper_gone {
            let happening = self.next(&watch, progress);
            progress = self.see_to(happening, &mut watch);
        }
        self.finish(watch);
    }

    /// Sees to one thing. Whatever it was, there may be something to read as well.
    fn see_to(&mut self, happening: Happening, watch: &mut RunState) -> Progress {
        match happening {
            Happening::Report(report) => self.take_report(report, watch),
            Happening::KeeperGone => watch.keeper_gone = true,
            Happening::StopAsked | Happening::NobodyListens => self.stop(Stop::Cancelled, watch),
            Happening::StopAskedAtOnce => self.stop_at_once(watch),
            Happening::NobodyCanAsk => {
                watch.nobody_can_ask = true;
                self.stop(Stop::Cancelled, watch);
            }
            Happening::TimeToLook => {
                let progress = self.read(watch);
                self.check_clocks(watch);
                return progress;
            }
        }
        Progress::ThereIsMore
    }

    fn check_clocks(&mut self, watch: &mut RunState) {
        self.check_keeper(watch);
        if watch.ended.is_some() || watch.stopping.is_some() {
            return;
        }
        // While a tool runs the CLI has nothing to say, and while the reader is behind we do not hear it.
        if self.account.interpreter.tool_open() || self.stdout.position() < self.stdout.len() {
            watch.heard = Instant::now();
        }
        if self.stdout.len() > self.limits.output {
            self.stop(Stop::TooMuchOutput(self.limits.output), watch);
        } else if watch.retries.written() > self.limits.stderr {
            self.stop(Stop::TooMuchStderr(self.limits.stderr), watch);
        } else if let Some((_, stop)) = self.next_alarm(watch).filter(|(at, _)| *at <= Instant::now()) {
            self.stop(stop, watch);
        }
    }

    /// A keeper that was told to stop, or whose CLI is gone, finishes soon, or it is stuck.
    fn check_keeper(&mut self, watch: &mut RunState) {
        if let Some(since) = watch.taken_over {
            watch.keeper_gone |= since.elapsed() > PATIENCE_WITH_GUARD;
            return;
        }
        let Some(since) = watch.exited.or(watch.stopping) else { return };
        let out_of_time = watch.exited.is_some()
            && self.limits.timeout.is_some_and(|limit| self.limits.began.elapsed() > limit)
            && since.elapsed() > TIME_TO_CLEAN_UP;
        if out_of_time || since.elapsed() > PATIENCE_WITH_KEEPER {
            watch.taken_over = Some(Instant::now());
            self.account.warnings.push("The keeper of the run did not answer any more and was ended".to_owned());
            self.custody.take_over();
        }
    }

    /// The clock that rings first.
    fn next_alarm(&self, watch: &RunState) -> Option<(Instant, Stop)> {
        if watch.stopping.is_some() || watch.ended.is_some() {
            return None;
        }
        let total = self.limits.timeout.map(|limit| (self.limits.began + limit, Stop::Timeout(limit)));
        let quiet = match watch.result {
            Some(result) => Some((result + GRACE, Stop::NoExit)),
            None if self.stdout.position() == 0 => {
                self.limits.first_event.map(|limit| (self.started + limit, Stop::NoFirstEvent(limit)))
            }
            None => self.limits.stall.map(|limit| (watch.heard + limit, Stop::Silence(limit))),
        };
        total.into_iter().chain(quiet).min_by_key(|(at, _)| *at)
    }

    /// Begins to stop the run; of one whose CLI is gone already only the reading is left to be stopped.
    fn stop(&mut self, why: Stop, watch: &mut RunState) {
        if watch.stop.is_some() {
            return;
        }
        let at = Instant::now();
        let after_end = watch.ended.is_some();
        let written = self.stdout.len();
        watch.stop = Some(Stopped { why, at, written, told: false, at_once: false, after_end });
        if after_end {
            return;
        }
        watch.stopping = Some(at);
        // Before `init` the CLI loses a ^C.
        let gentle = if self.stdout.position() > 0 { Gentle::Yes } else { Gentle::No };
        self.custody.stop(gentle);
    }

    fn take_report(&mut self, report: Report, watch: &mut RunState) {
        match report {
            Report::Hello { .. } => self.account.warnings.extend(self.custody.unkept().map(str::to_owned)),
            Report::Started { pid } => tracing::debug!(pid, "Gemini CLI started"),
            Report::NotStarted { missing, message } => {
                watch.keeper_gone = true;
                watch.not_started = Some((missing, message));
            }
            Report::Exited(ended) => {
                watch.ended = Some(ended);
                watch.exited = Some(Instant::now());
            }
            Report::KeeperLost => {
                if watch.taken_over.is_none() {
                    self.account.warnings.push(KEEPER_KILLED.to_owned());
                }
            }
            Report::Swept { ended, names, left } => {
                // Who stops a run knows that it ends what the run had started.
                if ended > 0 && watch.stopping.is_none() {
                    self.account.warnings.push(left_running(ended, &names));
                }
                if left > 0 {
                    self.account.warnings.push(format!("{left} processes of the run could not be ended"));
                }
            }
            Report::Finished(finished) => {
                watch.keeper_gone = true;
                watch.finished_by_keeper = true;
                self.take_sessions(finished, watch);
            }
        }
    }

    /// Ends at once what a stop ends gently.
    fn stop_at_once(&mut self, watch: &mut RunState) {
        self.stop(Stop::Cancelled, watch);
        let Some(stop) = watch.stop.as_mut().filter(|stop| !stop.at_once) else { return };
        stop.at_once = true;
        if watch.ended.is_none() {
            self.custody.stop(Gentle::AtOnce);
        }
    }

    /// What became of the sessions of the run.
    fn take_sessions(&mut self, finished: Finished, watch: &mut RunState) {
        self.account.warnings.extend(finished.warnings);
        if let Some(recorder) = &mut self.account.recorder {
            recorder.sessions(&finished.published);
        }
        watch.stored_sessions = finished.sessions;
        *self.sessions.lock().unwrap_or_else(PoisonError::into_inner) = finished.published;
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
