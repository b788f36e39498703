//! The results file, which is the journal: who is done, whatever happened meanwhile.
//!
//! Each result is one line, written whole and on the disk before its job counts as done. A writer that is killed leaves at
//! most the beginning of a line, and that is taken away by the next one. Of two lines with the same id the one with more attempts
//! counts; when a batch ends there is one for each job. Nobody else writes the file meanwhile: it is locked.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use alhena_model::{FailureKind, Status};
use alhena_sys::files::{self, FileId};
use alhena_sys::locks::{self, Lock};
use serde::Deserialize;

use crate::result::{Earlier, JobResult, Spent};

/// What every line begins with.
const BEGINNING: &str = "{\"id\":\"";

/// What the journal knows of a job that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// How often it was tried.
    pub attempt: u32,
    /// How it ended.
    pub status: Status,
    /// Why it failed, if it did.
    pub kind: Option<FailureKind>,
    /// The mark of the job that was done.
    pub job: Box<str>,
    /// What all attempts used.
    pub spent: Spent,
    /// How long the last attempt took.
    pub duration_ms: u64,
    offset: u64,
    length: u64,
}

impl Entry {
    /// Whether nothing was tried: the line was no job then.
    pub fn is_refusal(&self) -> bool {
        self.attempt == 0
    }
}

#[cfg(test)]
impl Entry {
    pub(crate) fn for_tests(
        status: Status,
        kind: Option<FailureKind>,
        spent: Spent,
        duration_ms: u64,
    ) -> Self {
        Self { attempt: 1, status, kind, job: "".into(), spent, duration_ms, offset: 0, length: 0 }
    }
}

/// The results of a batch.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Holds the lock.
    _lock: File,
    length: u64,
    done: HashMap<Box<str>, Entry>,
    /// Whether some line counts no more.
    superseded: bool,
}

/// Why a file cannot be the journal. Nothing of it was touched.
#[derive(Debug)]
pub enum NoJournal {
    /// It cannot be opened, read or mended.
    Io(io::Error),
    /// Another batch writes it.
    InUse,
    /// It holds something else.
    NotOurs {
        /// The first line that is no result.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for NoJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoJournal::Io(error) => error.fmt(f),
            NoJournal::InUse => f.write_str("another batch writes it"),
            NoJournal::NotOurs { line, why } => write!(f, "line {line} is not the result of a job: {why}"),
        }
    }
}

impl std::error::Error for NoJournal {}

impl From<io::Error> for NoJournal {
    fn from(error: io::Error) -> Self {
        NoJournal::Io(error)
    }
}

/// What is read of a line.
#[derive(Deserialize)]
struct Seen {
    id: Box<str>,
    attempt: u32,
    job: Box<str>,
    outcome: SeenOutcome,
    #[serde(default)]
    earlier: Vec<Earlier>,
}

#[derive(Deserialize)]
struct SeenOutcome {
    status: Status,
    usage: SeenUsage,
    cost_usd: Option<f64>,
    duration_ms: u64,
    failure: Option<SeenFailure>,
}

#[derive(Deserialize)]
struct SeenUsage {
    total: u64,
}

#[derive(Deserialize)]
struct SeenFailure {
    kind: FailureKind,
}

impl Seen {
    fn entry(self, offset: u64, length: u64) -> (Box<str>, Entry) {
        let mut spent = Spent::of(self.outcome.usage.total, self.outcome.cost_usd);
        self.earlier.iter().for_each(|earlier| spent.add(Spent::of(earlier.tokens, earlier.cost_usd)));
        let entry = Entry {
            attempt: self.attempt,
            status: self.outcome.status,
            kind: self.outcome.failure.map(|failure| failure.kind),
            job: self.job,
            spent,
            duration_ms: self.outcome.duration_ms,
            offset,
            length,
        };
        (self.id, entry)
    }
}

/// The number of a job by its id.
pub type Order<'a> = &'a dyn Fn(&str) -> Option<usize>;

