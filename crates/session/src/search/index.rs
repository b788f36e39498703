//! The index on disk: segments, and a list that says what is in them.
//!
//! A session that changed is indexed again as a whole, into a new segment; its old messages stay in theirs until segments
//! are merged, and are left out of answers. One process at a time writes, under a lock. Others read what is there: the list is
//! replaced by rename and names the segments that belong to it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::bytes::{damaged, read_exact_at};
use super::merge::{self, Source};
use super::run::Run;
use super::segment::{Place, Segment};
use super::text::texts;
use crate::cache::{make_private, replace};
use crate::file::{SessionFile, Stamp};
use crate::survey;

/// Raise this when the index is built differently.
const FORMAT: u32 = 1;
const LIST: &str = "index.json";
const LOCK: &str = "lock";

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    format: u32,
    next: u64,
    segments: Vec<Listed>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    name: String,
    files: Vec<Known>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    path: PathBuf,
    size: u64,
    modified: i64,
    inode: u64,
}

impl Known {
    fn of(file: &SessionFile) -> Self {
        let Stamp { size, modified, inode } = file.stamp;
        Self { path: file.path.clone(), size, modified, inode }
    }

    fn is(&self, file: &SessionFile) -> bool {
        let Stamp { size, modified, inode } = file.stamp;
        (self.size, self.modified, self.inode) == (size, modified, inode)
            && self.path.as_os_str() == file.path.as_os_str()
    }
}

/// An index that is open.
#[derive(Default)]
pub(super) struct Index {
    list: List,
    pub(super) segments: Vec<Segment>,
}

/// How far building has come, in bytes read of all.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

impl Index {
    /// What is there; empty when nothing is, or nothing that can be used.
    pub(super) fn open(dir: &Path) -> Self {
        // A segment can go away between reading the list and opening it, when another process has merged it.
        for _ in 0..3 {
            match Self::try_open(dir) {
                Ok(index) => return index,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => break,
            }
        }
        Self::default()
    }

    fn try_open(dir: &Path) -> io::Result<Self> {
        let list: List = serde_json::from_slice(&fs::read(dir.join(LIST))?)?;
        if list.format != FORMAT {
            return Err(damaged());
        }
        let segments = list.segments.iter().map(|listed| Segment::open(&dir.join(&listed.name)));
        let segments = segments.collect::<io::Result<_>>()?;
        Ok(Self { list, segments })
    }

    /// Where each of these files is: the place in `files` of each file of each segment that is up to date.
    pub(super) fn covered(&self, files: &[SessionFile]) -> Vec<Vec<Option<usize>>> {
        let wanted: HashMap<&OsStr, usize> =
            files.iter().enumerate().map(|(at, file)| (file.path.as_os_str(), at)).collect();
        let mut taken = HashSet::new();
        let mut covered: Vec<Vec<Option<usize>>> = Vec::new();
        for listed in self.list.segments.iter().rev() {
            let found = listed.files.iter().map(|known| {
                let at = *wanted.get(known.path.as_os_str())?;
                (known.is(files.get(at)?) && taken.insert(at)).then_some(at)
            });
            covered.push(found.collect());
        }
        covered.reverse();
        covered
    }

