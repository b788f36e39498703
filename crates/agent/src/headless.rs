//! The headless transport: one prompt, whose answer is the stream-json that the CLI writes to a file.

mod finish;
mod going_on;
mod reading;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use alhena_model::{Input, Stop};
use alhena_sys::growth::Growth;
use alhena_wire::frame::Framer;

use self::reading::Progress;
use crate::account::Account;
use crate::engine::{Outlet, Process, READER_IS_BEHIND, StopAsked, Transport, Waits, first_alarm};
use crate::home::Finished;
use crate::prepare::Again;
use crate::rate_limit::Patience;
use crate::recording::LONGEST_LINE;
use crate::run::Listener;
use crate::supervise::protocol::Gentle;

/// How long the CLI may take to exit after its `result`.
const GRACE: Duration = Duration::from_secs(10);
/// How long what a CLI that was stopped has left is read, if it is a flood.
const READING_AFTER_STOP: Duration = Duration::from_secs(3);
/// How long anything is read after a stop whose CLI is gone.
const READING_AT_MOST: Duration = Duration::from_secs(9);
/// So long a reader may take nothing meanwhile.
const SLOW_READER: Duration = Duration::from_secs(1);
/// What it wrote until its end is read for longer if it is no more than this.
const LAST_WORDS: u64 = 4 << 20;

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

pub(crate) struct Headless {
    pub process: Process,
    pub outlet: Outlet,
    pub account: Account,
    pub limits: Limits,
    /// Tools that the caller denied.
    pub denied: Vec<String>,
    /// What decides when the API limits requests, and what starts the CLI once more then.
    pub patience: Patience,
    pub again: Option<Again>,
    pub keeper: Option<PathBuf>,
    pub state: RunState,
}

/// What is known of the run while it goes on.
pub(crate) struct RunState {
    framer: Framer,
    /// How far the reading has got.
    progress: Progress,
    /// When this CLI was started, and how much there was to read before.
    began: Instant,
    position: u64,
    /// When the CLI last wrote something, as far as it has been read.
    heard: Instant,
    /// Until then it waits for the API, and is silent.
    waits_until: Instant,
    /// When the `result` came.
    result: Option<Instant>,
    /// Why it is being stopped, and what was there by then.
    stop: Option<Stopped>,
    /// Some of what the CLI wrote was left unread, because it was being stopped.
    cut_short: bool,
    /// How long a reader that took nothing has kept us since the CLI was gone.
    waited_for_reader: Duration,
    /// The same since it last took something.
    reader_is_idle: Duration,
    /// What the attempt that ended has left.
    finished: Finished,
    /// Another CLI is to go on, if this one still waits by then for the API when its tools have ended.
    moves: Option<(Stop, Instant)>,
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
    pub(crate) fn new(began: Instant) -> Self {
        Self {
            framer: Framer::new(LONGEST_LINE),
            progress: Progress::ThereIsMore,
            began,
            position: 0,
            heard: began,
            waits_until: began,
            result: None,
            stop: None,
            cut_short: false,
            waited_for_reader: Duration::ZERO,
            reader_is_idle: Duration::ZERO,
            finished: Finished::default(),
            moves: None,
        }
    }

    /// Another CLI has begun, whose output starts here.
    fn begin_attempt(&mut self, position: u64) {
        let now = Instant::now();
        (self.began, self.heard, self.waits_until) = (now, now, now);
        (self.position, self.result) = (position, None);
    }

    /// Whether whoever reads has had its time after a stop: longer if it takes something now and then.
    fn has_waited_enough(&self) -> bool {
        let Some(stop) = self.stop else { return false };
        let time = stop.at.elapsed();
        let enough = time > READING_AFTER_STOP && (stop.after_end || self.reader_is_idle > SLOW_READER);
        stop.at_once || enough || time > READING_AT_MOST
    }
}

impl Transport for Headless {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn begin(&mut self) {
        if self.patience.may_go_on() {
            self.account.feed(Input::MayGoOn);
        }
        if !self.denied.is_empty() {
            let denied = std::mem::take(&mut self.denied);
            self.account.feed(Input::Denied(denied));
        }
        self.account.warnings.append(&mut self.process.ward.warnings);
        self.account.tick();
        self.account.warn_all();
    }

    fn wait(&mut self) {
        if self.state.progress == Progress::ThereIsMore {
            return;
        }
        let is_behind = self.state.progress == Progress::ReaderIsBehind;
        self.process.wait(Waits {
            longest: is_behind.then_some(READER_IS_BEHIND),
            alarms: [self.next_alarm().map(|(at, _)| at), None],
            account: Some(&self.account),
            others: Vec::new(),
            ignores_output: is_behind,
        });
    }

