//! Recordings: everything that a run wrote, kept in a directory, and played back without a process.
//!
//! | File | Holds |
//! |---|---|
//! | `recording.json` | what was asked, how it ended, what the disk said |
//! | `stdout`, `stderr` | the CLI's output |
//! | `timing.jsonl` | `[milliseconds, bytes of stdout so far]` for each piece |
//! | `outcome.json` | the outcome |
//! | `session/` | the session files |
//!
//! Values of secret variables are replaced by their names wherever they occur.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alhena_model::{
    Change, Disk, DiskFact, End, Event, Fact, FileRecord, Interpreter, Outcome, Stop, Timestamp, ToolFact,
};
use alhena_wire::frame::{Frame, Framer};
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::env::Environment;
use crate::run::Item;

/// The layout of the directory.
pub const FORMAT: u32 = 1;

/// `recording.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Recording {
    format: u32,
    request: serde_json::Value,
    end: End,
    stop: Option<StopMark>,
    warnings_before: Vec<String>,
    warnings_after: Vec<String>,
    /// What came beside the stream, in order, each after so many lines of output.
    beside: Vec<(u64, Beside)>,
    /// What the session file said of tool calls, by id.
    tools: Vec<(String, ToolFact)>,
    /// So many lines were read before the run was stopped; absent when all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lines_read: Option<u64>,
}

/// What the interpreter was told beside the lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Beside {
    /// The time.
    Tick(Timestamp),
    /// Something from the session file.
    Fact(Fact),
    /// A failed request to the API that the CLI repeats.
    Retry(String),
    /// That the session is not in the user's store.
    SessionLost,
}

impl Beside {
    fn tell(self, interpreter: &mut Interpreter<RecordedDisk>, out: &mut Vec<Event>) {
        match self {
            Beside::Tick(time) => interpreter.tick(time),
            Beside::Fact(fact) => interpreter.fact(fact, out),
            Beside::Retry(warning) => interpreter.warn(warning, out),
            Beside::SessionLost => interpreter.session_is_lost(),
        }
    }
}

/// When Alhena began to stop the run, counted in lines of output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct StopMark {
    why: Stop,
    after_lines: u64,
}

/// Keeps a run.
pub(crate) struct Recorder {
    dir: PathBuf,
    request: serde_json::Value,
    secrets: Secrets,
    timing: Vec<(u64, u64)>,
    sessions: Vec<PathBuf>,
    stop: Option<StopMark>,
    warnings_before: Vec<String>,
    beside: Vec<(u64, Beside)>,
    tools: Vec<(String, ToolFact)>,
    lines_read: Option<u64>,
}

impl Recorder {
    /// Makes the directory; it must be empty or new.
    pub(crate) fn new(dir: PathBuf, request: serde_json::Value, secrets: Secrets) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        if fs::read_dir(&dir)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is not empty; a recording needs a directory of its own", dir.display()),
            ));
        }
        let dir = fs::canonicalize(dir)?;
        Ok(Self {
            dir,
            request,
            secrets,
            timing: Vec::new(),
            sessions: Vec::new(),
            stop: None,
            warnings_before: Vec::new(),
            beside: Vec::new(),
            tools: Vec::new(),
            lines_read: None,
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn warned_before(&mut self, warnings: &[String]) {
        self.warnings_before = warnings.to_vec();
    }

    pub(crate) fn heard(&mut self, position: u64, after: Duration) {
        self.timing.push((after.as_millis() as u64, position));
    }

    pub(crate) fn stopping(&mut self, why: Stop, after_lines: u64) {
        self.stop.get_or_insert(StopMark { why, after_lines });
    }

    /// What comes after these lines was not read.
    pub(crate) fn cut_short(&mut self, after_lines: u64) {
        self.lines_read = Some(after_lines);
    }

    pub(crate) fn beside(&mut self, what: Beside, after_lines: u64) {
        self.beside.push((after_lines, what));
    }

    pub(crate) fn tools(&mut self, tools: Vec<(String, ToolFact)>) {
        self.tools = tools;
    }

    pub(crate) fn sessions(&mut self, published: &[PathBuf]) {
        self.sessions = published.to_vec();
    }

    /// Writes everything; what cannot be written is said in the log, since the run itself is over.
    pub(crate) fn finish(
        mut self,
        end: &End,
        outcome: &Arc<Outcome>,
        warnings_after: Vec<String>,
        run_dir: &Path,
    ) {
        let (beside, tools) = (std::mem::take(&mut self.beside), std::mem::take(&mut self.tools));
        let recording = Recording {
            format: FORMAT,
            request: self.request.clone(),
            end: End { stderr: self.secrets.hide(&end.stderr), ..end.clone() },
            stop: self.stop,
            warnings_before: std::mem::take(&mut self.warnings_before),
            warnings_after,
            beside,
            tools,
            lines_read: self.lines_read,
        };
        if let Err(error) = self.write(&recording, outcome, run_dir) {
            tracing::error!(%error, dir = %self.dir.display(), "the recording is incomplete");
        }
    }

    fn write(&self, recording: &Recording, outcome: &Outcome, run_dir: &Path) -> io::Result<()> {
        for name in ["stdout", "stderr"] {
            self.secrets.copy(&run_dir.join(name), &self.dir.join(name))?;
        }
        let mut timing = BufWriter::new(File::create(self.dir.join("timing.jsonl"))?);
        for (millis, bytes) in &self.timing {
            writeln!(timing, "[{millis},{bytes}]")?;
        }
        timing.flush()?;
        for session in &self.sessions {
            let Some(name) = session.file_name() else { continue };
            fs::create_dir_all(self.dir.join("session"))?;
            self.secrets.copy(session, &self.dir.join("session").join(name))?;
        }
        let outcome = self.secrets.hide(&serde_json::to_string_pretty(outcome)?);
        fs::write(self.dir.join("outcome.json"), outcome + "\n")?;
        // Last, because it says that the rest is there.
        let recording = self.secrets.hide(&serde_json::to_string_pretty(recording)?);
        fs::write(self.dir.join("recording.json"), recording + "\n")
    }
}

/// Values that must not be written down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// The values of variables whose names say that they are secret.
    pub(crate) fn of(env: &Environment) -> Self {
        const SIGNS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];
        let secret = |name: &str| SIGNS.iter().any(|sign| name.to_ascii_uppercase().contains(sign));
        let mut values: Vec<(String, String)> = env
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            // Short values occur by accident.
            .filter(|(name, value)| secret(name) && value.len() >= 8 && !value.starts_with('/'))
            .collect();
        // A longer value may hold a shorter one.
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Self(values)
    }

    fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("[{name}]")))
    }

    fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.0.is_empty() {
            return fs::copy(from, to).map(|_| ());
        }
        let mut from = BufReader::with_capacity(1 << 16, File::open(from)?);
        let mut to = BufWriter::new(File::create(to)?);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            for (name, value) in &self.0 {
                if memmem::find(&line, value.as_bytes()).is_some() {
                    line = replace(&line, value.as_bytes(), format!("[{name}]").as_bytes());
                }
            }
            to.write_all(&line)?;
            line.clear();
        }
        to.flush()
    }
}

