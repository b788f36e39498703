//! What git knows: which files existed before, and which of them have gone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use alhena_sys::files;

use super::index::Index;

/// What comparing the index with the disk says.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Files that look new and that git knows: something wrote them anew.
    pub(super) replaced: Vec<PathBuf>,
    pub(super) deleted: Vec<PathBuf>,
    pub(super) complete: bool,
    pub(super) truncated: bool,
}

impl Known {
    /// Takes the files that git knows out of `new`, and finds the ones below `root` that have gone since.
    ///
    /// A file counts as deleted during the run if the nearest directory above it that still exists changed since then;
    /// what was missing before is in a directory that nobody touched.
    pub(super) fn compare(
        mut index: Index,
        root: &Path,
        since: SystemTime,
        new: &mut BTreeSet<PathBuf>,
        most: usize,
    ) -> Self {
        let mut known = Self::default();
        let mut above = Above::default();
        let top = index.top.clone();
        let read = index.each(|entry| {
            let path = top.join(files::path_from_bytes(entry.name));
            if !path.starts_with(root) {
                return;
            }
            if new.remove(&path) {
                known.replaced.push(path);
                return;
            }
            let expected = entry.expected;
            if !expected || !above.touched(&path, since) || path.symlink_metadata().is_ok() {
                return;
            }
            match known.deleted.len() < most {
                true => known.deleted.push(path),
                false => known.truncated = true,
            }
        });
        known.complete = read.is_ok();
        known
    }
}

/// The nearest existing directory above the file that was asked about last. Names come sorted, so mostly the next file has
/// the same.
#[derive(Default)]
struct Above {
    parent: PathBuf,
    touched: bool,
}

impl Above {
    fn touched(&mut self, path: &Path, since: SystemTime) -> bool {
        let Some(parent) = path.parent() else { return false };
        if parent != self.parent {
            self.parent = parent.to_path_buf();
            let nearest = parent.ancestors().find_map(|directory| directory.symlink_metadata().ok());
            self.touched = nearest.is_some_and(|data| data.modified().is_ok_and(|time| time >= since));
        }
        self.touched
    }
}
