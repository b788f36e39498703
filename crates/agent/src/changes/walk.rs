//! Looks at every file below a directory, in parallel.
//!
//! A file counts by its change time, which no program can set, or by its modification time. A directory that was moved
//! keeps the times of what is in it; only its own change time is new, and its modification time is not.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use alhena_sys::files::{FileKind, Listing};

use super::rules::Rules;
use super::{DiskState, ScanOptions};
use parking_lot::{Condvar, Mutex};

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Files that the file system says are new.
    pub(super) new: BTreeSet<PathBuf>,
    pub(super) modified: Vec<PathBuf>,
    pub(super) truncated: bool,
    pub(super) unreadable: usize,
}

/// A directory to look into.
struct Job {
    path: PathBuf,
    /// The rules for the directory itself; its own file may add some.
    rules: Rules,
    arrival: Arrival,
}

/// Whether a directory was where it is before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// It was: the times of what is in it tell what is new.
    Here,
    /// It was moved, or is below one that was: everything in it is new here.
    Moved,
}

/// What the threads share.
struct Work {
    waiting: Vec<Job>,
    /// How many threads are looking into a directory, and may find more.
    busy: usize,
    /// How many threads wait for more.
    idle: usize,
    walked: Walked,
    found: usize,
}

struct Walk<'a> {
    since: SystemTime,
    exclude: &'a [PathBuf],
    device: u64,
    deadline: Instant,
    most: usize,
    work: Mutex<Work>,
    more: Condvar,
}

/// Finds the files below `root`, a real path, that changed since.
pub(super) fn walk(root: &Path, since: SystemTime, exclude: &[PathBuf], options: &ScanOptions) -> Walked {
    let Ok(itself) = Listing::open(root).and_then(|listing| listing.look(OsStr::new("."))) else {
        return Walked { unreadable: 1, ..Walked::default() };
    };
    let start = Job { path: root.to_path_buf(), rules: Rules::above(root), arrival: Arrival::Here };
    let walk = Walk {
        since,
        exclude,
        device: itself.device,
        deadline: Instant::now() + options.limit,
        most: options.most,
        work: Mutex::new(Work {
            waiting: vec![start],
            busy: 0,
            idle: 0,
            walked: Walked::default(),
            found: 0,
        }),
        more: Condvar::new(),
    };
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| walk.work());
        }
        walk.work();
    });
    walk.work.into_inner().walked
}

impl Walk<'_> {
    /// Looks into directories until there is none left, or a bound is reached.
    fn work(&self) {
        let mut work = self.work.lock();
        loop {
            if work.found > self.most || Instant::now() > self.deadline {
                work.walked.truncated |= work.busy > 0 || !work.waiting.is_empty() || work.found > self.most;
                work.waiting.clear();
            }
            if let Some(job) = work.waiting.pop() {
                work.busy += 1;
                drop(work);
                let inside = self.look_into(&job);
                work = self.work.lock();
                work.busy -= 1;
                inside.add_to(&mut work, self.most);
                // Waking somebody costs as much as looking at a file.
                if work.idle > 0 && (work.waiting.len() > 1 || work.busy == 0) {
                    self.more.notify_all();
                }
            } else if work.busy == 0 {
                return;
            } else {
                work.idle += 1;
                self.more.wait(&mut work);
                work.idle -= 1;
            }
        }
    }

    fn look_into(&self, job: &Job) -> Inside {
        let mut inside = Inside::default();
        let listing = match Listing::read(&job.path) {
            Ok(listing) => listing,
            Err(error) => return inside.unreadable(&error),
        };
        let rules = job.rules.clone().inside(&job.path, &listing.names);
        let mut path = job.path.clone();
        for name in &listing.names {
            if name == ".git" {
                continue;
            }
            path.push(name);
            match listing.look(name) {
                Ok(look) if look.kind == FileKind::Other || self.leaves_out(&path, look.kind, &rules) => {}
                Ok(look) if look.kind == FileKind::File => {
                    inside.file(&path, &look.state, job.arrival, self.since)
                }
                // Another file system is another tree, perhaps a huge one.
                Ok(look) if look.device != self.device => {}
                Ok(look) => {
                    let arrival = if self.was_moved(&look.state) { Arrival::Moved } else { job.arrival };
                    inside.directories.push(Job { path: path.clone(), rules: rules.clone(), arrival });
                }
                Err(error) => inside = inside.unreadable(&error),
            }
            path.pop();
        }
        inside
    }

    fn leaves_out(&self, path: &Path, kind: FileKind, rules: &Rules) -> bool {
        let ignored = !rules.is_empty() && rules.ignore(path, kind == FileKind::Directory);
        ignored || self.exclude.iter().any(|excluded| excluded == path)
    }

    fn was_moved(&self, state: &DiskState) -> bool {
        let modified = state.modified.is_some_and(|time| time >= self.since);
        state.changed_since(self.since) && !modified && !state.created_since(self.since)
    }
}

/// What one directory holds.
#[derive(Default)]
struct Inside {
    directories: Vec<Job>,
    new: Vec<PathBuf>,
    modified: Vec<PathBuf>,
    unreadable: usize,
}

impl Inside {
    fn file(&mut self, path: &Path, state: &DiskState, arrival: Arrival, since: SystemTime) {
        if arrival == Arrival::Moved || state.created_since(since) {
            self.new.push(path.to_path_buf());
        } else if state.changed_since(since) {
            self.modified.push(path.to_path_buf());
        }
    }

    /// What vanished between being listed and being looked at is no error.
    fn unreadable(mut self, error: &io::Error) -> Self {
        let vanished = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        self.unreadable += usize::from(!vanished);
        self
    }

    fn add_to(self, work: &mut Work, most: usize) {
        work.waiting.extend(self.directories);
        work.walked.unreadable += self.unreadable;
        let room = most.saturating_sub(work.found);
        work.found += self.new.len() + self.modified.len();
        let fitting = self.new.len().min(room);
        work.walked.new.extend(self.new.into_iter().take(room));
        work.walked.modified.extend(self.modified.into_iter().take(room - fitting));
    }
}
