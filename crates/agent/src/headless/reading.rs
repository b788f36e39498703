//! Reading what the CLI writes: its stream, its session file, and what only stderr says.

use std::time::{Duration, Instant};

use alhena_model::{Input, Stop};

use super::Headless;
use crate::engine::{READ_AT_A_TIME, READER_IS_BEHIND, Transport};
use crate::run::Listener;

/// How far the reading has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is nothing more for now.
    AllRead,
    /// There is more, and it can be read at once.
    ThereIsMore,
    /// Whoever takes the events has to take some first.
    ReaderIsBehind,
}

impl Headless {
    /// Hands out what waits, then reads on: as far as the reader keeps up, and never for long, because the clocks, the
    /// keeper and whoever wants to stop the run have to be looked at in between.
    pub(super) fn read_on(&mut self) -> Progress {
        let until = Instant::now() + READ_AT_A_TIME;
        loop {
            if !self.outlet.hand_out(&mut self.account.waiting) {
                return Progress::ReaderIsBehind;
            }
            self.account.read_session();
            self.account.hear_meter(&self.process.ward);
            let more = self.may_read() && self.read_once();
            if self.account.hear_audit() {
                self.stop(Stop::Cancelled);
            }
            self.read_retries();
            if let Some(recorder) = &mut self.account.recorder {
                recorder.follow_stderr();
            }
            if !more && self.account.waiting.is_empty() {
                self.move_if_it_can();
                return Progress::AllRead;
            }
            if Instant::now() >= until {
                return Progress::ThereIsMore;
            }
        }
    }

    /// What only stderr says while the CLI waits for the API.
    fn read_retries(&mut self) {
        for attempt in self.process.retries.news() {
            self.hear_of_attempt(&attempt);
        }
    }

    fn read_once(&mut self) -> bool {
        self.tell_of_stop();
        let position = self.process.stdout.position();
        // What is beyond the limit is not read either, and what is behind a result that waits has time.
        if position > self.limits.output
            || self.account.interpreter.waits()
            || self.process.stdout.len() <= position
        {
            return false;
        }
        // Up to the stop, so that what came before it is told apart from what came after.
        let until = self.state.stop.filter(|stop| !stop.told).map_or(u64::MAX, |stop| stop.written);
        self.account.tick();
        let bytes = match self.process.stdout.next_until(until) {
            Ok(bytes) => bytes,
            Err(error) => {
                let warning = format!("The CLI's output could not be read: {error}");
                self.account.feed(Input::Warning(warning));
                return false;
            }
        };
        if bytes.is_empty() {
            return false;
        }
        if let Some(recorder) = &mut self.account.recorder {
            recorder.output(bytes);
        }
        self.state.framer.push(bytes, |frame| self.account.line(frame, Input::from));
        self.account.ask_disk();
        self.account.claim();
        self.state.heard = Instant::now();
        if self.account.interpreter.was_answered() {
            self.patience.answered();
        }
        if self.state.result.is_none() && self.account.interpreter.has_result() {
            self.state.result = Some(self.state.heard);
        }
        true
    }

    /// Tells the interpreter of a stop as soon as all that the CLI had written before it has been read: a `result` that
    /// was there already counts.
    fn tell_of_stop(&mut self) {
        let read = self.process.stdout.position();
        if self.state.stop.is_some_and(|stop| !stop.after_end && read >= stop.written) {
            self.tell_of_stop_now();
        }
    }

    fn tell_of_stop_now(&mut self) {
        let Some(stop) = self.state.stop.as_mut().filter(|stop| !stop.told) else { return };
        stop.told = true;
        let why = stop.why;
        self.account.feed(Input::Stop(why));
    }

    /// Everything that the CLI has left in its files. Also now a stop is heard, and the time limit holds: reading a long
    /// stream takes longer than writing it. A reader that takes nothing at all does not count as time of the run.
    pub(super) fn read_rest(&mut self) {
        loop {
            match self.read_on() {
                Progress::AllRead => break,
                Progress::ReaderIsBehind if self.outlet.listener() == Listener::Gone => break,
                Progress::ReaderIsBehind if self.state.has_waited_enough() => break,
                Progress::ReaderIsBehind => {
                    let before = self.outlet.queued();
                    std::thread::sleep(READER_IS_BEHIND);
                    self.state.reader_is_idle += READER_IS_BEHIND;
                    match self.outlet.queued() == before {
                        true => self.state.waited_for_reader += READER_IS_BEHIND,
                        false => self.state.reader_is_idle = Duration::ZERO,
                    }
                }
                Progress::ThereIsMore => {}
            }
            if let Some(asked) = self.asked() {
                self.stop_asked(asked);
            }
            let late = |limit: &Duration| self.limits.began.elapsed() > *limit + self.state.waited_for_reader;
            if let Some(limit) = self.limits.timeout.filter(late) {
                self.stop(Stop::Timeout(limit));
            }
        }
        self.tell_of_stop();
        let unread = self.process.stdout.len().saturating_sub(self.process.stdout.position());
        if self.state.stop.is_some() && unread > 0 {
            self.state.cut_short = true;
            let unread = unread + self.state.framer.pending();
            self.account.warnings.push(format!(
                "{unread} bytes that Gemini CLI wrote were not read, because the run was stopped"
            ));
            self.tell_of_stop_now();
        }
    }
}
