//! A directory tree as a value, so that "nothing was touched" is one comparison.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::stand_in::sha256;

/// Contents up to this size are kept whole, so that a failed comparison can show them; larger ones by hash.
const KEPT: usize = 1 << 16;

#[derive(Clone, PartialEq, Eq)]
pub enum Entry {
    /// A directory with its mode.
    Directory(u32),
    /// A symbolic link with its target; it is not followed.
    Link(PathBuf),
    /// A file with mode, size, SHA-256, and its bytes if it is small.
    File { mode: u32, size: u64, sha256: String, bytes: Option<Vec<u8>> },
    /// A socket, a pipe or a device.
    Special(u32),
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(mode) => write!(out, "directory {mode:o}"),
            Self::Link(target) => write!(out, "link to {}", target.display()),
            Self::Special(mode) => write!(out, "special file {mode:o}"),
            Self::File { mode, size, sha256, bytes } => {
                write!(out, "file {mode:o}, {size} bytes, sha256 {sha256}")?;
                match bytes.as_deref().map(String::from_utf8_lossy) {
                    Some(text) => write!(out, ": {text:?}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A tree: paths relative to its root, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub entries: BTreeMap<PathBuf, Entry>,
}

impl Snapshot {
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut snapshot = Self::default();
        let mut waiting = vec![PathBuf::new()];
        while let Some(directory) = waiting.pop() {
            for found in std::fs::read_dir(root.join(&directory))? {
                let found = found?;
                let path = directory.join(found.file_name());
                let entry = match entry(&found.path()) {
                    // It has gone since it was found.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    entry => entry?,
                };
                if matches!(entry, Entry::Directory(_)) {
                    waiting.push(path.clone());
                }
                snapshot.entries.insert(path, entry);
            }
        }
        Ok(snapshot)
    }

    /// Without the paths that the test expects to change: each of these and everything under it.
    pub fn without(mut self, paths: &[&str]) -> Self {
        self.entries.retain(|path, _| !paths.iter().any(|left_out| path.starts_with(left_out)));
        self
    }
}

fn entry(path: &Path) -> io::Result<Entry> {
    let data = std::fs::symlink_metadata(path)?;
    let mode = alhena_sys::files::mode(&data);
    if data.is_dir() {
        return Ok(Entry::Directory(mode));
    }
    if data.is_symlink() {
        return Ok(Entry::Link(std::fs::read_link(path)?));
    }
    if !data.is_file() {
        return Ok(Entry::Special(mode));
    }
    let bytes = std::fs::read(path)?;
    let (size, sha256) = (bytes.len() as u64, sha256(&bytes));
    Ok(Entry::File { mode, size, sha256, bytes: (bytes.len() <= KEPT).then_some(bytes) })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Added(PathBuf),
    Removed(PathBuf),
    Changed { path: PathBuf, before: Entry, after: Entry },
}

/// What changed between two snapshots, in the order of paths. Empty means the same byte for byte.
pub fn diff(before: &Snapshot, after: &Snapshot) -> Vec<Change> {
    let paths: std::collections::BTreeSet<&PathBuf> =
        before.entries.keys().chain(after.entries.keys()).collect();
    let change = |path: &PathBuf| match (before.entries.get(path), after.entries.get(path)) {
        (None, Some(_)) => Some(Change::Added(path.clone())),
        (Some(_), None) => Some(Change::Removed(path.clone())),
        (Some(before), Some(after)) if before != after => {
            Some(Change::Changed { path: path.clone(), before: before.clone(), after: after.clone() })
        }
        _ => None,
    };
    paths.into_iter().filter_map(change).collect()
}
