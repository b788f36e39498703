//! Locks that say whether somebody lives: a file that is held with flock ends with its last holder, however that ends, and
//! is seen by processes of other containers that share the directory. A process's number is neither.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::files::FileId;

/// How often a lock is tried that somebody holds.
const LOOK: Duration = Duration::from_millis(5);

/// How long a lock may outlive its holder. Whoever is killed while it starts a program leaves its locks to the process that
/// is to become the program, until that begins.
pub const LINGERS: Duration = Duration::from_secs(2);

/// Whether somebody has a lock now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// We have.
    Ours,
    /// Somebody else has.
    Others,
}

/// Opens a file that is there to be locked, and makes it if it is missing.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Locks an open file, as soon as nobody else has. Closing it unlocks.
pub fn lock(file: impl AsFd) -> io::Result<()> {
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

/// Unlocks a file that stays open.
pub fn unlock(file: impl AsFd) -> io::Result<()> {
    Ok(flock(file, FlockOperation::Unlock)?)
}

/// Locks an open file, if that can be done at once.
pub fn try_lock(file: impl AsFd) -> io::Result<Lock> {
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock::Ours),
            Err(Errno::WOULDBLOCK) => return Ok(Lock::Others),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Locks an open file, if that can be done in time.
pub fn lock_within(file: impl AsFd, longest: Duration) -> io::Result<Lock> {
    let deadline = Instant::now() + longest;
    while try_lock(&file)? == Lock::Others {
        if Instant::now() >= deadline {
            return Ok(Lock::Others);
        }
        std::thread::sleep(LOOK);
    }
    Ok(Lock::Ours)
}

/// Locks the file of this name if nobody has; it is made if it is missing, and its directory too. None while another has it.
///
/// The file may be removed by one who ends just now, so what was locked must still be what is there.
pub fn take(path: &Path) -> io::Result<Option<File>> {
    loop {
        match take_by(path, open) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                crate::files::create_private_dir(path.parent().ok_or(error)?)?;
            }
            other => return other,
        }
    }
}

/// The same, if nobody has it who lives: for what is refused to the user where another holds it.
pub fn take_from_the_dead(path: &Path) -> io::Result<Option<File>> {
    let deadline = Instant::now() + LINGERS;
    loop {
        match take(path)? {
            None if Instant::now() < deadline => std::thread::sleep(LOOK),
            other => return Ok(other),
        }
    }
}

/// The same for a file that must be there.
pub fn take_existing(path: &Path) -> io::Result<Option<File>> {
    take_by(path, |path| OpenOptions::new().read(true).write(true).open(path))
}

fn take_by(path: &Path, open: fn(&Path) -> io::Result<File>) -> io::Result<Option<File>> {
    loop {
        let file = open(path)?;
        if try_lock(&file)? == Lock::Others {
            return Ok(None);
        }
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// Whether an open file is the one that has this path.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = FileId::of(file)?;
    match FileId::at_link(path) {
        Ok(there) => Ok(held == there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lock_is_held_until_its_file_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/lock");
        assert_eq!(take_existing(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let held = take(&path).unwrap().unwrap();
        assert!(take(&path).unwrap().is_none());
        assert!(take_existing(&path).unwrap().is_none());
        let other = open(&path).unwrap();
        assert_eq!(lock_within(&other, Duration::from_millis(1)).unwrap(), Lock::Others);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&other));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
        drop(other);
        assert!(take_existing(&path).unwrap().is_some());
    }

    #[test]
    fn what_a_killed_process_had_is_free_when_what_it_was_starting_begins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let inherited = take(&path).unwrap().unwrap().try_clone().unwrap();
        assert!(take(&path).unwrap().is_none());
        let begins = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(inherited);
        });
        assert!(take_from_the_dead(&path).unwrap().is_some());
        begins.join().unwrap();
        let _somebody = take(&path).unwrap().unwrap();
        assert!(take_from_the_dead(&path).unwrap().is_none());
    }

    #[test]
    fn a_file_that_was_removed_is_not_the_lock_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = take(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&held, &path).unwrap());
        let next = take(&path).unwrap().unwrap();
        assert!(is_at(&next, &path).unwrap() && !is_at(&held, &path).unwrap());
    }
}
