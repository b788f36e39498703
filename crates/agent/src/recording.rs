//! Recordings: everything that a run wrote, kept in a directory, and played back without a process.
//!
//! | File | Holds |
//! |---|---|
//! | `recording.json` | the format, and what was asked |
//! | `stdout`, `stderr` | the CLI's output |
//! | `inputs.jsonl` | what the interpreter was told beside the lines, in order: `[after so many lines, what]` |
//! | `outcome.json` | the outcome |
//! | `session/` | the session files |
//!
//! All of it is written while the run goes on. The last input says how the run ended; without it the recording ends early.
//! Nobody else can read the files, and secrets are replaced by their names (`mask`).

mod mask;
mod recorder;
mod secrets;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_model::{End, Event, EventKind, Exit, Input, Interpreter, Outcome, Witnesses};
use alhena_wire::frame::{Frame, Framer};
use serde::{Deserialize, Serialize};

pub(crate) use self::recorder::Recorder;
pub(crate) use self::secrets::secrets;
use crate::env::Environment;
use crate::request::{ResolvedRequest, Transport};
use crate::run::{Item, no_outcome};

/// What must not be written down of a run, for whoever writes something else of it down.
#[derive(Debug)]
pub struct Secrets(mask::Mask);

impl Secrets {
    /// What is secret in a run: by its environment, its files and its servers.
    #[must_use]
    pub fn of(request: &ResolvedRequest, environment: &Environment, dir: &Path) -> Self {
        Self(secrets(request, environment, dir))
    }

    /// The keys that somebody signs in with; words that only stand for one are left out.
    #[must_use]
    pub fn of_keys(keys: &[String]) -> Self {
        let keys = keys.iter().filter(|key| !secrets::is_placeholder(key));
        Self(mask::Mask::new(keys.map(|key| ("key".to_owned(), key.clone()))))
    }

    /// A text with something in the place of each secret, made of its name.
    #[must_use]
    pub fn hide_as(&self, text: &str, written: &dyn Fn(&str) -> String) -> String {
        String::from_utf8_lossy(&self.0.hide_as(text.as_bytes(), written)).into_owned()
    }
}

/// The layout of the directory.
pub const FORMAT: u32 = 3;

/// A line beyond this is malformed.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

/// What the outcome of a recording says that has no end.
pub const ENDS_EARLY: &str =
    "The recording ends early: Alhena was killed, or could not write on, before the run was over";

/// The files.
mod names {
    pub(super) const HEADER: &str = "recording.json";
    pub(super) const STDOUT: &str = "stdout";
    pub(super) const STDERR: &str = "stderr";
    pub(super) const INPUTS: &str = "inputs.jsonl";
    pub(super) const OUTCOME: &str = "outcome.json";
    pub(super) const SESSIONS: &str = "session";
}

/// `recording.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    format: u32,
    /// Who spoke of the run beside its stream.
    witnesses: Witnesses,
    /// What the lines of the output are.
    #[serde(default)]
    transport: Transport,
    request: serde_json::Value,
}

impl Header {
    /// Of a recording that begins now.
    pub(crate) fn new(witnesses: Witnesses, transport: Transport, request: serde_json::Value) -> Self {
        Self { format: FORMAT, witnesses, transport, request }
    }
}

/// One line of the inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedInput {
    /// The lines that follow were not read.
    CutShort,
    /// What was fed.
    #[serde(untagged)]
    Input(Input<'static>),
}

/// Whether a directory holds a recording.
pub fn is_recording(dir: &Path) -> bool {
    dir.join(names::HEADER).is_file()
}

/// Returns how the recorded run talked to the CLI.
pub fn transport(dir: &Path) -> io::Result<Transport> {
    Ok(header(dir)?.transport)
}

/// The session files of a recording.
pub fn session_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join(names::SESSIONS)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// Plays a recording: the same lines and events in the same order, and the same outcome.
pub fn play(dir: &Path, each: impl FnMut(Item)) -> io::Result<Arc<Outcome>> {
    play_with(dir, Interpreter::with, each)
}

/// The same, and before the last event the conversation; it is held in memory until then.
pub fn play_keeping(dir: &Path, each: impl FnMut(Item)) -> io::Result<Arc<Outcome>> {
    play_by(dir, Interpreter::keeping_conversation, each)
}

