//! The engine of a run: one thread that follows what the CLI writes, keeps the clocks, and stops it.
//!
//! It never waits for the reader of the events: what the reader has not taken stays in the output file, and the clocks
//! go on.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use alhena_model::{Change, End, Event, Exit, Interpreter, Stop, Timestamp};
use alhena_wire::frame::{Frame, Framer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::changes::ScanOptions;
use crate::disk::RealDisk;
use crate::follow::{Follower, Growth};
use crate::home::Home;
use crate::recording::{Beside, Recorder};
use crate::retries::Retries;
use crate::run::{Item, Listener, Queue, Sessions};
use crate::supervise::custody::Custody;
use crate::supervise::protocol::{Ended, Gentle, Report};
use crate::telemetry;

/// A line beyond this is malformed.
const LONGEST_LINE: usize = 64 << 20;
/// How long the CLI may take to exit after its `result`.
const GRACE: Duration = Duration::from_secs(10);
/// A keeper that does not finish within this is itself stuck.
const PATIENCE_WITH_KEEPER: Duration = Duration::from_secs(45);
/// How long to wait for a reader that is behind before looking again.
const READER_IS_BEHIND: Duration = Duration::from_millis(5);

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub timeout: Option<Duration>,
    pub first_event: Option<Duration>,
    pub stall: Option<Duration>,
    pub output: u64,
}

pub(crate) struct Engine {
    pub custody: Custody,
    pub stdout: Follower,
    pub stderr: PathBuf,
    pub growth: Growth,
    pub asked_to_stop: UnixStream,
    pub queue: Queue,
    pub interpreter: Interpreter<RealDisk>,
    pub limits: Limits,
    pub recorder: Option<Recorder>,
    pub warnings: Vec<String>,
    pub started: Instant,
    /// Removed when the run is over.
    pub run_dir: tempfile::TempDir,
    /// Ours as long as nobody else holds it: without a keeper process we keep it.
    pub home: Option<Home>,
    pub dir: PathBuf,
    pub since: SystemTime,
    /// Whether the CLI's own lines are handed out too.
    pub raw_lines: bool,
    pub sessions: Sessions,
}

/// What the thread knows while it runs.
struct Watch {
    framer: Framer,
    /// How many lines there were so far.
    lines: u64,
    waiting: VecDeque<Item>,
    /// When the CLI last wrote something, as far as it has been read.
    heard: Instant,
    /// When the `result` came.
    result: Option<Instant>,
    stopping: Option<Instant>,
    ended: Option<Ended>,
    not_started: Option<(bool, String)>,
    keeper_gone: bool,
    /// The keeper has put the run's home away.
    put_away: bool,
    retries: Retries,
}

impl Engine {
    /// Runs to the end.
    pub(crate) fn run(mut self) {
        let mut watch = Watch {
            framer: Framer::new(LONGEST_LINE),
            lines: 0,
            waiting: VecDeque::new(),
            heard: self.started,
            result: None,
            stopping: None,
            ended: None,
            not_started: None,
            keeper_gone: false,
            put_away: false,
            retries: Retries::new(&self.stderr),
        };
        let _not_told = self.growth.watch(&self.stderr);
        self.warn_all(&mut watch);
        while !watch.keeper_gone {
            self.read(&mut watch);
            self.check_clocks(&mut watch);
            self.wait(&watch);
            self.hear_keeper(&mut watch);
            self.hear_stop(&mut watch);
        }
        self.finish(watch);
    }

    /// The time for what carries none of its own.
    fn tick(&mut self, lines: u64) {
        let now = Timestamp::now();
        self.interpreter.tick(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.beside(Beside::Tick(now), lines);
        }
    }

    fn warn_all(&mut self, watch: &mut Watch) {
        let mut out = Vec::new();
        self.tick(watch.lines);
        for warning in std::mem::take(&mut self.warnings) {
            self.interpreter.warn(warning, &mut out);
        }
        watch.waiting.extend(out.into_iter().map(Item::Event));
    }

