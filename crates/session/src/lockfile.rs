//! The CLI's own lock on a file: a directory `<file>.lock` that counts as held while its time stamp is fresh.
//!
//! Gemini CLI 0.61.0 locks `projects.json` and `trustedFolders.json` with proper-lockfile: `mkdir` takes the lock, the
//! holder renews the directory's time every 5 s, and one older than 10 s is anybody's. A CLI that is killed while it
//! holds the lock leaves it behind, and the next start waits 13 s because its retries back off; this one looks often.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use alhena_sys::files::Stamp;

/// How old the directory must be to count as left behind.
const STALE: Duration = Duration::from_secs(10);
/// How often a held lock is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct LockDir {
    path: PathBuf,
    /// To see whether the directory is still ours.
    identity: Stamp,
}

/// Why a lock could not be had.
#[derive(Debug)]
pub enum NotLocked {
    /// Somebody alive held it all the time.
    Held,
    /// The file system said no.
    Io(io::Error),
}

impl LockDir {
    /// Takes the lock on a file, whose directory must exist. Waits at most `patience` for another holder.
    pub fn take(file: &Path, patience: Duration) -> Result<Self, NotLocked> {
        let path = lock_path(file).map_err(NotLocked::Io)?;
        let deadline = Instant::now() + patience;
        loop {
            match fs::create_dir(&path) {
                Ok(()) => {
                    let identity = identity(&path).map_err(NotLocked::Io)?;
                    return Ok(Self { path, identity });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(NotLocked::Io(error)),
            }
            if is_stale(&path) {
                match fs::remove_dir(&path) {
                    Ok(()) => continue,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(NotLocked::Io(error)),
                }
            }
            if Instant::now() >= deadline {
                return Err(NotLocked::Held);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for LockDir {
    fn drop(&mut self) {
        // Somebody who found us stale has taken it over: then it is theirs.
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// As proper-lockfile does: beside the file itself, not beside a link to it.
fn lock_path(file: &Path) -> io::Result<PathBuf> {
    let real = match fs::canonicalize(file) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = file.parent().unwrap_or(Path::new("."));
            fs::canonicalize(dir)?.join(file.file_name().unwrap_or_default())
        }
        Err(error) => return Err(error),
    };
    let mut name = real.into_os_string();
    name.push(".lock");
    Ok(name.into())
}

fn identity(path: &Path) -> io::Result<Stamp> {
    fs::symlink_metadata(path).map(|meta| Stamp::of(&meta))
}

/// A time in the future is fresh, as it is for the CLI.
fn is_stale(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > STALE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("projects.json");
        fs::write(&file, "{}").unwrap();
        (dir, file)
    }

    fn age(path: &Path, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_lock_is_the_directory_that_the_cli_looks_for() {
        let (dir, file) = file();
        let lock = LockDir::take(&file, Duration::ZERO).unwrap();
        assert!(dir.path().join("projects.json.lock").is_dir());
        assert!(matches!(LockDir::take(&file, Duration::ZERO), Err(NotLocked::Held)));
        drop(lock);
        assert!(!dir.path().join("projects.json.lock").exists());
    }

    #[test]
    fn a_lock_left_behind_is_taken_over_and_a_fresh_one_is_not() {
        let (dir, file) = file();
        let path = dir.path().join("projects.json.lock");
        fs::create_dir(&path).unwrap();
        age(&path, 9);
        assert!(matches!(LockDir::take(&file, Duration::ZERO), Err(NotLocked::Held)));
        age(&path, 11);
        LockDir::take(&file, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_that_is_released_meanwhile_is_had() {
        let (_dir, file) = file();
        let held = LockDir::take(&file, Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| LockDir::take(&file, Duration::from_secs(30)));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_lock_that_was_taken_over_is_left_to_its_new_holder() {
        let (dir, file) = file();
        let path = dir.path().join("projects.json.lock");
        let ours = LockDir::take(&file, Duration::ZERO).unwrap();
        age(&path, 11);
        let theirs = LockDir::take(&file, Duration::ZERO).unwrap();
        drop(ours);
        assert!(path.is_dir());
        drop(theirs);
        assert!(!path.exists());
    }

    #[test]
    fn the_lock_of_a_linked_file_is_beside_the_file_itself() {
        let (dir, file) = file();
        let other = tempfile::tempdir().unwrap();
        let link = other.path().join("projects.json");
        alhena_sys::files::symlink(&file, &link).unwrap();
        let _lock = LockDir::take(&link, Duration::ZERO).unwrap();
        assert!(dir.path().join("projects.json.lock").is_dir());
    }
}
