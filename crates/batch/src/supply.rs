//! Jobs, from a file or from a stream that is still being written.
//!
//! A file is read twice: once before anything runs, to tell all that is wrong with it, and each job again when its turn comes.
//! What is kept of a job meanwhile is small, however long its prompt. Of a stream only the next jobs are in memory.

mod records;
mod stream;
mod table;
mod template;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_model::SettingError;
use alhena_sys::files;

pub use self::records::{Format, value_of_text};
use self::records::{Parser, Records};
pub use self::stream::Came;
use self::stream::JobStream;
pub(crate) use self::stream::id_of_no_job;
pub use self::template::Template;
use crate::job::{Common, Fields, Job, Lane, Mark, Place};
use crate::launcher::Launcher;

/// What all jobs of a batch have in common.
pub struct Setting {
    /// How they are written.
    pub format: Format,
    /// Options where a job says nothing.
    pub defaults: Fields,
    /// What prompts are made by.
    pub template: Option<Template>,
    /// Checks the options.
    pub launcher: Arc<dyn Launcher>,
    /// Whether workers on other machines run the jobs.
    pub travels: bool,
}

impl Setting {
    fn common(&self) -> Common<'_> {
        Common {
            defaults: &self.defaults,
            template: self.template.as_ref(),
            launcher: self.launcher.as_ref(),
            travels: self.travels,
        }
    }

    fn parser(&self, first: Option<&[u8]>) -> Result<Parser, Vec<SettingError>> {
        match self.format {
            Format::Lines => Ok(Parser::of_lines()),
            Format::Table(separator) => {
                Parser::of_table(separator, first.unwrap_or_default(), self.template.as_ref())
            }
        }
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The line on which the job begins.
    pub line: u64,
    /// What is wrong.
    pub fault: SettingError,
}

/// Why there are no jobs.
#[derive(Debug)]
pub enum Unusable {
    /// They cannot be read.
    Io(io::Error),
    /// Something is wrong with them: all of it, in the order of lines.
    Wrong(Vec<Complaint>),
}

/// What is kept of every job.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its id.
    pub id: Arc<str>,
    /// The line on which it begins.
    pub line: u64,
    /// Of all that it says.
    pub mark: Mark,
    /// The number of the lane it belongs to, if to one.
    pub lane: Option<u32>,
    /// Whether it asks for a place of its own.
    pub private: bool,
    /// Whether it is a line of a stream that was refused, whose id the next job may have.
    pub(crate) refused: bool,
    offset: u64,
    length: usize,
}

/// The jobs of a batch, as far as they are known.
pub struct Supply {
    entries: Vec<Entry>,
    ids: HashMap<Arc<str>, usize>,
    lanes: Lanes,
    source: Source,
}

enum Source {
    File { file: File, parser: Parser, setting: Arc<Setting> },
    Stream { stream: JobStream, kept: HashMap<usize, Box<Job>>, over: bool },
}

/// Directories in which one job at a time may change something.
#[derive(Default)]
struct Lanes {
    numbers: HashMap<PathBuf, u32>,
    dirs: Vec<PathBuf>,
}

impl Lanes {
    fn number(&mut self, lane: Lane) -> Option<u32> {
        let Lane::In(dir) = lane else { return None };
        if let Some(number) = self.numbers.get(&dir) {
            return Some(*number);
        }
        let number = u32::try_from(self.dirs.len()).ok()?;
        self.dirs.push(dir.clone());
        self.numbers.insert(dir, number);
        Some(number)
    }
}

impl Supply {
    /// All jobs of a file. Nothing but their ids, marks and places stays in memory.
    pub fn of_file(path: &Path, setting: Setting) -> Result<Self, Unusable> {
        let file = files::open(path).map_err(Unusable::Io)?;
        let mut records = Records::new(BufReader::with_capacity(256 << 10, &file), setting.format);
        let mut complaints = Vec::new();
        let first = match setting.format {
            Format::Lines => None,
            Format::Table(_) => records.next().map_err(Unusable::Io)?,
        };
        let parser =
            setting.parser(first.as_ref().map(|record| record.bytes.as_slice())).map_err(|faults| {
                let line = first.as_ref().map_or(1, |record| record.line);
                Unusable::Wrong(faults.into_iter().map(|fault| Complaint { line, fault }).collect())
            })?;
        let (mut entries, mut ids) = (Vec::<Entry>::new(), HashMap::<Arc<str>, usize>::new());
        // Of lines with other faults: whoever mends those would be told of their ids only then.
        let mut faulty = HashMap::<String, u64>::new();
        let mut lanes = Lanes::default();
        while let Some(record) = records.next().map_err(Unusable::Io)? {
            let line = record.line;
            let said = parser.parse(&record.bytes).map_err(|fault| vec![fault]);
            let id = said.as_ref().ok().and_then(|said| crate::job::id_of(said, line));
            let other = id.as_deref().and_then(|id| {
                let known = ids.get(id).and_then(|other| entries.get(*other)).map(|other| other.line);
                known.or_else(|| faulty.get(id).copied())
            });
            let same = id.as_deref().zip(other).map(|(id, other)| twice(id, other));
            complaints.extend(same.map(|fault| Complaint { line, fault }));
            let (job, lane) = match said.and_then(|said| Job::read(line, said, &setting.common())) {
                Ok(_) if other.is_some() => continue,
                Ok(read) => read,
                Err(faults) => {
                    complaints.extend(faults.into_iter().map(|fault| Complaint { line, fault }));
                    faulty.extend(id.map(|id| (id, other.unwrap_or(line))));
                    continue;
                }
            };
            let private = job.place != Place::Dir;
            let id: Arc<str> = job.id.into();
            ids.insert(id.clone(), entries.len());
            let (offset, length) = (record.offset, record.bytes.len());
            let lane = lanes.number(lane);
            entries.push(Entry { id, line, mark: job.mark, lane, private, refused: false, offset, length });
        }
        drop(records);
        if !complaints.is_empty() {
            return Err(Unusable::Wrong(complaints));
        }
        let setting = Arc::new(setting);
        Ok(Self { entries, ids, lanes, source: Source::File { file, parser, setting } })
    }