    /// Hands out what waits, then reads on as far as the reader keeps up.
    fn read(&mut self, watch: &mut Watch) {
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
    fn read_session(&mut self, watch: &mut Watch) {
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

    fn check_clocks(&mut self, watch: &mut Watch) {
        if watch.ended.is_some() {
            return;
        }
        if watch.stopping.is_some_and(|since| since.elapsed() > PATIENCE_WITH_KEEPER) {
            watch.keeper_gone = true;
        }
        if watch.stopping.is_some() {
            return;
        }
        // While a tool runs the CLI has nothing to say, and while the reader is behind we do not hear it.
        if self.interpreter.tool_open() || self.stdout.position() < self.stdout.len() {
            watch.heard = Instant::now();
        }
        if self.stdout.len() > self.limits.output {
            self.stop(Stop::TooMuchOutput(self.limits.output), watch);
        } else if let Some((_, stop)) = self.next_alarm(watch).filter(|(at, _)| *at <= Instant::now()) {
            self.stop(stop, watch);
        }
    }

    /// The clock that rings first.
    fn next_alarm(&self, watch: &Watch) -> Option<(Instant, Stop)> {
        if watch.stopping.is_some() || watch.ended.is_some() {
            return None;
        }
        let total = self.limits.timeout.map(|limit| (self.started + limit, Stop::Timeout(limit)));
        let quiet = match watch.result {
            Some(result) => Some((result + GRACE, Stop::NoExit)),
            None if self.stdout.position() == 0 => {
                self.limits.first_event.map(|limit| (self.started + limit, Stop::NoFirstEvent(limit)))
            }
            None => self.limits.stall.map(|limit| (watch.heard + limit, Stop::Silence(limit))),
        };
        total.into_iter().chain(quiet).min_by_key(|(at, _)| *at)
    }

    fn stop(&mut self, stop: Stop, watch: &mut Watch) {
        if watch.stopping.is_some() || watch.ended.is_some() {
            return;
        }
        // What it had written before counts: a result may be there already.
        self.read(watch);
        self.interpreter.stopping(stop);
        if let Some(recorder) = &mut self.recorder {
            recorder.stopping(stop, watch.lines);
        }
        watch.stopping = Some(Instant::now());
        // Before `init` the CLI loses a ^C.
        let gentle = if self.stdout.position() > 0 { Gentle::Yes } else { Gentle::No };
        self.custody.stop(gentle);
    }

    /// Waits for the CLI, the keeper, a stop, or the next alarm.
    fn wait(&self, watch: &Watch) {
        if self.custody.has_buffered_report() {
            return;
        }
        let behind = !watch.waiting.is_empty();
        let alarm = self.next_alarm(watch).map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let longest = if behind { READER_IS_BEHIND } else { Duration::from_millis(500) };
        let longest =
            if self.growth.fd().is_none() { longest.min(Duration::from_millis(10)) } else { longest };
        let time = alarm.unwrap_or(longest).min(longest);
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = vec![
            PollFd::new(self.custody.socket(), PollFlags::IN),
            PollFd::new(&self.asked_to_stop, PollFlags::IN),
        ];
        // When the reader is behind, news of more output would only keep us awake.
        let session = self.interpreter.witness().session.as_ref();
        for growth in
            [self.growth.fd(), session.and_then(|session| session.growth().fd())].into_iter().flatten()
        {
            if !behind {
                fds.push(PollFd::from_borrowed_fd(growth, PollFlags::IN));
            }
        }
        let _interrupted = poll(&mut fds, Some(&time));
        self.growth.clear();
        if let Some(session) = session {
            session.growth().clear();
        }
    }

    fn hear_keeper(&mut self, watch: &mut Watch) {
        loop {
            let ready = self.custody.has_buffered_report() || {
                let mut fds = [PollFd::new(self.custody.socket(), PollFlags::IN)];
                poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
            };
            if !ready {
                return;
            }
            match self.custody.report() {
                Ok(Some(report)) => {
                    self.take_report(report, watch);
                    if watch.keeper_gone {
                        return;
                    }
                }
                Ok(None) | Err(_) => {
                    watch.keeper_gone = true;
                    return;
                }
            }
        }
    }

    fn take_report(&mut self, report: Report, watch: &mut Watch) {
        match report {
            Report::Started { pid } => tracing::debug!(pid, "Gemini CLI started"),
            Report::NotStarted { missing, message } => {
                watch.keeper_gone = true;
                watch.not_started = Some((missing, message));
            }
            Report::Exited(ended) => watch.ended = Some(ended),
            Report::Swept { ended, left } => {
                if ended > 0 {
                    tracing::info!(ended, "ended processes that outlived Gemini CLI");
                }
                if left > 0 {
                    self.warnings.push(format!("{left} processes of the run could not be ended"));
                }
            }
            Report::Finished(finished) => {
                watch.keeper_gone = true;
                watch.put_away = true;
                self.warnings.extend(finished.warnings.iter().cloned());
                if let Some(recorder) = &mut self.recorder {
                    recorder.sessions(&finished.published);
                }
                *self.sessions.lock().unwrap_or_else(PoisonError::into_inner) = finished.published;
            }
        }
    }

    fn hear_stop(&mut self, watch: &mut Watch) {
        let mut fds = [PollFd::new(&self.asked_to_stop, PollFlags::IN)];
        let asked = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0);
        if asked || self.queue.listener() == Listener::Gone {
            self.stop(Stop::Cancelled, watch);
        }
    }

    /// The process is gone and nothing of it is left: what remains is to read the rest and to judge.
    fn finish(mut self, mut watch: Watch) {
        self.custody.end();
        if !watch.put_away && watch.not_started.is_none() {
            self.warnings
                .push("The keeper of the run was killed; what it held was ended without it".to_owned());
            if let Some(home) = &self.home {
                self.warnings.extend(crate::home::finish(&home.plan()).warnings);
            }
        }
        self.read_rest(&mut watch);
        let (interpreter, mut out) = (&mut self.interpreter, Vec::new());
        let (waiting, raw) = (&mut watch.waiting, self.raw_lines);
        watch.framer.finish(|frame| {
            if let (true, Frame::Line(line)) = (raw, &frame) {
                waiting.push_back(Item::Line(line.to_vec()));
            }
            take(interpreter, frame, &mut out);
            waiting.extend(out.drain(..).map(Item::Event));
            watch.lines += 1;
        });
        self.read_session(&mut watch);
        self.tick(watch.lines);
        let interpreter = &mut self.interpreter;
        interpreter.verify_files();
        if interpreter.may_have_changed_files() && watch.not_started.is_none() {
            self.scan_disk(&mut out);
        }
        self.warnings.extend(telemetry::warnings(&self.run_dir.path().join("telemetry")));
        let began = self.interpreter.session_id().is_some();
        if began && self.interpreter.witness().session.as_ref().is_some_and(|session| !session.found()) {
            self.warnings.push(
                "The session file never appeared: thoughts, diffs and exit codes are missing".to_owned(),
            );
        }
        let warnings = std::mem::take(&mut self.warnings);
        for warning in &warnings {
            self.interpreter.warn(warning.clone(), &mut out);
        }
        let mut stderr = tail(&self.stderr);
        if let Some(home) = &self.home {
            // People know their own home, not the one that stood in for it.
            let (ours, theirs) = (home.path().to_string_lossy(), home.user_home().to_string_lossy());
            stderr = stderr.replace(&*ours, &theirs);
        }
        let exit = match (watch.ended, &watch.not_started) {
            (Some(Ended::Code(code)), _) => Exit::Code(code),
            (Some(Ended::Signal(signal)), _) => Exit::Signal(signal),
            (None, Some((true, _))) => Exit::Code(127),
            (None, _) => Exit::Signal(9),
        };
        let stderr = match watch.not_started {
            Some((_, message)) => format!("{stderr}Gemini CLI could not be started: {message}"),
            None => stderr,
        };
        let end = End { exit, stderr, duration_ms: Some(self.started.elapsed().as_millis() as u64) };
        let told = std::mem::take(&mut self.interpreter.disk().told);
        let outcome = self.interpreter.conclude(&end, &mut out);
        if let Some(mut recorder) = self.recorder {
            recorder.tools(told);
            recorder.finish(&end, &outcome, warnings, self.run_dir.path());
        }
        // Before the last event is out everything is cleaned up: whoever has it may exit at once.
        drop(self.run_dir);
        drop(self.home);
        watch.waiting.extend(out.into_iter().map(Item::Event));
        hand_out(&self.queue, watch.waiting);
    }

    fn read_rest(&mut self, watch: &mut Watch) {
        loop {
            self.read(watch);
            if watch.waiting.is_empty() || self.queue.listener() == Listener::Gone {
                return;
            }
            std::thread::sleep(READER_IS_BEHIND);
        }
    }

    fn scan_disk(&mut self, out: &mut Vec<Event>) {
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
        for (path, change) in all {
            if !claimed.contains(&self.dir.join(&path)) {
                self.interpreter.found_on_disk(path.to_string_lossy().into_owned(), change, out);
            }
        }
        if found.truncated {
            self.interpreter
                .warn("The scan for changed files was cut short; not all changes are listed", out);
        }
    }
}

fn take(interpreter: &mut Interpreter<RealDisk>, frame: Frame<'_>, out: &mut Vec<Event>) {
    match frame {
        Frame::Line(line) => interpreter.line(line, out),
        Frame::TooLong { bytes, sample } => interpreter.malformed(sample, bytes, out),
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

/// The last 64 KiB of standard error.
fn tail(path: &std::path::Path) -> String {
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
