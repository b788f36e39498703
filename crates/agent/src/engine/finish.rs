//! The end of a run: the rest is read, the disk is asked, and the verdict is given.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alhena_model::{Change, End, Event, EventKind, Exit, Input, Outcome, Source, complaints};
use alhena_wire::frame::Framer;

use super::happening::READER_IS_BEHIND;
use super::reading::take;
use super::{Engine, RunState};
use crate::changes::ScanOptions;
use crate::home::{self, Stopped};
use crate::neighbours::Others;
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
                self.warnings.push(super::KEEPER_KILLED.to_owned());
            }
            if let Some(finished) = self.home.as_ref().map(|home| home::finish(&home.plan(), Stopped::Midway))
            {
                self.take_sessions(finished, &mut watch);
            }
        }
        self.read_session_to_its_end(&mut watch);
        self.read_rest(&mut watch);
        // Where the reading was cut short the line is not whole, and that is not the CLI's fault.
        if watch.cut_short {
            watch.framer = Framer::default();
            if let Some(recorder) = &mut self.recorder {
                recorder.cut_short(watch.lines);
            }
        }
        let (interpreter, mut out) = (&mut self.interpreter, Vec::new());
        let (lines, waiting, raw) = (&mut watch.lines, &mut watch.waiting, self.raw_lines);
        watch.framer.finish(|frame| {
            *lines += 1;
            take(interpreter, frame, raw, waiting, &mut out);
        });
        self.ask_disk(&mut watch);
        self.say_if_lost(&mut watch);
        self.tick(&mut watch);
        let claimed: Vec<String> =
            self.interpreter.claimed_files().iter().map(|file| file.path.clone()).collect();
        for path in claimed {
            let state = self.disk.look(&path);
            self.feed(Input::Disk { path, state }, &mut watch);
        }
        let others = match &mut self.neighbours {
            Some(neighbours) => neighbours.part(self.interpreter.claimed_files()),
            None => Others::default(),
        };
        if self.interpreter.may_have_changed_files() && watch.not_started.is_none() {
            self.scan_disk(&others, &mut watch);
        }
        let measured = telemetry::read(&self.run_dir.path().join("telemetry"));
        self.warnings.extend(measured.warnings);
        if !measured.statistics.is_empty() {
            self.feed(Input::Statistics(Box::new(measured.statistics)), &mut watch);
        }
        self.warnings.extend(self.complaints());
        let began = self.interpreter.session_id().is_some();
        if began && self.session.as_ref().is_some_and(|session| !session.found()) {
            self.warnings.push(
                "The session file never appeared: thoughts, diffs and exit codes are missing".to_owned(),
            );
        }
        for warning in std::mem::take(&mut self.warnings) {
            self.feed(Input::Warning(warning), &mut watch);
        }
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
        let said = self.interpreter.take_conversation(&mut out);
        watch.waiting.extend(out.drain(..).map(Item::Event));
        watch.waiting.extend(said.map(|said| Item::Conversation(Box::new(said))));
        let outcome = self.interpreter.conclude(&end, &mut out);
        if let Some(warning) = self.recorder.and_then(|recorder| recorder.finish(&end, &outcome, watch.lines))
        {
            warn_at_last(&outcome, warning, &mut out);
        }
        // Before the last event is out everything is cleaned up: whoever has it may exit at once.
        drop(self.run_dir);
        drop(self.home);
        self.over.store(true, Ordering::Release);
        watch.waiting.extend(out.into_iter().map(Item::Event));
        hand_out(&self.queue, watch.waiting);
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
    fn say_if_lost(&mut self, watch: &mut RunState) {
        let is_stored = |id: &str| watch.stored_sessions.iter().any(|stored| stored == id);
        if self.interpreter.session_id().is_some_and(|id| !is_stored(id)) {
            self.feed(Input::SessionLost, watch);
        }
    }

    fn scan_disk(&mut self, others: &Others, watch: &mut RunState) {
        let claimed: Vec<PathBuf> =
            self.interpreter.claimed_files().iter().map(|file| self.dir.join(&file.path)).collect();
        let exclude = self.recorder.iter().map(|recorder| recorder.dir().to_owned()).collect();
        let options = ScanOptions { exclude, ..ScanOptions::default() };
        let found = options.scan(&self.dir, self.since);
        let all = found
            .created
            .into_iter()
            .map(|path| (path, Change::Created))
            .chain(found.modified.into_iter().map(|path| (path, Change::Modified)))
            .chain(found.deleted.into_iter().map(|path| (path, Change::Deleted)));
        let mut whose = false;
        for (path, change) in all {
            let full = self.dir.join(&path);
            if !claimed.contains(&full) && !others.wrote.contains(&full) {
                whose = others.any;
                let path = path.to_string_lossy().into_owned();
                self.feed(Input::Found { path, change }, watch);
            }
        }
        if whose {
            self.warnings.push(
                "Another run worked in this folder at the same time: files that no tool claims may be of its making"
                    .to_owned(),
            );
        }
        if found.truncated {
            let warning = "The scan for changed files was cut short; not all changes are listed";
            self.feed(Input::Warning(warning.to_owned()), watch);
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

/// A recording that is not whole is no failure of the run, but it has to be said: the last event is the outcome, and it
/// gets the warning too.
fn warn_at_last(outcome: &Outcome, warning: String, out: &mut Vec<Event>) {
    let Some(mut last) = out.pop() else { return };
    let mut outcome = outcome.clone();
    outcome.warnings.push(warning.clone());
    out.push(Event {
        source: Source::Derived,
        kind: EventKind::Warning { message: warning },
        ..last.clone()
    });
    last.seq += 1;
    last.kind = EventKind::Finished { outcome: Arc::new(outcome) };
    out.push(last);
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
