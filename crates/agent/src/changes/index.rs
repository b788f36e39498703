//! What git knows: which files existed before, and which of them have gone.
//!
//! git itself is asked, because its index has several formats and extensions. It is asked for names only, so it looks at
//! no file; it may not take a lock, run a hook, or think of another repository that the environment names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::env;
use crate::find::ask_file;

/// The names in git's index, in a file of their own: a repository may have millions.
pub(super) struct Index(File);

/// What comparing the index with the disk says.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Files that look new and that git knows: something wrote them anew.
    pub(super) replaced: Vec<PathBuf>,
    pub(super) deleted: Vec<PathBuf>,
    pub(super) complete: bool,
    pub(super) truncated: bool,
}

/// The index of the repository that `root` is in; none without a repository, without git, or without an answer.
pub(super) fn of(root: &Path, limit: Duration) -> Option<Index> {
    root.ancestors().find(|directory| directory.join(".git").exists())?;
    let mut command = Command::new("git");
    command.args(["-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"]);
    command.args(["ls-files", "-z", "-t", "--cached"]).current_dir(root);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("GIT_") && !text.starts_with("GIT_CONFIG_") {
            command.env_remove(&name);
        }
    }
    command.env(env::GIT_OPTIONAL_LOCKS, "0");
    let (status, file) = ask_file(&mut command, limit).ok()?;
    status.success().then_some(Index(file))
}

impl Index {
    /// Takes the files that git knows out of `new`, and finds the ones that have gone since.
    ///
    /// A file counts as deleted during the run if the nearest directory above it that still exists changed since then;
    /// what was missing before is in a directory that nobody touched.
    pub(super) fn compare(
        mut self,
        root: &Path,
        since: SystemTime,
        new: &mut BTreeSet<PathBuf>,
        most: usize,
    ) -> Known {
        let mut known = Known::default();
        if self.0.rewind().is_err() {
            return known;
        }
        let mut names = BufReader::with_capacity(1 << 16, self.0);
        let mut record = Vec::new();
        let mut above = Above::default();
        known.complete = true;
        loop {
            record.clear();
            match names.read_until(0, &mut record) {
                Ok(0) => return known,
                Ok(_) => {}
                Err(_) => return Known { complete: false, ..known },
            }
            let Some((tag, name)) = record.strip_suffix(b"\0").unwrap_or(&record).split_at_checked(2) else {
                continue;
            };
            let path = root.join(path(name));
            if new.remove(&path) {
                known.replaced.push(path);
                continue;
            }
            // Left out of a sparse checkout: git does not expect it on disk.
            if tag == b"S " || !above.touched(&path, since) || path.symlink_metadata().is_ok() {
                continue;
            }
            if known.deleted.len() == most {
                return Known { truncated: true, ..known };
            }
            known.deleted.push(path);
        }
    }
}

#[cfg(unix)]
fn path(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(name.to_vec()))
}

#[cfg(not(unix))]
fn path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from(String::from_utf8_lossy(name).into_owned()))
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
