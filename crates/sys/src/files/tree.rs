//! A directory with all that is in it, removed however deep it is, with a few calls for each level.
//!
//! One directory is open at a time, and the way back is `..`: neither the stack, nor open files, nor the length of a path is a limit,
//! which a job could reach otherwise. Names are looked up in open directories and links are not followed, so nothing outside is touched;
//! what `..` leads to has to be where we came from.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The file system and the number of a directory there.
type Identity = (rustix::fs::Dev, u64);

/// A directory on the way to the one that is open.
struct Level {
    /// By which it is known again.
    identity: Identity,
    /// What it is called in the one above.
    name: CString,
    /// What is left in it.
    dirs: Vec<CString>,
}

/// Removes a directory and its content. A missing directory is not an error.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let mut here = match open(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut levels = vec![Level::enter(here.as_fd(), CString::default())?];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.dirs.pop() {
            match unlink(here.as_fd(), &name, true) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                done => {
                    done?;
                    continue;
                }
            }
            here = open(here.as_fd(), &name)?;
            levels.push(Level::enter(here.as_fd(), name)?);
            continue;
        }
        let name = std::mem::take(&mut level.name);
        levels.pop();
        let Some(above) = levels.last() else { break };
        // As it is: until it is known to be ours, nothing about it is changed.
        here = rustix::fs::openat(&here, c"..", AS_DIRECTORY, Mode::empty())?;
        if identity(here.as_fd())? != above.identity {
            return Err(io::Error::other("a directory was moved while it was removed"));
        }
        unlink(here.as_fd(), &name, true)?;
    }
    rustix::fs::rmdir(path).map_err(Into::into)
}

impl Level {
    /// Removes what is no directory from one, and notes the rest.
    fn enter(dir: BorrowedFd<'_>, name: CString) -> io::Result<Self> {
        let mut dirs = Vec::new();
        for (inner, is_dir) in entries(dir)? {
            match is_dir {
                true => dirs.push(inner),
                false => unlink(dir, &inner, false)?,
            }
        }
        Ok(Self { identity: identity(dir)?, name, dirs })
    }
}

fn identity(dir: BorrowedFd<'_>) -> rustix::io::Result<Identity> {
    rustix::fs::fstat(dir).map(|stat| (stat.st_dev, stat.st_ino))
}

fn unlink(dir: BorrowedFd<'_>, name: &CString, is_dir: bool) -> rustix::io::Result<()> {
    let flags = if is_dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match rustix::fs::unlinkat(dir, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

const AS_DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory so that everything in it can be removed.
fn open(dir: impl AsFd, name: impl rustix::path::Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let dir = dir.as_fd();
    let opened = match rustix::fs::openat(dir, name, AS_DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::openat(dir, name, AS_DIRECTORY, Mode::empty())
        }
        opened => opened,
    }?;
    rustix::fs::fchmod(&opened, Mode::RWXU)?;
    Ok(opened)
}

/// What is in it, and whether that is a directory.
fn entries(dir: BorrowedFd<'_>) -> io::Result<Vec<(CString, bool)>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        entries.push((name.to_owned(), kind == FileType::Directory));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_that_is_deeper_than_any_path_is_long_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut dir = open(CWD, top.as_path()).unwrap();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&dir, "d", Mode::RWXU).unwrap();
            rustix::fs::mknodat(&dir, "f", FileType::RegularFile, Mode::RUSR, 0).unwrap();
            dir = open(&dir, c"d").unwrap();
        }
        drop(dir);
        let small = std::thread::Builder::new().stack_size(128 << 10);
        small.spawn(move || remove_tree(&top)).unwrap().join().unwrap().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_outside_is_touched_and_nothing_inside_is_in_the_way() {
        let root = tempfile::tempdir().unwrap();
        let (top, outside) = (root.path().join("top"), root.path().join("outside"));
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::create_dir_all(top.join(".1/x")).unwrap();
        fs::write(top.join(".2"), "a name that is taken").unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        for at in ["link", "a/link", "a/b/link", "a/b/c/link"] {
            symlink(&outside, top.join(at)).unwrap();
        }
        for (dir, mode) in [("a/b/c", 0o000), ("a/b", 0o500), ("a", 0o555)] {
            fs::set_permissions(top.join(dir), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        remove_tree(&top).unwrap();
    }
}