/// The same by an interpreter of the caller's making: one that keeps the conversation, or has other prices.
pub fn play_by(
    dir: &Path,
    make: impl FnOnce(Interpreter) -> Interpreter,
    each: impl FnMut(Item),
) -> io::Result<Arc<Outcome>> {
    play_with(dir, |witnesses| make(Interpreter::with(witnesses)), each)
}

fn header(dir: &Path) -> io::Result<Header> {
    Ok(serde_json::from_slice(&fs::read(dir.join(names::HEADER))?)?)
}

fn play_with(
    dir: &Path,
    interpreter: impl FnOnce(Witnesses) -> Interpreter,
    mut each: impl FnMut(Item),
) -> io::Result<Arc<Outcome>> {
    let header = header(dir)?;
    if header.format != FORMAT {
        return Err(io::Error::other(format!(
            "the recording has format {}; this release reads {FORMAT}",
            header.format
        )));
    }
    let mut player = Player::new(interpreter(header.witnesses), header.transport, entries(dir)?);
    let mut stdout = BufReader::with_capacity(1 << 18, File::open(dir.join(names::STDOUT))?);
    let mut framer = Framer::new(LONGEST_LINE);
    loop {
        let bytes = stdout.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        let count = bytes.len();
        framer.push(bytes, |frame| player.line(frame));
        stdout.consume(count);
        player.items.drain(..).for_each(&mut each);
    }
    framer.finish(|frame| player.line(frame));
    let (outcome, items) = player.end(dir);
    items.into_iter().for_each(each);
    Ok(outcome)
}

/// The inputs; a last line that is not whole was being written when Alhena was killed.
fn entries(dir: &Path) -> io::Result<Vec<(u64, RecordedInput)>> {
    let text = fs::read_to_string(dir.join(names::INPUTS))?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

struct Player {
    interpreter: Interpreter,
    transport: Transport,
    entries: std::iter::Peekable<std::vec::IntoIter<(u64, RecordedInput)>>,
    lines: u64,
    /// So many lines were read before the run was stopped.
    lines_read: u64,
    items: Vec<Item>,
    outcome: Option<Arc<Outcome>>,
}

impl Player {
    fn new(interpreter: Interpreter, transport: Transport, entries: Vec<(u64, RecordedInput)>) -> Self {
        let cut = entries.iter().find(|(_, entry)| matches!(entry, RecordedInput::CutShort));
        let lines_read = cut.map_or(u64::MAX, |(after, _)| *after);
        let entries = entries.into_iter().peekable();
        Self { interpreter, transport, entries, lines: 0, lines_read, items: Vec::new(), outcome: None }
    }

    fn line(&mut self, frame: Frame<'_>) {
        if self.lines >= self.lines_read {
            return;
        }
        while let Some((_, entry)) = self.entries.next_if(|(after, _)| *after <= self.lines) {
            self.entry(entry);
        }
        self.lines += 1;
        let input = match self.transport {
            Transport::Acp => Input::acp(frame),
            Transport::Headless | Transport::Auto => {
                if let Frame::Line(line) = &frame {
                    self.items.push(Item::Line(line.to_vec()));
                }
                frame.into()
            }
        };
        self.feed(input);
    }

    fn entry(&mut self, entry: RecordedInput) {
        match entry {
            RecordedInput::Input(input) => self.feed(input),
            // Known from the start.
            RecordedInput::CutShort => {}
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        let mut out: Vec<Event> = Vec::new();
        if matches!(input, Input::End(_)) {
            let said = self.interpreter.take_conversation(&mut out);
            self.items.extend(out.drain(..).map(Item::Event));
            self.items.extend(said.map(|said| Item::Conversation(Box::new(said))));
        }
        self.interpreter.feed(input, &mut out);
        if let Some(Event { kind: EventKind::Finished { outcome }, .. }) = out.last() {
            self.outcome = Some(outcome.clone());
        }
        self.items.extend(out.into_iter().map(Item::Event));
    }

    fn end(mut self, dir: &Path) -> (Arc<Outcome>, Vec<Item>) {
        while let Some((_, entry)) = self.entries.next() {
            self.entry(entry);
        }
        if self.outcome.is_none() {
            self.feed(Input::Warning(ENDS_EARLY.to_owned()));
            let stderr = crate::ward::tail(&dir.join(names::STDERR));
            self.feed(Input::End(Box::new(End { exit: Exit::Unknown, stderr, duration_ms: None })));
        }
        (self.outcome.unwrap_or_else(no_outcome), self.items)
    }
}

#[cfg(test)]
mod tests;
