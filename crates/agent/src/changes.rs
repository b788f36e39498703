//! What changed on disk during a run, found by one look afterwards.
//!
//! Gemini CLI 0.61.0 reports what its file tools did and nothing of what a shell command did to files; a cancelled write is
//! reported as a success. So the disk itself is asked: every file below the working directory whose change time is later
//! than the start of the run, honouring `.gitignore`, and of the files that git knows those that have gone.
//!
//! It cannot know who changed a file, only when. Not seen are files that `.gitignore` names, and deletions of files that
//! git does not know.

mod clock;
mod index;
mod known;
mod rules;
mod walk;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What is at a path.
pub use alhena_sys::files::DiskState;
pub use clock::scan_start;

use known::Known;
use walk::Walked;

/// Bounds and exceptions of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// How long it may take; what it has found by then is the result.
    pub limit: Duration,
    /// How many changes are listed at most, deletions not included.
    pub most: usize,
    /// Files and directories that do not count, such as where a recording is being written.
    pub exclude: Vec<PathBuf>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { limit: Duration::from_secs(10), most: 10_000, exclude: Vec::new() }
    }
}

/// What changed below a directory. Paths are relative to it, sorted, and name files and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files that did not exist before.
    pub created: Vec<PathBuf>,
    /// Files that were changed, or are not known to be new.
    pub modified: Vec<PathBuf>,
    /// Files that git knows and that have gone.
    pub deleted: Vec<PathBuf>,
    /// Whether deletions could be looked for: the directory is in a git repository whose index could be read in time.
    pub deletions_known: bool,
    /// Whether a bound ended the scan, so that there may be more.
    pub truncated: bool,
    /// How many files and directories could not be looked at.
    pub unreadable: usize,
}

/// Finds what changed below `root` since a time that [`scan_start`] gave, within the usual bounds.
#[must_use]
pub fn scan(root: &Path, since: SystemTime) -> Changes {
    ScanOptions::default().scan(root, since)
}

impl ScanOptions {
    /// Finds what changed below `root` since a time that [`scan_start`] gave. Never changes anything, never follows a link
    /// except at `root` itself, and stays on the file system of `root`. A file that comes or goes meanwhile is no error.
    #[must_use]
    pub fn scan(&self, root: &Path, since: SystemTime) -> Changes {
        let Ok(root) = root.canonicalize() else {
            return Changes { unreadable: 1, ..Changes::default() };
        };
        let exclude: Vec<_> = self.exclude.iter().filter_map(|path| path.canonicalize().ok()).collect();
        // git's index is read while the files are being looked at.
        let (walked, index) = std::thread::scope(|scope| {
            let index = scope.spawn(|| index::of(&root, Instant::now() + self.limit));
            (walk::walk(&root, since, &exclude, self), index.join().unwrap_or(None))
        });
        let Walked { mut new, modified, truncated, unreadable } = walked;
        let mut changes = Changes { modified, truncated, unreadable, ..Changes::default() };
        if let Some(index) = index {
            let known = Known::compare(index, &root, since, &mut new, self.most);
            changes.modified.extend(known.replaced);
            changes.deleted = known.deleted;
            changes.deleted.retain(|path| !exclude.iter().any(|excluded| path.starts_with(excluded)));
            changes.deletions_known = known.complete;
            changes.truncated |= known.truncated;
        }
        changes.created = new.into_iter().collect();
        for list in [&mut changes.created, &mut changes.modified, &mut changes.deleted] {
            for path in list.iter_mut() {
                if let Ok(below) = path.strip_prefix(&root) {
                    *path = below.to_path_buf();
                }
            }
            list.sort();
            list.dedup();
        }
        changes
    }
}

/// Looks at one path, links followed. What cannot be looked at does not exist.
#[must_use]
pub fn verify(path: &Path) -> DiskState {
    path.metadata().map_or_else(|_| DiskState::default(), |data| DiskState::of(&data))
}

#[cfg(test)]
mod tests;
