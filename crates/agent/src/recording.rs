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
//! Nobody else can read the files, and secrets are replaced by their names ([`mask`]).

mod mask;
mod recorder;
mod secrets;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_model::{
    Change, Disk, DiskFact, End, Event, Exit, Fact, FileRecord, Interpreter, Outcome, Statistics, Stop,
    Timestamp, ToolFact,
};
use alhena_wire::frame::{Frame, Framer};
use serde::{Deserialize, Serialize};

pub(crate) use self::recorder::Recorder;
pub(crate) use self::secrets::secrets;
use crate::run::Item;

/// The layout of the directory.
pub const FORMAT: u32 = 2;

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
struct Header {
    format: u32,
    request: serde_json::Value,
}

/// What the interpreter was told beside the lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Input {
    /// The time.
    Tick(Timestamp),
    /// Something from the session file.
    Fact(Fact),
    /// What the session file said of a call when it was asked; it stands behind the line that asked.
    Tool(String, ToolFact),
    /// What the CLI measured.
    Statistics(Statistics),
    /// Something that people should know.
    Warning(String),
    /// Alhena began to stop the run.
    Stop(Stop),
    /// The session is not in the user's store.
    SessionLost,
    /// The lines that follow were not read.
    CutShort,
    /// The disk was asked for the files that tools claim.
    Verify,
    /// A file that changed, and that no tool claims.
    Found(String, Change),
    /// The run is over.
    End(End),
}

/// Whether a directory holds a recording.
pub fn is_recording(dir: &Path) -> bool {
    dir.join(names::HEADER).is_file()
}

/// The session files of a recording.
pub fn session_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join(names::SESSIONS)).into_iter().flatten().flatten();
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
    let header: Header = serde_json::from_slice(&fs::read(dir.join(names::HEADER))?)?;
    if header.format != FORMAT {
        return Err(io::Error::other(format!(
            "the recording has format {}; this release reads {FORMAT}",
            header.format
        )));
    }
    let files = match fs::read(dir.join(names::OUTCOME)) {
        Ok(text) => serde_json::from_slice::<Outcome>(&text)?.files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut player = Player::new(files, inputs(dir)?);
    let mut stdout = BufReader::with_capacity(1 << 18, File::open(dir.join(names::STDOUT))?);
    let mut framer = Framer::default();
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
fn inputs(dir: &Path) -> io::Result<Vec<(u64, Input)>> {
    let text = fs::read_to_string(dir.join(names::INPUTS))?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

struct Player {
    interpreter: Interpreter<RecordedDisk>,
    inputs: std::iter::Peekable<std::vec::IntoIter<(u64, Input)>>,
    lines: u64,
    /// So many lines were read before the run was stopped.
    lines_read: u64,
    end: Option<End>,
    items: Vec<Item>,
}

impl Player {
    fn new(files: Vec<FileRecord>, mut inputs: Vec<(u64, Input)>) -> Self {
        let cut = inputs.iter().find(|(_, input)| matches!(input, Input::CutShort));
        let lines_read = cut.map_or(u64::MAX, |(after, _)| *after);
        let mut tools = Vec::new();
        inputs.retain_mut(|(_, input)| match input {
            Input::Tool(id, fact) => {
                tools.push((std::mem::take(id), fact.clone()));
                false
            }
            _ => true,
        });
        let interpreter = Interpreter::with_disk(RecordedDisk { files, tools });
        let inputs = inputs.into_iter().peekable();
        Self { interpreter, inputs, lines: 0, lines_read, end: None, items: Vec::new() }
    }

    fn line(&mut self, frame: Frame<'_>) {
        if self.lines >= self.lines_read {
            return;
        }
        while let Some((_, input)) = self.inputs.next_if(|(after, _)| *after <= self.lines) {
            self.tell(input);
        }
        self.lines += 1;
        let mut out = Vec::new();
        match frame {
            Frame::Line(line) => {
                self.items.push(Item::Line(line.to_vec()));
                self.interpreter.line(line, &mut out);
            }
            Frame::TooLong { bytes, sample } => self.interpreter.malformed(sample, bytes, &mut out),
        }
        self.hand_out(out);
    }

    fn tell(&mut self, input: Input) {
        let (interpreter, mut out) = (&mut self.interpreter, Vec::new());
        match input {
            Input::Tick(time) => interpreter.tick(time),
            Input::Fact(fact) => interpreter.fact(fact, &mut out),
            Input::Statistics(statistics) => interpreter.statistics(statistics),
            Input::Warning(warning) => interpreter.warn(warning, &mut out),
            Input::Stop(why) => interpreter.stopping(why),
            Input::SessionLost => interpreter.session_is_lost(),
            Input::Verify => interpreter.verify_files(),
            Input::Found(path, change) => interpreter.found_on_disk(path, change, &mut out),
            Input::End(end) => self.end = Some(end),
            // Known from the start.
            Input::Tool(..) | Input::CutShort => {}
        }
        self.hand_out(out);
    }

    fn end(mut self, dir: &Path) -> (Arc<Outcome>, Vec<Item>) {
        while let Some((_, input)) = self.inputs.next() {
            self.tell(input);
        }
        let end = self.end.take().unwrap_or_else(|| {
            self.tell(Input::Warning(ENDS_EARLY.to_owned()));
            let stderr = crate::engine::tail(&dir.join(names::STDERR));
            End { exit: Exit::Unknown, stderr, duration_ms: None }
        });
        let mut out = Vec::new();
        let outcome = self.interpreter.conclude(&end, &mut out);
        self.items.extend(out.into_iter().map(Item::Event));
        (outcome, self.items)
    }

    fn hand_out(&mut self, events: Vec<Event>) {
        self.items.extend(events.into_iter().map(Item::Event));
    }
}