    /// Jobs as they come. `wake` is called when something has come, and at the end.
    pub fn of_stream(
        input: impl io::Read + Send + 'static,
        setting: Setting,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let stream = JobStream::begin(input, Arc::new(setting), wake)?;
        Ok(Self {
            entries: Vec::new(),
            ids: HashMap::new(),
            lanes: Lanes::default(),
            source: Source::Stream { stream, kept: HashMap::new(), over: false },
        })
    }

    /// All jobs that are known.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of the job with this id.
    pub fn number(&self, id: &str) -> Option<usize> {
        self.ids.get(id).copied()
    }

    /// Of all jobs together, once they are all known.
    pub fn mark(&self) -> Option<Mark> {
        let parts = |entry: &Entry| [entry.id.to_string(), entry.mark.to_string()];
        let parts: Vec<String> = self.entries.iter().flat_map(parts).collect();
        let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
        self.is_complete().then(|| Mark::of(&parts))
    }

    /// Whether no more jobs can come.
    pub fn is_complete(&self) -> bool {
        match &self.source {
            Source::File { .. } => true,
            Source::Stream { over, .. } => *over,
        }
    }

    /// The directory of a lane.
    pub fn lane(&self, number: u32) -> &Path {
        self.lanes.dirs.get(number as usize).map_or(Path::new("/"), PathBuf::as_path)
    }

    /// What has come since, if something has. A job that has come is the last entry from then on.
    pub fn take_next(&mut self) -> Option<Came> {
        let Source::Stream { stream, kept, over } = &mut self.source else { return None };
        match stream.next()? {
            Came::Job(job, lane) => {
                let other = self.ids.get(job.id.as_str()).and_then(|other| self.entries.get(*other));
                if let Some(other) = other.filter(|other| !other.refused) {
                    let complaint = Complaint { line: job.line, fault: twice(&job.id, other.line) };
                    return Some(Came::Refused { id: None, mark: None, complaints: vec![complaint] });
                }
                self.known(&job.id.as_str().into(), job.line, job.mark, Some(lane.clone()));
                if let Source::Stream { kept, .. } = &mut self.source {
                    kept.insert(self.entries.len() - 1, job.clone());
                }
                Some(Came::Job(job, lane))
            }
            Came::Refused { id, mark, complaints } => {
                let id = id.filter(|id| !self.ids.contains_key(id.as_str()));
                if let (Some(id), Some(mark)) = (&id, mark) {
                    let line = complaints.first().map_or(0, |complaint| complaint.line);
                    self.known(&id.as_str().into(), line, mark, None);
                }
                Some(Came::Refused { id, mark, complaints })
            }
            end @ (Came::End | Came::Broken(_)) => {
                *over = true;
                kept.shrink_to_fit();
                Some(end)
            }
        }
    }

    /// One that was refused has no lane.
    fn known(&mut self, id: &Arc<str>, line: u64, mark: Mark, lane: Option<Lane>) {
        self.ids.insert(id.clone(), self.entries.len());
        let refused = lane.is_none();
        let lane = lane.and_then(|lane| self.lanes.number(lane));
        let id = id.clone();
        self.entries.push(Entry { id, line, mark, lane, private: false, refused, offset: 0, length: 0 });
    }

    /// The job itself.
    pub fn job(&self, number: usize) -> Result<Job, SettingError> {
        let changed =
            |what: &str| SettingError::new(what.to_owned(), "Leave the jobs alone while the batch runs.");
        let entry = self.entries.get(number).ok_or_else(|| changed("there is no such job"))?;
        match &self.source {
            Source::Stream { kept, .. } => {
                kept.get(&number).map(|job| (**job).clone()).ok_or_else(|| changed("the job is over"))
            }
            Source::File { file, parser, setting } => {
                let mut bytes = vec![0; entry.length];
                let read = files::read_exact_at(file, &mut bytes, entry.offset).map_err(|error| {
                    SettingError::new(format!("the job cannot be read any more: {error}"), "")
                });
                let said = read.and_then(|()| parser.parse(&bytes));
                let job = said.and_then(|said| {
                    Job::read(entry.line, said, &setting.common()).map_err(|mut faults| {
                        faults.pop().unwrap_or_else(|| changed("the job cannot be read any more"))
                    })
                });
                match job {
                    Ok((job, _)) if job.id == *entry.id && job.mark == entry.mark => Ok(job),
                    Ok(_) => Err(changed("the job was changed while the batch ran")),
                    Err(fault) => Err(fault),
                }
            }
        }
    }

    /// A job that is over is not asked for any more.
    pub fn forget(&mut self, number: usize) {
        if let Source::Stream { kept, .. } = &mut self.source {
            kept.remove(&number);
        }
    }
}

impl fmt::Debug for Supply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supply").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

fn twice(id: &str, line: u64) -> SettingError {
    SettingError::new(format!("id {id:?} is that of line {line}, too"), "Give every job an id of its own.")
}

#[cfg(test)]
mod tests;
