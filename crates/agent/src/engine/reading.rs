//! Reading what the CLI writes: its stream, its session file, and what only stderr says.

use std::time::{Duration, Instant};

use alhena_model::{Event, Interpreter, Stop, Timestamp};
use alhena_wire::frame::Frame;

use super::{Engine, READER_IS_BEHIND, Watch};
use crate::disk::RealDisk;
use crate::recording::Input;
use crate::run::{Item, Listener};

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
    pub(super) fn read(&mut self, watch: &mut Watch) -> Progress {
        let until = Instant::now() + AT_A_TIME;
        loop {
            if !self.hand_out(watch) {
                return Progress::ReaderIsBehind;
            }
            let more = watch.may_read() && self.read_once(watch);
            self.read_session(watch);
            self.read_retries(watch);
            self.record_beside(watch.lines);
            if !more && watch.waiting.is_empty() {
                return Progress::AllRead;
            }
            if Instant::now() >= until {
                return Progress::ThereIsMore;
            }
        }
    }

    /// Hands out what waits; false when the reader cannot take all of it now.
    fn hand_out(&self, watch: &mut Watch) -> bool {
        while let Some(item) = watch.waiting.pop_front() {
            if let Some(item) = self.queue.offer(item) {
                watch.waiting.push_front(item);
                return false;
            }
        }
        true
    }

    /// What the session file says and the stream does not.
    pub(super) fn read_session(&mut self, watch: &mut Watch) {
        let id = self.interpreter.session_id().map(str::to_owned);
        let (Some(session), Some(id)) = (&mut self.interpreter.disk().session, id) else { return };
        session.session(&id);
        let mut out = Vec::new();
        for fact in session.news() {
            if let Some(recorder) = &mut self.recorder {
                recorder.input(&Input::Fact(fact.clone()), watch.lines);
            }
            self.interpreter.fact(fact, &mut out);
        }
        watch.waiting.extend(out.into_iter().map(Item::Event));
    }

    /// What only stderr says while the CLI waits for the API.
    fn read_retries(&mut self, watch: &mut Watch) {
        let mut out = Vec::new();
        for warning in watch.retries.news() {
            self.tick(watch.lines);
            self.warn(warning, watch.lines, &mut out);
        }
        watch.waiting.extend(out.into_iter().map(Item::Event));
    }

    /// What a recording has to know that the interpreter was told by asking, and what came on stderr.
    pub(super) fn record_beside(&mut self, lines: u64) {
        let Some(recorder) = &mut self.recorder else { return };
        for (id, fact) in std::mem::take(&mut self.interpreter.disk().told) {
            recorder.input(&Input::Tool(id, fact), lines);
        }
        recorder.follow_stderr();
    }

    fn read_once(&mut self, watch: &mut Watch) -> bool {
        self.tell_of_stop(watch);
        let position = self.stdout.position();
        // What is beyond the limit is not read either.
        if position > self.limits.output {
            return false;
        }
        // Up to the stop, so that what came before it is told apart from what came after.
        let until = watch.stop.filter(|stop| !stop.told).map_or(u64::MAX, |stop| stop.written);
        let (interpreter, mut out) = (&mut self.interpreter, Vec::new());
        let bytes = match self.stdout.next_until(until) {
            Ok(bytes) => bytes,
            Err(error) => {
                interpreter.warn(format!("The CLI's output could not be read: {error}"), &mut out);
                watch.waiting.extend(out.into_iter().map(Item::Event));
                return false;
            }
        };
        if bytes.is_empty() {
            return false;
        }
        let now = Timestamp::now();
        interpreter.tick(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.input(&Input::Tick(now), watch.lines);
            recorder.output(bytes);
        }
        let (lines, waiting, raw) = (&mut watch.lines, &mut watch.waiting, self.raw_lines);
        watch.framer.push(bytes, |frame| {
            *lines += 1;
            if let (true, Frame::Line(line)) = (raw, &frame) {
                waiting.push_back(Item::Line(line.to_vec()));
            }
            take(interpreter, frame, &mut out);
            waiting.extend(out.drain(..).map(Item::Event));
        });
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.claim(self.interpreter.claimed_files());
        }
        watch.heard = Instant::now();
        if watch.result.is_none() && self.interpreter.has_result() {
            watch.result = Some(watch.heard);
        }
        true
    }

    /// Tells the interpreter of a stop as soon as all that the CLI had written before it has been read: a `result` that
    /// was there already counts.
    fn tell_of_stop(&mut self, watch: &mut Watch) {
        let read = self.stdout.position();
        if watch.stop.is_some_and(|stop| !stop.after_end && read >= stop.written) {
            self.tell_of_stop_now(watch);
        }
    }

    fn tell_of_stop_now(&mut self, watch: &mut Watch) {
        let Some(stop) = watch.stop.as_mut().filter(|stop| !stop.told) else { return };
        stop.told = true;
        self.interpreter.stopping(stop.why);
        if let Some(recorder) = &mut self.recorder {
            recorder.input(&Input::Stop(stop.why), watch.lines);
        }
    }

    /// Everything that the CLI has left in its files. Also now a stop is heard, and the time limit holds: reading a long
    /// stream takes longer than writing it. A reader that takes nothing at all does not count as time of the run.
    pub(super) fn read_rest(&mut self, watch: &mut Watch) {
        loop {
            match self.read(watch) {
                Progress::AllRead => break,
                Progress::ReaderIsBehind if self.queue.listener() == Listener::Gone => break,
                Progress::ReaderIsBehind if !watch.may_read() => break,
                Progress::ReaderIsBehind => {
                    let before = self.queue.queued();
                    std::thread::sleep(READER_IS_BEHIND);
                    if self.queue.queued() == before {
                        watch.waited_for_reader += READER_IS_BEHIND;
                    }
                }
                Progress::ThereIsMore => {}
            }
            self.hear_stop(watch);
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
            self.warnings.push(format!(
                "{unread} bytes that Gemini CLI wrote were not read, because the run was stopped"
            ));
            self.tell_of_stop_now(watch);
        }
    }
}

pub(super) fn take(interpreter: &mut Interpreter<RealDisk>, frame: Frame<'_>, out: &mut Vec<Event>) {
    match frame {
        Frame::Line(line) => interpreter.line(line, out),
        Frame::TooLong { bytes, sample } => interpreter.too_long(sample, bytes, out),
    }
}
