//! Reading what the CLI writes: its stream, its session file, and what only stderr says.

use std::time::{Duration, Instant};

use alhena_model::{Input, Stop};

use super::happening::READER_IS_BEHIND;
use super::{Engine, RunState};
use crate::run::Listener;

/// So long is read before everything else gets its turn.
const AT_A_TIME: Duration = Duration::from_millis(20);

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

impl Engine {
    /// Hands out what waits, then reads on: as far as the reader keeps up, and never for long, because the clocks, the
    /// keeper and whoever wants to stop the run have to be looked at in between.
    pub(super) fn read(&mut self, watch: &mut RunState) -> Progress {
        let until = Instant::now() + AT_A_TIME;
        loop {
            if !self.hand_out() {
                return Progress::ReaderIsBehind;
            }
            self.account.read_session();
            self.account.hear_meter(&self.ward);
            let more = self.may_read(watch) && self.read_once(watch);
            if self.account.hear_audit() {
                self.stop(Stop::Cancelled, watch);
            }
            self.read_retries(watch);
            if let Some(recorder) = &mut self.account.recorder {
                recorder.follow_stderr();
            }
            if !more && self.account.waiting.is_empty() {
                self.move_if_it_can(watch);
                return Progress::AllRead;
            }
            if Instant::now() >= until {
                return Progress::ThereIsMore;
            }
        }
    }

    /// Hands out what waits; false when the reader cannot take all of it now.
    pub(super) fn hand_out(&mut self) -> bool {
        while let Some(item) = self.account.waiting.pop_front() {
            if let Some(item) = self.queue.offer(item) {
                self.account.waiting.push_front(item);
                return false;
            }
        }
        true
    }

    /// What only stderr says while the CLI waits for the API.
    fn read_retries(&mut self, watch: &mut RunState) {
        for attempt in watch.retries.news() {
            self.hear_of_attempt(&attempt, watch);
        }
    }

    fn read_once(&mut self, watch: &mut RunState) -> bool {
        self.tell_of_stop(watch);
        let position = self.stdout.position();
        // What is beyond the limit is not read either, and what is behind a result that waits has time.
        if position > self.limits.output || self.account.interpreter.waits() || self.stdout.len() <= position
        {
            return false;
        }
        // Up to the stop, so that what came before it is told apart from what came after.
        let until = watch.stop.filter(|stop| !stop.told).map_or(u64::MAX, |stop| stop.written);
        self.account.tick();
        let bytes = match self.stdout.next_until(until) {
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
        watch.framer.push(bytes, |frame| self.account.line(frame, Input::from));
        self.account.ask_disk();
        self.account.claim();
        watch.heard = Instant::now();
        if self.account.interpreter.was_answered() {
            self.patience.answered();
        }
        if watch.result.is_none() && self.account.interpreter.has_result() {
            watch.result = Some(watch.heard);
        }
        true
    }

    /// Tells the interpreter of a stop as soon as all that the CLI had written before it has been read: a `result` that
    /// was there already counts.
    fn tell_of_stop(&mut self, watch: &mut RunState) {
        let read = self.stdout.position();
        if watch.stop.is_some_and(|stop| !stop.after_end && read >= stop.written) {
            self.tell_of_stop_now(watch);
        }
    }

    fn tell_of_stop_now(&mut self, watch: &mut RunState) {
        let Some(stop) = watch.stop.as_mut().filter(|stop| !stop.told) else { return };
        stop.told = true;
        let why = stop.why;
        self.account.feed(Input::Stop(why));
    }

    /// Everything that the CLI has left in its files. Also now a stop is heard, and the time limit holds: reading a long
    /// stream takes longer than writing it. A reader that takes nothing at all does not count as time of the run.
    pub(super) fn read_rest(&mut self, watch: &mut RunState) {
        loop {
            match self.read(watch) {
                Progress::AllRead => break,
                Progress::ReaderIsBehind if self.queue.listener() == Listener::Gone => break,
                Progress::ReaderIsBehind if watch.has_waited_enough() => break,
                Progress::ReaderIsBehind => {
                    let before = self.queue.queued();
                    std::thread::sleep(READER_IS_BEHIND);
                    watch.reader_is_idle += READER_IS_BEHIND;
                    match self.queue.queued() == before {
                        true => watch.waited_for_reader += READER_IS_BEHIND,
                        false => watch.reader_is_idle = Duration::ZERO,
                    }
                }
                Progress::ThereIsMore => {}
            }
            if let Some(asked) = self.stop_asked(watch) {
                let _later = self.see_to(asked, watch);
            }
            let late = |limit: &Duration| self.limits.began.elapsed() > *limit + watch.waited_for_reader;
            if let Some(limit) = self.limits.timeout.filter(late) {
                self.stop(Stop::Timeout(limit), watch);
            }
        }
        self.tell_of_stop(watch);
        let unread = self.stdout.len().saturating_sub(self.stdout.position());
        if watch.stop.is_some() && unread > 0 {
            watch.cut_short = true;
            let unread = unread + watch.framer.pending();
            self.account.warnings.push(format!(
                "{unread} bytes that Gemini CLI wrote were not read, because the run was stopped"
            ));
            self.tell_of_stop_now(watch);
        }
    }
}
