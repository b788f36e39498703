//! Locks that say whether somebody lives: a file that is held with flock ends with its last holder, however that ends, and
//! is seen by processes of other containers that share the directory. A process's number is neither.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Takes a lock if nobody holds it; the file is made if it is missing, and its directory too.
///
/// The file may be removed by one who ends just now, so what was locked must still be what is there.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        match try_lock_there(path, Missing::Make) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                crate::dirs::create(path.parent().ok_or(error)?)?;
            }
            other => return other,
        }
    }
}

/// The same for a file that must be there.
pub(crate) fn try_lock_existing(path: &Path) -> io::Result<Option<File>> {
    try_lock_there(path, Missing::Fail)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Fail,
}

fn try_lock_there(path: &Path, missing: Missing) -> io::Result<Option<File>> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).create(missing == Missing::Make).truncate(false);
        let file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// Whether an open file is the one that has this path.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((held.dev(), held.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