impl Journal {
    /// Opens the results, or begins them. What a killed writer left of a line is taken away.
    pub fn open(path: &Path) -> Result<Self, NoJournal> {
        let (path, file) = loop {
            let begun = !path.exists();
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            let path = path.canonicalize()?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is not a regular file, and has to be read again").into());
            }
            if locks::lock_within(&file, locks::LINGERS)? == Lock::Others {
                return Err(NoJournal::InUse);
            }
            // Whoever had it may have put another in its place.
            if locks::is_at(&file, &path)? {
                if begun {
                    sync_directory(&path)?;
                }
                break (path, file);
            }
        };
        let lock = file.try_clone()?;
        let mut journal =
            Self { path, file, _lock: lock, length: 0, done: HashMap::new(), superseded: false };
        journal.read()?;
        Ok(journal)
    }

    fn read(&mut self) -> Result<(), NoJournal> {
        let mut input = BufReader::with_capacity(256 << 10, self.file.try_clone()?);
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            number += 1;
            let length = input.read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                return Ok(());
            }
            if !line.ends_with(b"\n") {
                if !is_begun_by_us(&line) {
                    let why = "it is none that was begun".to_owned();
                    return Err(NoJournal::NotOurs { line: number, why });
                }
                tracing::info!(bytes = length, "the beginning of a result is taken away");
                self.file.set_len(self.length)?;
                self.file.sync_all()?;
                return Ok(());
            }
            let seen: Seen = serde_json::from_slice(line.trim_ascii_end())
                .map_err(|error| NoJournal::NotOurs { line: number, why: why_not(&line, &error) })?;
            let (id, entry) = seen.entry(self.length, length);
            self.take(id, entry);
            self.length += length;
        }
    }

    /// Of two results of a job, the later attempt counts.
    fn take(&mut self, id: Box<str>, entry: Entry) {
        match self.done.get_mut(&id) {
            None => {
                self.done.insert(id, entry);
            }
            Some(known) => {
                self.superseded = true;
                if entry.attempt >= known.attempt {
                    *known = entry;
                }
            }
        }
    }

    /// What is known of a job, if it is done.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.done.get(id)
    }

    /// Forgets that a line was refused: it is a job now.
    pub(crate) fn forget_refusal(&mut self, id: &str) {
        if self.get(id).is_some_and(Entry::is_refusal) {
            self.done.remove(id);
            self.superseded = true;
        }
    }

    /// All jobs that are done.
    pub fn done(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.done.iter().map(|(id, entry)| (&**id, entry))
    }

    /// Where the results are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is the file at a path.
    pub fn is_at(&self, path: &Path) -> bool {
        let ours = FileId::of(&self.file).ok();
        ours.is_some() && ours == FileId::at(path).ok()
    }

    /// Adds results, which are on the disk when this returns. On an error none of them is there.
    pub fn add(&mut self, results: &[JobResult]) -> io::Result<()> {
        let mut lines = String::new();
        let mut entries = Vec::with_capacity(results.len());
        for result in results {
            let line = result.line().map_err(io::Error::other)?;
            let (offset, length) = (self.length + lines.len() as u64, line.len() as u64);
            entries.push((
                Box::from(result.id.as_str()),
                Entry {
                    attempt: result.attempt,
                    status: result.outcome.status,
                    kind: result.outcome.failure.as_ref().map(|failure| failure.kind),
                    job: result.job.as_str().into(),
                    spent: result.spent(),
                    duration_ms: result.outcome.duration_ms,
                    offset,
                    length,
                },
            ));
            lines.push_str(&line);
        }
        let written = files::write_all_at(&self.file, lines.as_bytes(), self.length)
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would be taken away by the next batch; nobody has to wait for that one.
            let _still_half = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += lines.len() as u64;
        entries.into_iter().for_each(|(id, entry)| self.take(id, entry));
        Ok(())
    }

    /// Leaves one line for each job; in this order, if there is one to have. As a whole or not at all.
    pub fn arrange(&mut self, order: Option<Order<'_>>) -> io::Result<()> {
        let mut kept: Vec<(&str, &Entry)> = self.done().collect();
        kept.sort_by_key(|(_, entry)| entry.offset);
        if let Some(order) = order {
            kept.sort_by_key(|(id, _)| order(id).unwrap_or(usize::MAX));
        }
        let in_order = kept.is_sorted_by_key(|(_, entry)| entry.offset);
        if in_order && !self.superseded {
            return Ok(());
        }
        let mut lock = None;
        let mut places: HashMap<Box<str>, u64> = HashMap::with_capacity(kept.len());
        let mut length = 0;
        files::replace_piecewise(&self.path, 0o666, |new| {
            // It is ours before it has its name.
            locks::lock(&*new)?;
            lock = Some(new.try_clone()?);
            let mut out = io::BufWriter::with_capacity(256 << 10, new);
            for (id, entry) in &kept {
                let mut line = At { file: &self.file, offset: entry.offset }.take(entry.length);
                if io::copy(&mut line, &mut out)? != entry.length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                places.insert((*id).into(), length);
                length += entry.length;
            }
            out.flush()
        })?;
        sync_directory(&self.path)?;
        self.file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        self._lock = lock.ok_or_else(|| io::Error::other("the lock was lost"))?;
        for (id, entry) in &mut self.done {
            entry.offset = places.get(id).copied().unwrap_or_default();
        }
        (self.length, self.superseded) = (length, false);
        Ok(())
    }
}

/// What is wrong with a line, without the number that it has by itself.
fn why_not(line: &[u8], error: &serde_json::Error) -> String {
    let said = error.to_string();
    match line.trim_ascii().is_empty() {
        true => "it is empty".to_owned(),
        false => said.split(" at line ").next().unwrap_or_default().to_owned(),
    }
}

/// Reads a file from a place on.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = files::read_at(self.file, buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Whether the end of a file, without a line end, can be what a killed writer left of a result: so much of it as there is begins as
/// results do, and is no JSON that is complete. After a power failure it may be zeros.
fn is_begun_by_us(bytes: &[u8]) -> bool {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    let begun = bytes.get(..end).unwrap_or_default();
    let beginning = BEGINNING.as_bytes();
    let alike = begun.iter().zip(beginning).all(|(one, other)| one == other);
    let is_ours = || {
        // Behind the id there is the attempt.
        let rest = begun.get(beginning.len()..).unwrap_or_default();
        let mut escaped = false;
        let closes = |byte: &u8| {
            let is_plain = !std::mem::replace(&mut escaped, false);
            escaped = is_plain && *byte == b'\\';
            is_plain && *byte == b'"'
        };
        let behind = rest.iter().position(closes).and_then(|at| rest.get(at..)).unwrap_or_default();
        behind.iter().zip(b"\",\"attempt\":").all(|(one, other)| one == other)
    };
    let is_complete = serde_json::from_slice::<serde::de::IgnoredAny>(begun).is_ok();
    let is_result = serde_json::from_slice::<Seen>(begun).is_ok();
    alike && is_ours() && (!is_complete || is_result)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

#[cfg(test)]
mod tests;
