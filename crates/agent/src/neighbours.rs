//! Other runs that work in the same folder at the same time.
//!
//! The disk says that a file changed, not who changed it. But every run knows what its own tools wrote: it says so in its
//! directory while it lives, and tells those that live longer when it ends. So a file that another run wrote is not taken
//! for a change of this one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use alhena_model::FileRecord;

use crate::run_dir::{self, Holder};

/// In a run's directory: where it works.
const FOLDER: &str = "folder";
/// What its tools have written so far, one path as JSON in each line.
const CLAIMS: &str = "claims";
/// What runs that have ended since had written, in the same form.
const OTHERS: &str = "others";

/// A run among others.
pub(crate) struct Neighbours {
    own: PathBuf,
    folder: PathBuf,
    met: bool,
    told: usize,
}

/// What is known of the others when a run ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// Whether there were any.
    pub any: bool,
    /// What they wrote.
    pub wrote: HashSet<PathBuf>,
}

impl Neighbours {
    /// Says where a run works.
    pub(crate) fn announce(own: &Path, folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        fs::write(own.join(FOLDER), serde_json::to_vec(&folder)?)?;
        let mut neighbours = Self { own: own.to_owned(), folder, met: false, told: 0 };
        neighbours.met = !neighbours.alive().is_empty();
        Ok(neighbours)
    }

    /// Says what the tools of the run have written: all of it so far, in the same order each time.
    pub(crate) fn claim(&mut self, written: &[FileRecord]) {
        let new: Vec<PathBuf> =
            written.iter().skip(self.told).map(|file| self.folder.join(&file.path)).collect();
        if !new.is_empty() && append(&self.own.join(CLAIMS), &new).is_ok() {
            self.told = written.len();
        }
    }

    /// Another turn of the same agent: what it writes is counted from its beginning.
    pub(crate) fn begin_again(&mut self) {
        self.told = 0;
    }

    /// The run has ended: tells the others what its tools wrote, and asks what theirs did.
    pub(crate) fn part(&mut self, written: &[FileRecord]) -> Others {
        self.claim(written);
        let written = paths(&self.own.join(CLAIMS));
        let mut others = Others { any: self.met, wrote: HashSet::new() };
        for other in self.alive() {
            others.any = true;
            others.wrote.extend(paths(&other.join(CLAIMS)));
            // One that ends just now does not need to know any more.
            let _gone = append(&other.join(OTHERS), &written);
        }
        others.any |= self.own.join(OTHERS).exists();
        others.wrote.extend(paths(&self.own.join(OTHERS)));
        others
    }

    /// The directories of runs that live and work in this folder, above or below it.
    fn alive(&self) -> Vec<PathBuf> {
        let Some(runs) = self.own.parent() else { return Vec::new() };
        let others = fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
        others
            .filter(|other| *other != self.own)
            .filter(|other| {
                let mark = other.file_name().unwrap_or_default().to_string_lossy();
                run_dir::holder(runs, &mark) == Holder::Somebody
            })
            .filter(|other| {
                let folder = fs::read(other.join(FOLDER)).unwrap_or_default();
                let folder = serde_json::from_slice::<PathBuf>(&folder);
                folder
                    .is_ok_and(|folder| folder.starts_with(&self.folder) || self.folder.starts_with(&folder))
            })
            .collect()
    }
}

fn append(to: &Path, paths: &[PathBuf]) -> io::Result<()> {
    let mut lines = Vec::new();
    for path in paths {
        // A path that is no text cannot come from a tool.
        if let Ok(line) = serde_json::to_vec(path) {
            lines.extend(line);
            lines.push(b'\n');
        }
    }
    File::options().create(true).append(true).open(to)?.write_all(&lines)
}

fn paths(from: &Path) -> Vec<PathBuf> {
    let text = fs::read(from).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::RunDir;
    use alhena_model::Change;

    #[test]
    fn each_run_knows_what_the_others_wrote_whichever_ends_first() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (runs, folder) = (place.join("runs"), place.join("work"));
        fs::create_dir_all(folder.join("below")).unwrap();
        let file = |name: &str| FileRecord {
            path: name.to_owned(),
            change: Change::Created,
            tool: Some("write_file".to_owned()),
            claimed: true,
            verified: true,
            diff: None,
        };
        let met = |path: &str| Others { any: true, wrote: HashSet::from([folder.join(path)]) };
        let [first, second, far] = [(); 3].map(|()| RunDir::create(&runs).unwrap());
        let mut one = Neighbours::announce(first.path(), &folder).unwrap();
        let mut elsewhere = Neighbours::announce(far.path(), &runs).unwrap();
        let mut two = Neighbours::announce(second.path(), &folder.join("below")).unwrap();
        one.claim(&[file("one")]);
        assert_eq!(two.part(&[file("two")]), met("one"));
        drop(second);
        assert_eq!(one.part(&[file("one"), file("late")]), met("below/two"));
        drop(first);
        assert_eq!(elsewhere.part(&[]), Others::default());
    }
}
