//! Reading what the CLI writes: its stream, its session file, and what only stderr says.

use std::time::Instant;

use alhena_model::{Event, Interpreter, Timestamp};
use alhena_wire::frame::Frame;

use super::{Engine, READER_IS_BEHIND, Watch};
use crate::disk::RealDisk;
use crate::recording::Beside;
use crate::run::{Item, Listener};

impl Engine {
    /// Hands out what waits, then reads on as far as the reader keeps up.
    pub(super) fn read(&mut self, watch: &mut Watch) {
        loop {
            while let Some(item) = watch.waiting.pop_front() {
                if let Some(item) = self.queue.offer(item) {
                    watch.waiting.push_front(item);
                    return;
                }
            }
            let more = self.read_once(watch);
            self.read_session(watch);
            self.read_retries(watch);
            if !more && watch.waiting.is_empty() {
                return;
            }
        }
    }

    /// What the session file says and the stream does not.
    pub(super) fn read_session(&mut self, watch: &mut Watch) {
        let id = self.interpreter.session_id().map(str::to_owned);
        let (Some(session), Some(id)) = (&mut self.interpreter.disk().session, id) else { return };
        session.session(&id);
        let mut out = Vec::new();
        for fact in session.news() {
            if let Some(recorder) = &mut self.recorder {
                recorder.beside(Beside::Fact(fact.clone()), watch.lines);
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
            if let Some(recorder) = &mut self.recorder {
                recorder.beside(Beside::Retry(warning.clone()), watch.lines);
            }
            self.interpreter.warn(warning, &mut out);
        }
        watch.waiting.extend(out.into_iter().map(Item::Event));
    }

    fn read_once(&mut self, watch: &mut Watch) -> bool {
        let position = self.stdout.position();
        // What is beyond the limit is not read either.
        if position > self.limits.output {
            return false;
        }
        let (interpreter, mut out) = (&mut self.interpreter, Vec::new());
        let bytes = match self.stdout.next() {
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
            recorder.beside(Beside::Tick(now), watch.lines);
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
        if let Some(recorder) = &mut self.recorder {
            recorder.heard(position, self.started.elapsed());
        }
        watch.heard = Instant::now();
        if watch.result.is_none() && self.interpreter.has_result() {
            watch.result = Some(watch.heard);
        }
        true
    }

    pub(super) fn read_rest(&mut self, watch: &mut Watch) {
        loop {
            self.read(watch);
            if watch.waiting.is_empty() || self.queue.listener() == Listener::Gone {
                return;
            }
            std::thread::sleep(READER_IS_BEHIND);
        }
    }
}

pub(super) fn take(interpreter: &mut Interpreter<RealDisk>, frame: Frame<'_>, out: &mut Vec<Event>) {
    match frame {
        Frame::Line(line) => interpreter.line(line, out),
        Frame::TooLong { bytes, sample } => interpreter.malformed(sample, bytes, out),
    }
}
