//! A run goes on after the API limited its requests: it waits, and another CLI takes up the session.

use std::time::{Duration, Instant};

use alhena_model::{End, Input, Stop};

use super::Headless;
use crate::engine::{LONGEST_WAIT, Process, READER_IS_BEHIND};
use crate::home::Finished;
use crate::prepare::Left;
use crate::rate_limit::Meanwhile;
use crate::retries::Attempt;
use crate::supervise::protocol::Gentle;
use crate::tail::SessionTail;

/// How long the CLI waits that does not say so.
const SOME_TIME: Duration = Duration::from_secs(5);

impl Headless {
    /// Gemini CLI says that it tries again, perhaps after a while.
    pub(super) fn hear_of_attempt(&mut self, attempt: &Attempt) {
        let meanwhile = self.account.hear_attempt(&mut self.patience, attempt);
        if self.process.is_gone() || self.state.stop.is_some() {
            return;
        }
        let stop = Stop::RateLimit { retry_after_ms: attempt.asked.map(|time| time.as_millis() as u64) };
        match meanwhile {
            Meanwhile::Wait => {
                self.state.waits_until = Instant::now() + attempt.waits.unwrap_or_default();
            }
            Meanwhile::TooLong => self.stop(stop),
            Meanwhile::Move => {
                self.state.moves = Some((stop, Instant::now() + attempt.waits.unwrap_or(SOME_TIME)))
            }
        }
    }

    /// All that was said is read: if no tool runs, and the CLI still waits, another one goes on. A tool that runs beside is not to be
    /// lost: then the CLI may try, unless the tool ends first.
    pub(super) fn move_if_it_can(&mut self) {
        let Some((stop, waits_until)) = self.state.moves else { return };
        if self.state.stop.is_some() || self.process.is_gone() || Instant::now() >= waits_until {
            self.state.moves = None;
        } else if !self.account.interpreter.tool_open() {
            self.state.moves = None;
            self.stop(stop);
            // It has nothing to say goodbye to, and would take its session back.
            self.process.ward.stop(Gentle::AtOnce);
        }
    }

    /// The attempt has ended: whether there is another one, which is under way then.
    pub(super) fn goes_on(&mut self, finished: &Finished) -> bool {
        if self.again.is_none() || self.is_settled() {
            return false;
        }
        let (exit, stderr) = self.process.ward.exit();
        let end = End { exit, stderr, duration_ms: None };
        let Some(next) = self.account.next_attempt(&mut self.patience, &end) else { return false };
        let Some(left) = self.left(finished) else {
            self.account
                .warnings
                .push("The session was not kept, so that nobody can go on with it".to_owned());
            return false;
        };
        self.account.tick();
        self.account.feed(Input::Warning(next.told));
        self.account.feed(Input::GoesOn);
        self.state.stop = None;
        if !self.wait_until(Instant::now() + next.after) {
            return false;
        }
        match self.start_again(left, next.model) {
            Ok(()) => true,
            Err(why) => {
                self.account.warnings.push(format!("The run could not go on: {why}"));
                false
            }
        }
    }

    /// Whether how it ended is decided, whatever the API said: somebody stopped it, or there is nothing left to spend.
    fn is_settled(&self) -> bool {
        let stopped = self.state.stop.is_some_and(|stop| !matches!(stop.why, Stop::RateLimit { .. }));
        stopped || self.process.ward.run_dir.is_spent()
    }

    /// What the attempt has left to go on with; none where that is lost.
    fn left(&self, finished: &Finished) -> Option<Left> {
        let id = self.account.interpreter.session_id().map(str::to_owned);
        // One that was ended from outside had no time to take anything back.
        let kept = self.account.interpreter.was_answered() || self.state.stop.is_some();
        let stored =
            id.clone().filter(|id| self.process.ward.home.is_none() || finished.sessions.contains(id));
        match (stored, kept) {
            (Some(id), true) => Some(Left::Begun(id)),
            (Some(id), false) if self.process.ward.home.is_some() => Some(Left::AsBefore(id)),
            (Some(_), false) => Some(Left::Nothing(None)),
            (None, true) if id.is_some() => None,
            (None, _) => Some(Left::Nothing(id)),
        }
    }

    /// Waits between two attempts; false when the run is over instead.
    fn wait_until(&mut self, until: Instant) -> bool {
        loop {
            let all_out = self.outlet.hand_out(&mut self.account.waiting);
            let stop = match self.asked() {
                Some(_) => Some(Stop::Cancelled),
                None => {
                    let over = |limit: &Duration| self.limits.began.elapsed() >= *limit;
                    self.limits.timeout.filter(over).map(Stop::Timeout)
                }
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
            self.process.wait_for_caller(next.min(longest));
        }
    }

    fn start_again(&mut self, left: Left, model: Option<String>) -> Result<(), String> {
        let Some(again) = &mut self.again else { return Err("nobody knows how".to_owned()) };
        // Its place can be taken again.
        drop(self.process.ward.home.take());
        let turns = self.account.interpreter.turns();
        let restart = again.prepare(left, model, turns, &self.process.ward.run_dir);
        let restart = restart.map_err(|error| error.to_string())?;
        self.process.restart(restart, self.keeper.as_deref()).map_err(|error| error.to_string())?;
        let Process { ward, stdout, .. } = &mut self.process;
        if let (Some(meter), Some(home)) = (ward.run_dir.meter(), &ward.home) {
            meter.follow(home.chats_dir());
        }
        self.state.begin_attempt(stdout.position());
        self.account.warnings.append(&mut ward.warnings);
        self.account.session = self.process.session_tail().map(SessionTail::with_sub_agents);
        self.account.warn_all();
        Ok(())
    }
}