fn replace(text: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = memmem::find(rest, what) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        out.extend_from_slice(with);
        rest = after.get(what.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// Whether a directory holds a recording.
pub fn is_recording(dir: &Path) -> bool {
    dir.join("recording.json").is_file()
}

/// The session files of a recording.
pub fn session_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("session")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// What the disk said when the run ended.
struct RecordedDisk {
    files: Vec<FileRecord>,
    tools: Vec<(String, ToolFact)>,
}

impl Disk for RecordedDisk {
    fn look(&self, path: &str) -> DiskFact {
        match self.files.iter().find(|file| file.path == path) {
            None => DiskFact::Unknown,
            Some(file) if !file.verified => DiskFact::Untouched,
            Some(file) if file.change == Change::Created => DiskFact::Created,
            Some(_) => DiskFact::Modified,
        }
    }

    fn tool(&mut self, id: &str) -> Option<ToolFact> {
        let at = self.tools.iter().position(|(told, _)| told == id)?;
        Some(self.tools.swap_remove(at).1)
    }
}

/// Plays a recording: the same lines and events in the same order, and the same outcome.
pub fn play(dir: &Path, mut each: impl FnMut(Item)) -> io::Result<Arc<Outcome>> {
    let recording: Recording = serde_json::from_slice(&fs::read(dir.join("recording.json"))?)?;
    if recording.format != FORMAT {
        return Err(io::Error::other(format!(
            "the recording has format {}; this release reads {FORMAT}",
            recording.format
        )));
    }
    let outcome: Outcome = serde_json::from_slice(&fs::read(dir.join("outcome.json"))?)?;
    let found: Vec<FileRecord> = outcome.files.iter().filter(|file| !file.claimed).cloned().collect();
    let mut interpreter =
        Interpreter::with_disk(RecordedDisk { files: outcome.files, tools: recording.tools });
    let mut beside = recording.beside.into_iter().peekable();
    let mut out = Vec::new();
    // The first tick is older than the first warning.
    if let Some((_, first)) = beside.next() {
        first.tell(&mut interpreter, &mut out);
    }
    for warning in recording.warnings_before {
        interpreter.warn(warning, &mut out);
    }
    let mut stdout = BufReader::with_capacity(1 << 18, File::open(dir.join("stdout"))?);
    let (mut framer, mut lines) = (Framer::default(), 0u64);
    let (stop, lines_read) = (recording.stop, recording.lines_read.unwrap_or(u64::MAX));
    let mut take = |interpreter: &mut Interpreter<RecordedDisk>, frame: Frame<'_>, items: &mut Vec<Item>| {
        if lines >= lines_read {
            return;
        }
        if let Some(stop) = stop.filter(|stop| stop.after_lines == lines) {
            interpreter.stopping(stop.why);
        }
        let mut out = Vec::new();
        while let Some((_, what)) = beside.next_if(|(after, _)| *after <= lines) {
            what.tell(interpreter, &mut out);
        }
        items.extend(out.drain(..).map(Item::Event));
        lines += 1;
        match frame {
            Frame::Line(line) => {
                items.push(Item::Line(line.to_vec()));
                interpreter.line(line, &mut out);
            }
            Frame::TooLong { bytes, sample } => interpreter.too_long(sample, bytes, &mut out),
        }
        items.extend(out.into_iter().map(Item::Event));
    };
    let mut items: Vec<Item> = out.drain(..).map(Item::Event).collect();
    loop {
        let bytes = stdout.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        let count = bytes.len();
        framer.push(bytes, |frame| take(&mut interpreter, frame, &mut items));
        stdout.consume(count);
        items.drain(..).for_each(&mut each);
    }
    framer.finish(|frame| take(&mut interpreter, frame, &mut items));
    items.into_iter().for_each(&mut each);
    for (_, what) in beside {
        what.tell(&mut interpreter, &mut out);
    }
    if let Some(stop) = stop {
        // The first reason counts, so this is only for a stop after the last line.
        interpreter.stopping(stop.why);
    }
    interpreter.verify_files();
    for file in found {
        interpreter.found_on_disk(file.path, file.change, &mut out);
    }
    for warning in recording.warnings_after {
        interpreter.warn(warning, &mut out);
    }
    let outcome = interpreter.conclude(&recording.end, &mut out);
    out.into_iter().map(Item::Event).for_each(each);
    Ok(outcome)
}
