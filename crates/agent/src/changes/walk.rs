//! Looks at every file below a directory, in parallel.
//!
//! A file counts by its change time, which no program can set, or by its modification time. A directory that was moved
//! keeps the times of what is in it; only its own change time is new, and its modification time is not.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Instant, SystemTime};

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::{DiskState, ScanOptions};

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Files that the file system says are new.
    pub(super) new: BTreeSet<PathBuf>,
    pub(super) modified: Vec<PathBuf>,
    pub(super) truncated: bool,
    pub(super) unreadable: usize,
}

/// One thing seen on the way.
enum Seen {
    New(PathBuf),
    Modified(PathBuf),
    MovedDirectory(PathBuf),
    Unreadable,
    TooLate,
}

/// Finds the files below `root`, a real path, that changed since.
pub(super) fn walk(root: &Path, since: SystemTime, exclude: &[PathBuf], options: &ScanOptions) -> Walked {
    let deadline = Instant::now() + options.limit;
    let mut walked = Walked::default();
    let mut moved = Vec::new();
    for seen in visit(root, exclude, deadline, options.most, |entry, data| classify(entry, data, since)) {
        match seen {
            Seen::New(path) => drop(walked.new.insert(path)),
            Seen::Modified(path) => walked.modified.push(path),
            Seen::MovedDirectory(path) => moved.push(path),
            Seen::Unreadable => walked.unreadable += 1,
            Seen::TooLate => walked.truncated = true,
        }
    }
    for directory in moved {
        // What is inside was not there before, whatever its times say.
        let inside = visit(&directory, exclude, deadline, options.most, |entry, _| {
            is_file(entry).then(|| Seen::New(entry.path().to_path_buf()))
        });
        for seen in inside {
            match seen {
                Seen::New(path) => drop(walked.new.insert(path)),
                Seen::TooLate => walked.truncated = true,
                Seen::Modified(_) | Seen::MovedDirectory(_) | Seen::Unreadable => {}
            }
        }
        let new = &walked.new;
        walked.modified.retain(|path| !new.contains(path));
    }
    walked
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink())
}

fn classify(entry: &DirEntry, data: &Metadata, since: SystemTime) -> Option<Seen> {
    let state = DiskState::of(data);
    if !state.changed_since(since) {
        return None;
    }
    let path = entry.path().to_path_buf();
    if is_file(entry) {
        return Some(if state.created_since(since) { Seen::New(path) } else { Seen::Modified(path) });
    }
    let modified = state.modified.is_some_and(|time| time >= since);
    let moved = data.is_dir() && entry.depth() > 0 && !modified && !state.created_since(since);
    moved.then_some(Seen::MovedDirectory(path))
}

/// Visits every entry that `.gitignore` does not name, and gives back what `look` makes of it.
fn visit(
    root: &Path,
    exclude: &[PathBuf],
    deadline: Instant,
    most: usize,
    look: impl Fn(&DirEntry, &Metadata) -> Option<Seen> + Sync,
) -> Vec<Seen> {
    let excluded = exclude.to_vec();
    let walker = WalkBuilder::new(root)
        .hidden(false)
        .ignore(false)
        .require_git(false)
        .follow_links(false)
        .same_file_system(true)
        .threads(std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8)))
        .filter_entry(move |entry| {
            entry.file_name() != OsStr::new(".git") && !excluded.iter().any(|path| path == entry.path())
        })
        .build_parallel();
    let (sender, receiver) = mpsc::channel();
    let (found, steps) = (AtomicUsize::new(0), AtomicUsize::new(0));
    walker.run(|| {
        let sender = sender.clone();
        let (look, found, steps) = (&look, &found, &steps);
        Box::new(move |entry| {
            // Looking at the clock for every file would cost as much as looking at the file.
            let late = steps.fetch_add(1, Ordering::Relaxed) % 256 == 0 && Instant::now() > deadline;
            if late || found.load(Ordering::Relaxed) > most {
                let _gone = sender.send(Seen::TooLate);
                return WalkState::Quit;
            }
            let seen = match entry {
                Ok(entry) => match entry.metadata() {
                    Ok(data) => look(&entry, &data),
                    Err(error) => unreadable(&error),
                },
                Err(error) => unreadable(&error),
            };
            if let Some(seen) = seen {
                if matches!(seen, Seen::New(_) | Seen::Modified(_))
                    && found.fetch_add(1, Ordering::Relaxed) >= most
                {
                    let _gone = sender.send(Seen::TooLate);
                    return WalkState::Quit;
                }
                let _gone = sender.send(seen);
            }
            WalkState::Continue
        })
    });
    drop(sender);
    receiver.into_iter().collect()
}

/// What vanished between being listed and being looked at is no error.
fn unreadable(error: &ignore::Error) -> Option<Seen> {
    let vanished = error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    // A pattern that makes no sense in somebody's `.gitignore` is not a file that cannot be read.
    (error.is_io() && !vanished).then_some(Seen::Unreadable)
}
