//! A run goes on after the API limited its requests: it waits, and another CLI takes up the session.

use std::time::{Duration, Instant};

use alhena_model::{End, Input, Stop, Timestamp};
use alhena_sys::growth::Growth;
use alhena_sys::poll::{self, Wanted};

use super::happening::{Happening, LONGEST_WAIT, READER_IS_BEHIND};
use super::{Engine, RunState};
use crate::home::Finished;
use crate::prepare::{Left, Restart};
use crate::rate_limit::Meanwhile;
use crate::retries::Attempt;
use crate::supervise::custody::{Custody, Locks};
use crate::supervise::protocol::Gentle;
use crate::tail::SessionTail;

/// How long the CLI waits that does not say so.
const SOME_TIME: Duration = Duration::from_secs(5);

impl Engine {
    /// Gemini CLI says that it tries again, perhaps after a while.
    pub(super) fn hear_of_attempt(&mut self, attempt: &Attempt, watch: &mut RunState) {
        let (told, meanwhile) = self.patience.hear(attempt);
        self.account.tick();
        self.account.feed(Input::Warning(told));
        if self.is_gone() || watch.stop.is_some() {
            return;
        }
        let stop = Stop::RateLimit { retry_after_ms: attempt.asked.map(|time| time.as_millis() as u64) };
        match meanwhile {
            Meanwhile::Wait => {
                watch.waits_until = Instant::now() + attempt.waits.unwrap_or_default();
            }
            Meanwhile::TooLong => self.stop(stop, watch),
            Meanwhile::Move => {
                watch.moves = Some((stop, Instant::now() + attempt.waits.unwrap_or(SOME_TIME)))
            }
        }
    }

    /// All that was said is read: if no tool runs, and the CLI still waits, another one goes on. A tool that runs beside is not to be
    /// lost: then the CLI may try, unless the tool ends first.
    pub(super) fn move_if_it_can(&mut self, watch: &mut RunState) {
        let Some((stop, waits_until)) = watch.moves else { return };
        if watch.stop.is_some() || self.is_gone() || Instant::now() >= waits_until {
            watch.moves = None;
        } else if !self.account.interpreter.tool_open() {
            watch.moves = None;
            self.stop(stop, watch);
            // It has nothing to say goodbye to, and would take its session back.
            self.ward.stop(Gentle::AtOnce);
        }
    }

    /// The attempt has ended: whether there is another one, which is under way then.
    pub(super) fn goes_on(&mut self, finished: &Finished, watch: &mut RunState) -> bool {
        if self.again.is_none() || self.is_settled(watch) {
            return false;
        }
        let (exit, stderr) = self.ward.exit();
        let Some(failure) = self.account.would_fail_of(&End { exit, stderr, duration_ms: None }) else {
            return false;
        };
        let next = match self.patience.after(&failure) {
            Ok(next) => next,
            Err(why) => {
                self.account.tick();
                self.account.warnings.extend(why);
                self.account.warn_all();
                return false;
            }
        };
        let left = self.left(finished, watch);
        let Some(left) = left else {
            self.account
                .warnings
                .push("The session was not kept, so that nobody can go on with it".to_owned());
            return false;
        };
        self.account.tick();
        self.account.feed(Input::Warning(next.told));
        self.account.feed(Input::GoesOn);
        watch.stop = None;
        if !self.wait_until(Instant::now() + next.after, watch) {
            return false;
        }
        match self.start_again(left, next.model, watch) {
            Ok(()) => true,
            Err(why) => {
                self.account.warnings.push(format!("The run could not go on: {why}"));
                false
            }
        }
    }

    /// Whether how it ended is decided, whatever the API said: somebody stopped it, or there is nothing left to spend.
    fn is_settled(&self, watch: &RunState) -> bool {
        let stopped = watch.stop.is_some_and(|stop| !matches!(stop.why, Stop::RateLimit { .. }));
        stopped || self.ward.run_dir.is_spent()
    }

    /// What the attempt has left to go on with; none where that is lost.
    fn left(&self, finished: &Finished, watch: &RunState) -> Option<Left> {
        let id = self.account.interpreter.session_id().map(str::to_owned);
        // One that was ended from outside had no time to take anything back.
        let kept = self.account.interpreter.was_answered() || watch.stop.is_some();
        let stored = id.clone().filter(|id| self.ward.home.is_none() || finished.sessions.contains(id));
        match (stored, kept) {
            (Some(id), true) => Some(Left::Begun(id)),
            (Some(id), false) if self.ward.home.is_some() => Some(Left::AsBefore(id)),
            (Some(_), false) => Some(Left::Nothing(None)),
            (None, true) if id.is_some() => None,
            (None, _) => Some(Left::Nothing(id)),
        }
    }

    /// Waits between two attempts; false when the run is over instead.
    fn wait_until(&mut self, until: Instant, watch: &mut RunState) -> bool {
        loop {
            let all_out = self.hand_out();
            let stop = match self.stop_asked(watch) {
                Some(Happening::NobodyCanAsk) => {
                    watch.nobody_can_ask = true;
                    Some(Stop::Cancelled)
                }
                Some(_) => Some(Stop::Cancelled),
                None => self
                    .limits
                    .timeout
                    .filter(|limit| self.limits.began.elapsed() >= *limit)
                    .map(Stop::Timeout),
            };
            if let Some(stop) = stop {
                self.account.tick();
                self.account.feed(Input::Stop(stop));
                return false;
            }
            let now = Instant::now();
            if now >= until {
                return true;
            }
            let longest = if all_out { LONGEST_WAIT } else { READER_IS_BEHIND };
            let alarm = self.limits.timeout.map(|limit| self.limits.began + limit);
            let next = alarm.map_or(until, |alarm| alarm.min(until)).saturating_duration_since(now);
            let wanted = [Wanted::readable(&self.asked_to_stop)];
            let wanted = if watch.nobody_can_ask { &[][..] } else { &wanted };
            let _looked_at_anyway = poll::wait(wanted, Some(next.min(longest)));
        }
    }

    fn start_again(&mut self, left: Left, model: Option<String>, watch: &mut RunState) -> Result<(), String> {
        let Some(again) = &mut self.again else { return Err("nobody knows how".to_owned()) };
        // Its place can be taken again.
        drop(self.ward.home.take());
        let turns = self.account.interpreter.turns();
        let run_dir = &self.ward.run_dir;
        let restart = again.prepare(left, model, turns, run_dir).map_err(|error| error.to_string())?;
        let Restart { launch, home, warnings } = restart;
        let locks = Locks { home: home.as_ref().map(|home| home.lock()), run: Some(run_dir.lock()) };
        let custody =
            Custody::take(&launch, self.keeper.as_deref(), locks).map_err(|error| error.to_string())?;
        if let (Some(meter), Some(home)) = (run_dir.meter(), &home) {
            meter.follow(home.chats_dir());
        }
        self.account.session = home.as_ref().map(|home| {
            SessionTail::new(home.chats_dir(), Timestamp::now(), Growth::new()).with_sub_agents()
        });
        for file in [&launch.stdout, &launch.stderr] {
            self.growth.watch(file.as_ref());
        }
        self.account.warnings.extend(warnings);
        self.ward.begin_again(custody, home);
        let now = Instant::now();
        (watch.began, watch.heard, watch.waits_until) = (now, now, now);
        (watch.position, watch.result) = (self.stdout.position(), None);
        self.account.warnings.append(&mut self.ward.warnings);
        self.account.warn_all();
        Ok(())
    }
}