    fn cli_has_exited(&mut self) {
        // What is left is read to its end, whether or not the system tells of it.
        self.process.growth.rest();
        self.account.session_growth().into_iter().for_each(Growth::rest);
    }

    fn stop_asked(&mut self, asked: StopAsked) {
        match asked {
            StopAsked::Gently | StopAsked::CallerIsGone => self.stop(Stop::Cancelled),
            StopAsked::AtOnce => self.stop_at_once(),
        }
    }

    fn read(&mut self) {
        self.state.progress = self.read_on();
    }

    fn go_on(&mut self) {
        if self.outlet.listener() == Listener::Gone {
            self.stop(Stop::Cancelled);
        }
    }

    fn check_limits(&mut self) {
        let Self { process, limits, state, account, .. } = self;
        process.ward.check(limits.timeout.is_some_and(|limit| limits.began.elapsed() > limit));
        if process.is_gone() || process.ward.stopping.is_some() {
            return;
        }
        // While a tool runs the CLI has nothing to say, and while the reader is behind nobody hears it.
        if account.interpreter.tool_open() || process.stdout.position() < process.stdout.len() {
            state.heard = Instant::now();
        }
        if let Some(stop) = process.too_much_written((limits.output, limits.stderr), (0, 0)) {
            self.stop(stop);
        } else if process.ward.is_over_budget() {
            self.stop(Stop::Cancelled);
        } else if let Some((_, stop)) = self.next_alarm().filter(|(at, _)| *at <= Instant::now()) {
            self.stop(stop);
        }
    }

    fn is_continued(&mut self) -> bool {
        let finished = self.end_attempt();
        let is_continued = self.goes_on(&finished);
        self.state.finished = finished;
        is_continued
    }

    fn finish(self) {
        self.judge();
    }
}

impl Headless {
    /// Returns what callers have asked for; one that takes no events any more wants a stop.
    fn asked(&mut self) -> Option<StopAsked> {
        let alone = self.outlet.listener() == Listener::Gone && self.state.stop.is_none();
        self.process.stop_asked().or(alone.then_some(StopAsked::CallerIsGone))
    }

    /// Whether to read on: after a stop what a CLI says until its end, and of a flood only so much as there is time for.
    fn may_read(&self) -> bool {
        let Some(stop) = self.state.stop else { return true };
        let rest = self.process.stdout.len().saturating_sub(self.process.stdout.position());
        let time = stop.at.elapsed();
        let last_words = !stop.after_end && rest <= LAST_WORDS && time < READING_AT_MOST;
        let speaks = !stop.after_end && !self.process.is_gone();
        !stop.at_once && (speaks || last_words || time < READING_AFTER_STOP)
    }

    /// The clock that rings first.
    fn next_alarm(&self) -> Option<(Instant, Stop)> {
        if self.process.ward.stopping.is_some() || self.process.ward.ended.is_some() {
            return None;
        }
        let quiet = match self.state.result {
            Some(result) => Some((result + GRACE, Stop::NoExit)),
            None if self.process.stdout.position() == self.state.position => {
                self.limits.first_event.map(|limit| (self.state.began + limit, Stop::NoFirstEvent(limit)))
            }
            None => {
                let heard = self.state.heard.max(self.state.waits_until);
                self.limits.stall.map(|limit| (heard + limit, Stop::Silence(limit)))
            }
        };
        first_alarm((self.limits.began, self.limits.timeout), quiet)
    }

    /// Begins to stop the run; of one whose CLI is gone already only the reading is left to be stopped.
    fn stop(&mut self, why: Stop) {
        if self.state.stop.is_some() {
            return;
        }
        let at = Instant::now();
        let after_end = self.process.is_gone();
        let written = self.process.stdout.len();
        self.state.stop = Some(Stopped { why, at, written, told: false, at_once: false, after_end });
        if after_end {
            return;
        }
        // Before `init` the CLI loses a ^C.
        let has_begun = self.process.stdout.position() > self.state.position;
        let gentle = if has_begun { Gentle::Yes } else { Gentle::No };
        self.process.ward.stop(gentle);
    }

    /// Ends at once what a stop ends gently.
    fn stop_at_once(&mut self) {
        self.stop(Stop::Cancelled);
        let Some(stop) = self.state.stop.as_mut().filter(|stop| !stop.at_once) else { return };
        stop.at_once = true;
        if !self.process.is_gone() {
            self.process.ward.stop(Gentle::AtOnce);
        }
    }
}
