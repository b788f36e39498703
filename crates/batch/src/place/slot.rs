//! Numbered directories for places. Each is held by a lock, and what nobody holds is taken away: a process that was killed leaves
//! nothing for longer than until the next batch.
//!
//! They are used again: a warm process stays in the directory that it was started in, and Gemini CLI keeps a list of the
//! directories that it has worked in (0.61.0), which is not to grow with every job.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use alhena_sys::{files, locks};

/// More than can ever be in use at once.
const MOST: u32 = 100_000;

/// A number that is ours.
#[derive(Debug)]
pub struct Slot {
    root: PathBuf,
    number: u32,
    lock: File,
}

impl Slot {
    /// Takes the first number that nobody has.
    pub fn take(root: &Path) -> io::Result<Self> {
        for number in 0..MOST {
            if let Some(lock) = locks::take(&lock_file(root, number))? {
                let slot = Self { root: root.canonicalize()?, number, lock };
                match slot.clear() {
                    Ok(()) => return Ok(slot),
                    // What cannot be emptied stays as it is, and another is as good.
                    Err(error) => tracing::warn!(%error, "a place could not be emptied"),
                }
            }
        }
        Err(io::Error::other("all places are taken"))
    }

    /// What holds it.
    pub fn lock(&self) -> &File {
        &self.lock
    }

    /// Where places of this slot are, by their names.
    pub fn dir(&self) -> PathBuf {
        self.root.join(self.number.to_string())
    }

    /// Beside it, so that nothing of it is in sight of who works there.
    pub fn ledger(&self) -> PathBuf {
        self.root.join(format!("{}.ledger", self.number))
    }

    /// An empty place of this name.
    pub fn place(&self, name: &str) -> io::Result<PathBuf> {
        let place = self.dir().join(name);
        files::create_private_dir(&place)?;
        if place.canonicalize()? != place {
            return Err(io::Error::other("it leads somewhere else"));
        }
        empty(&place)?;
        remove(&self.ledger())?;
        Ok(place)
    }

    /// Takes away what is in the places, but not themselves. Whoever worked there may have put a link in the place of one.
    pub fn tidy(&self) -> io::Result<()> {
        if !files::is_plain_dir(&self.dir()) {
            return self.clear();
        }
        for entry in fs::read_dir(self.dir())? {
            let path = entry?.path();
            match files::is_plain_dir(&path) {
                true => empty(&path)?,
                false => remove(&path)?,
            }
        }
        remove(&self.ledger())
    }

    fn clear(&self) -> io::Result<()> {
        remove(&self.dir())?;
        remove(&self.ledger())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        match self.clear() {
            Ok(()) => {
                let _left_for_the_next = fs::remove_file(lock_file(&self.root, self.number));
            }
            Err(error) => tracing::warn!(%error, dir = %self.dir().display(), "a place could not be removed"),
        }
    }
}

/// Removes what those left who are gone. Gives how many there were.
pub fn sweep(root: &Path) -> io::Result<usize> {
    let mut numbers: Vec<u32> =
        files::names_in(root)?.iter().filter_map(|name| name.split('.').next()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut swept = 0;
    for number in numbers {
        if let Some(lock) = locks::take(&lock_file(root, number))? {
            let slot = Slot { root: root.to_owned(), number, lock };
            swept += usize::from(slot.clear().is_ok());
        }
    }
    Ok(swept)
}

fn lock_file(root: &Path, number: u32) -> PathBuf {
    root.join(format!("{number}.lock"))
}

/// Removes whatever is there, also from directories that do not let one.
pub fn remove(path: &Path) -> io::Result<()> {
    match files::is_plain_dir(path) {
        true => files::remove_tree(path),
        false => match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        },
    }
}

fn empty(dir: &Path) -> io::Result<()> {
    files::set_mode(dir, 0o700)?;
    for entry in fs::read_dir(dir)? {
        remove(&entry?.path())?;
    }
    Ok(())
}
