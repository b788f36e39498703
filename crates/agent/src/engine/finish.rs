//! The end of a run: the rest is read, the disk is asked, and the verdict is given.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

use alhena_model::{End, Exit, Input, complaints};
use alhena_wire::frame::Framer;

use super::happening::READER_IS_BEHIND;
use super::{Engine, RunState};
use crate::home::{self, Stopped};
use crate::prepare::DEBUG_LOG;
use crate::prepare::arguments::OUR_POLICY;
use crate::run::{Item, Listener, Queue};
use crate::supervise::protocol::Ended;
use crate::telemetry;

impl Engine {
    /// The process is gone and nothing of it is left: what remains is to read the rest and to judge.
    pub(super) fn finish(mut self, mut watch: RunState) {
        self.custody.end();
        if !watch.finished_by_keeper && watch.not_started.is_none() {
            if watch.taken_over.is_none() && self.custody.has_begun() {
                self.account.warnings.push(super::KEEPER_KILLED.to_owned());
            }
            if let Some(finished) = self.home.as_ref().map(|home| home::finish(&home.plan(), Stopped::Midway))
            {
                self.take_sessions(finished, &mut watch);
            }
        }
        self.account.read_session_to_its_end();
        self.read_rest(&mut watch);
        // Where the reading was cut short the line is not whole, and that is not the CLI's fault.
        if watch.cut_short {
            watch.framer = Framer::default();
            if let Some(recorder) = &mut self.account.recorder {
                recorder.cut_short(self.account.lines);
            }
        }
        watch.framer.finish(|frame| self.account.line(frame, Input::from));
        self.account.ask_disk();
        self.say_if_lost(&watch);
        self.account.ask_disk_at_last(watch.not_started.is_none());
        let measured = telemetry::read(&self.run_dir.path().join("telemetry"));
        self.account.warnings.extend(measured.warnings);
        if !measured.statistics.is_empty() {
            self.account.feed(Input::Statistics(Box::new(measured.statistics)));
        }
        self.account.warnings.extend(self.complaints());
        let began = self.account.interpreter.session_id().is_some();
        if began && self.account.session.as_ref().is_some_and(|session| !session.found()) {
            self.account.warnings.push(
                "The session file never appeared: thoughts, diffs and exit codes are missing".to_owned(),
            );
        }
        self.account.warn_all();
        let stderr = self.in_the_users_words(tail(&self.stderr));
        let exit = match (watch.ended, &watch.not_started) {
            (Some(Ended::Code(code)), _) => Exit::Code(code),
            (Some(Ended::Signal(signal)), _) => Exit::Signal(signal),
            // As a shell would say it.
            (None, Some((true, _))) => Exit::Code(127),
            (None, Some((false, _))) => Exit::Code(126),
            (None, _) => Exit::Signal(9),
        };
        let stderr = match watch.not_started {
            Some((_, message)) => format!("{stderr}Gemini CLI could not be started: {message}"),
            None => stderr,
        };
        let end = End { exit, stderr, duration_ms: Some(self.started.elapsed().as_millis() as u64) };
        let waiting = self.account.conclude(&end);
        // Before the last event is out everything is cleaned up: whoever has it may exit at once.
        drop(self.run_dir);
        drop(self.home);
        self.over.store(true, Ordering::Release);
        hand_out(&self.queue, waiting);
    }

    /// What the CLI went on without, by its own words.
    fn complaints(&self) -> Vec<String> {
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

    /// A session that is not in the store cannot be gone on with.
    fn say_if_lost(&mut self, watch: &RunState) {
        let is_stored = |id: &str| watch.stored_sessions.iter().any(|stored| stored == id);
        if self.account.interpreter.session_id().is_some_and(|id| !is_stored(id)) {
            self.account.feed(Input::SessionLost);
        }
    }
}

fn hand_out(queue: &Queue, mut waiting: VecDeque<Item>) {
    while let Some(item) = waiting.pop_front() {
        let Some(item) = queue.offer(item) else { continue };
        if queue.listener() == Listener::Gone {
            return;
        }
        waiting.push_front(item);
        std::thread::sleep(READER_IS_BEHIND);
    }
}

/// The first 64 KiB of a file: the CLI complains when it starts.
fn head(path: &std::path::Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut bytes));
    String::from_utf8_lossy(if read.is_ok() { &bytes } else { &[] }).into_owned()
}

/// The last 64 KiB of standard error.
pub(crate) fn tail(path: &std::path::Path) -> String {
    fn read(path: &std::path::Path) -> io::Result<Vec<u8>> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = std::fs::File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(64 << 10)))?;
        let mut bytes = Vec::new();
        file.take(64 << 10).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
    String::from_utf8_lossy(&read(path).unwrap_or_default()).into_owned()
}