    /// How large it is on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}

/// Which of the files are in no segment.
pub(super) fn missing(covered: &[Vec<Option<usize>>], files: usize) -> Vec<usize> {
    let known: HashSet<usize> = covered.iter().flatten().flatten().copied().collect();
    (0..files).filter(|at| !known.contains(at)).collect()
}

/// Brings the index up to date and opens it. While another process does so, what is there is opened as it is.
pub(super) fn update(dir: &Path, files: &[SessionFile], progress: Progress<'_>) -> io::Result<Index> {
    let index = Index::open(dir);
    let lacks = missing(&index.covered(files), files.len());
    if lacks.is_empty() {
        return Ok(index);
    }
    make_private(dir)?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(index),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Another process may just have finished.
    let mut index = Index::open(dir);
    let lacks = missing(&index.covered(files), files.len());
    if !lacks.is_empty() {
        let fresh: Vec<&SessionFile> = lacks.iter().filter_map(|at| files.get(*at)).collect();
        add(dir, &mut index, &fresh, files, progress)?;
    }
    Ok(index)
}

fn add(
    dir: &Path,
    index: &mut Index,
    fresh: &[&SessionFile],
    all: &[SessionFile],
    progress: Progress<'_>,
) -> io::Result<()> {
    let scratch = tempfile::Builder::new().prefix("building-").tempdir_in(dir)?;
    let built = build(scratch.path(), fresh, progress)?;
    let name = next_name(&mut index.list);
    let whole: Vec<Option<u32>> = (0..fresh.len() as u32).map(Some).collect();
    let sources: Vec<Source<'_>> =
        built.iter().map(|segment| Source { segment, files: whole.clone() }).collect();
    write_segment(dir, &name, &sources)?;
    drop(sources);
    index
        .list
        .segments
        .push(Listed { name: name.clone(), files: fresh.iter().map(|file| Known::of(file)).collect() });
    index.segments.push(Segment::open(&dir.join(&name))?);
    tidy(dir, index, all)?;
    index.list.format = FORMAT;
    replace(dir, &dir.join(LIST), |out| serde_json::to_writer(out, &index.list).map_err(io::Error::from))?;
    sweep(dir, &index.list);
    Ok(())
}

fn next_name(list: &mut List) -> String {
    list.next += 1;
    format!("{}.segment", list.next)
}

fn write_segment(dir: &Path, name: &str, sources: &[Source<'_>]) -> io::Result<()> {
    let file = tempfile::NamedTempFile::new_in(dir)?;
    merge::merge(sources, file.as_file())?;
    file.persist(dir.join(name)).map(drop).map_err(|error| error.error)
}

/// Merges from the end while a segment is not at least twice as large as the one after it, so that there are few of them and
/// each message is merged a few times at most. What has been replaced is left out on the way.
fn tidy(dir: &Path, index: &mut Index, files: &[SessionFile]) -> io::Result<()> {
    let mut from = index.segments.len().saturating_sub(1);
    let mut size = index.segments.last().map_or(0, |segment| segment.bytes);
    while from > 0 {
        let before = index.segments.get(from - 1).map_or(0, |segment| segment.bytes);
        if before >= size * 2 {
            break;
        }
        size += before;
        from -= 1;
    }
    if index.segments.len() - from < 2 {
        return Ok(());
    }
    let covered = index.covered(files);
    let mut kept = Vec::new();
    let mut sources = Vec::new();
    for ((segment, listed), live) in index.segments.iter().zip(&index.list.segments).zip(&covered).skip(from)
    {
        let renumbered = listed.files.iter().zip(live).map(|(known, live)| {
            live.map(|_| {
                kept.push(known.clone());
                kept.len() as u32 - 1
            })
        });
        sources.push(Source { segment, files: renumbered.collect() });
    }
    let name = next_name(&mut index.list);
    write_segment(dir, &name, &sources)?;
    drop(sources);
    index.segments.truncate(from);
    index.list.segments.truncate(from);
    index.list.segments.push(Listed { name: name.clone(), files: kept });
    index.segments.push(Segment::open(&dir.join(&name))?);
    Ok(())
}

/// Deletes segments that nobody names, and what a killed process left.
fn sweep(dir: &Path, list: &List) {
    let named: HashSet<&str> = list.segments.iter().map(|listed| listed.name.as_str()).collect();
    for entry in fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(".segment") && !named.contains(name) {
            let _gone = fs::remove_file(entry.path());
        } else if name.starts_with("building-") {
            let _gone = fs::remove_dir_all(entry.path());
        }
    }
}

/// Reads files on all cores and writes their words, in as many segments as it takes.
fn build(scratch: &Path, files: &[&SessionFile], progress: Progress<'_>) -> io::Result<Vec<Segment>> {
    let all: u64 = files.iter().map(|file| file.stamp.size).sum();
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let segments = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get()).min(4).min(files.len());
    std::thread::scope(|scope| {
        let work = || -> io::Result<()> {
            let (mut run, mut reader) = (Run::default(), Reader::default());
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(at) else { break };
                reader.index(file, at as u32, &mut run, |run| flush(run, scratch, &segments))?;
                let read = done.fetch_add(file.stamp.size, Ordering::Relaxed) + file.stamp.size;
                progress(read, all);
            }
            if run.is_empty() { Ok(()) } else { flush(&mut run, scratch, &segments) }
        };
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let others = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(damaged())));
        others.fold(mine, io::Result::and)
    })?;
    Ok(segments.into_inner().unwrap_or_default())
}

fn flush(run: &mut Run, scratch: &Path, segments: &Mutex<Vec<Segment>>) -> io::Result<()> {
    let (file, path) = tempfile::NamedTempFile::new_in(scratch)?.keep().map_err(|error| error.error)?;
    run.flush(&file)?;
    let segment = Segment::open(&path)?;
    if let Ok(mut segments) = segments.lock() {
        segments.push(segment);
    }
    Ok(())
}

/// Reads the messages of a file; keeps its buffers.
#[derive(Default)]
struct Reader {
    buffer: Vec<u8>,
    record: Vec<u8>,
    text: String,
}

impl Reader {
    fn index(
        &mut self,
        file: &SessionFile,
        number: u32,
        run: &mut Run,
        mut flush: impl FnMut(&mut Run) -> io::Result<()>,
    ) -> io::Result<()> {
        // A file that is gone or cannot be read has no words.
        let Ok((_, outline)) = survey::outline(file, &mut self.buffer) else { return Ok(()) };
        let Ok(open) = File::open(&file.path) else { return Ok(()) };
        for span in outline.said {
            let Ok(length) = usize::try_from(span.length) else { continue };
            self.record.resize(length, 0);
            if read_exact_at(&open, &mut self.record, span.offset).is_err() {
                continue;
            }
            texts(&self.record, &mut self.text, |_, text| run.text(text));
            run.end_message(Place { file: number, span });
            if run.is_full() {
                flush(run)?;
            }
        }
        Ok(())
    }
}
