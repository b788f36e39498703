//! The engine of a run: one thread that follows what the CLI writes, keeps the clocks, and stops it.
//!
//! It never waits for the reader of the events: what the reader has not taken stays in the output file, and the clocks
//! go on.

mod finish;
mod going_on;
mod happening;
mod reading;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use alhena_model::{Input, Stop};
use alhena_sys::growth::Growth;
use alhena_sys::sockets::Stream;
use alhena_wire::frame::Framer;

use self::happening::Happening;
use self::reading::Progress;
use crate::account::Account;
use crate::follow::Follower;
use crate::prepare::Again;
use crate::rate_limit::Patience;
use crate::recording::LONGEST_LINE;
use crate::retries::Retries;
use crate::run::{Over, Queue, Sessions};
use crate::supervise::protocol::Gentle;
use crate::ward::Ward;

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

pub(crate) struct Engine {
    pub ward: Ward,
    pub stdout: Follower,
    pub growth: Growth,
    pub asked_to_stop: Stream,
    pub queue: Queue,
    pub account: Account,
    pub limits: Limits,
    /// Tools that the caller denied.
    pub denied: Vec<String>,
    pub started: Instant,
    /// What decides when the API limits requests, and what starts the CLI once more then.
    pub patience: Patience,
    pub again: Option<Again>,
    pub keeper: Option<PathBuf>,
    pub sessions: Sessions,
    /// Set when nothing of the run is left.
    pub over: Over,
}

/// What the thread knows while it runs.
struct RunState {
    framer: Framer,
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
    /// Whoever could ask for a stop is gone.
    nobody_can_ask: bool,
    retries: Retries,
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
    fn new(began: Instant, retries: Retries) -> Self {
        Self {
            framer: Framer::new(LONGEST_LINE),
            began,
            position: 0,
            heard: began,
            waits_until: began,
            result: None,
            stop: None,
            cut_short: false,
            waited_for_reader: Duration::ZERO,
            reader_is_idle: Duration::ZERO,
            nobody_can_ask: false,
            retries,
            moves: None,
        }
    }

    /// Whether whoever reads has had its time after a stop: longer if it takes something now and then.
    fn has_waited_enough(&self) -> bool {
        let Some(stop) = self.stop else { return false };
        let time = stop.at.elapsed();
        let enough = time > READING_AFTER_STOP && (stop.after_end || self.reader_is_idle > SLOW_READER);
        stop.at_once || enough || time > READING_AT_MOST
    }
}

impl Engine {
    /// Whether to read on: after a stop what a CLI says until its end, and of a flood only so much as there is time for.
    fn may_read(&self, watch: &RunState) -> bool {
        let Some(stop) = watch.stop else { return true };
        let rest = self.stdout.len().saturating_sub(self.stdout.position());
        let time = stop.at.elapsed();
        let last_words = !stop.after_end && rest <= LAST_WORDS && time < READING_AT_MOST;
        let speaks = !stop.after_end && !self.is_gone();
        !stop.at_once && (speaks || last_words || time < READING_AFTER_STOP)
    }

    /// Whether the CLI is gone. A keeper that was lost does not tell.
    fn is_gone(&self) -> bool {
        self.ward.ended.is_some() || self.ward.over
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) {
        let mut watch = RunState::new(self.started, Retries::new(&self.ward.stderr));
        if self.patience.may_go_on() {
            self.account.feed(Input::MayGoOn);
        }
        if !self.denied.is_empty() {
            let denied = std::mem::take(&mut self.denied);
            self.account.feed(Input::Denied(denied));
        }
        self.account.warnings.append(&mut self.ward.warnings);
        self.account.tick();
        self.account.warn_all();
        loop {
            let mut progress = Progress::ThereIsMore;
            while !self.ward.over {
                let happening = self.next(&watch, progress);
                progress = self.see_to(happening, &mut watch);
            }
            let finished = self.end_attempt(&mut watch);
            if !self.goes_on(&finished, &mut watch) {
                return self.finish(&finished);
            }
        }
    }

    /// Sees to one thing. Whatever it was, there may be something to read as well.
    fn see_to(&mut self, happening: Happening, watch: &mut RunState) -> Progress {
        match happening {
            Happening::Report(report) => {
                self.ward.take_report(report);
                if self.ward.ended.is_some() {
                    // What is left is read to its end, whoever tells of it.
                    self.growth.rest();
                    self.account.session_growth().into_iter().for_each(Growth::rest);
                }
            }
            Happening::KeeperGone => self.ward.over = true,
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
        self.ward.check(self.limits.timeout.is_some_and(|limit| self.limits.began.elapsed() > limit));
        if self.ward.ended.is_some() || self.ward.stopping.is_some() {
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
        } else if self.ward.is_over_budget() {
            self.stop(Stop::Cancelled, watch);
        } else if let Some((_, stop)) = self.next_alarm(watch).filter(|(at, _)| *at <= Instant::now()) {
            self.stop(stop, watch);
        }
    }

    /// The clock that rings first.
    fn next_alarm(&self, watch: &RunState) -> Option<(Instant, Stop)> {
        if self.ward.stopping.is_some() || self.ward.ended.is_some() {
            return None;
        }
        let total = self.limits.timeout.map(|limit| (self.limits.began + limit, Stop::Timeout(limit)));
        let quiet = match watch.result {
            Some(result) => Some((result + GRACE, Stop::NoExit)),
            None if self.stdout.position() == watch.position => {
                self.limits.first_event.map(|limit| (watch.began + limit, Stop::NoFirstEvent(limit)))
            }
            None => {
                let heard = watch.heard.max(watch.waits_until);
                self.limits.stall.map(|limit| (heard + limit, Stop::Silence(limit)))
            }
        };
        total.into_iter().chain(quiet).min_by_key(|(at, _)| *at)
    }

    /// Begins to stop the run; of one whose CLI is gone already only the reading is left to be stopped.
    fn stop(&mut self, why: Stop, watch: &mut RunState) {
        if watch.stop.is_some() {
            return;
        }
        let at = Instant::now();
        let after_end = self.is_gone();
        let written = self.stdout.len();
        watch.stop = Some(Stopped { why, at, written, told: false, at_once: false, after_end });
        if after_end {
            return;
        }
        // Before `init` the CLI loses a ^C.
        let has_begun = self.stdout.position() > watch.position;
        let gentle = if has_begun { Gentle::Yes } else { Gentle::No };
        self.ward.stop(gentle);
    }

    /// Ends at once what a stop ends gently.
    fn stop_at_once(&mut self, watch: &mut RunState) {
        self.stop(Stop::Cancelled, watch);
        let Some(stop) = watch.stop.as_mut().filter(|stop| !stop.at_once) else { return };
        stop.at_once = true;
        if !self.is_gone() {
            self.ward.stop(Gentle::AtOnce);
        }
    }
}
