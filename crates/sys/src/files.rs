//! Files that must never be half there: private writes, atomic replacement, and moves that survive a change of file system.
//! Beside them, all that the standard library has for one platform only.

pub mod exposed;
mod listing;
mod metadata;
mod private;
mod tree;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(any(target_os = "linux", target_os = "macos"))]
use rustix::fs::CWD;

pub use self::listing::{DiskState, FileKind, Listing, Look};
pub use self::metadata::{
    FileId, Stamp, changed, is_own, keeps_fine_time, mode, number, set_file_mode, set_mask, set_mode,
    size_on_disk, stamping_clock,
};
pub use self::private::{can_be_replaced, replace_private};
pub use self::tree::remove_tree;

/// Opens a file for reading, following links. What is no file is an error: reading a pipe or a device can take for ever.
pub fn open(path: &Path) -> io::Result<File> {
    let no_waiting = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(no_waiting).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Opens a file for reading. A link is an error, and a pipe without a writer is not waited for.
pub fn open_without_following(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Creates a file for writing that must not exist yet, with these permissions less the user's mask.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Lets a file that these options create belong to the user alone.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Writes a new file that only the user can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_new(path, 0o600)?.write_all(bytes)
}

/// Creates a named pipe that only the user can open, and opens it in both directions: neither side waits for the other,
/// and writing does not fail when no reader is left.
pub fn create_pipe(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::RUSR | Mode::WUSR)?;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// Creates a link to a path, which need not exist.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Returns the path that another program wrote as bytes.
#[must_use]
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    std::ffi::OsStr::from_bytes(bytes).into()
}

/// Reads from a position, and leaves the file's own position alone.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

/// Fills the buffer from a position.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

/// Writes everything at a position.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Checks that the user may read a file.
pub fn may_read(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::READ_OK)?)
}

/// Checks that the user may list a directory and enter it.
pub fn may_list(dir: &Path) -> io::Result<()> {
    use rustix::fs::Access;
    Ok(rustix::fs::access(dir, Access::READ_OK | Access::EXEC_OK)?)
}

/// Checks that the user may create files in a directory.
pub fn may_create_in(dir: &Path) -> io::Result<()> {
    use rustix::fs::Access;
    Ok(rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Lets a new file have the same blocks on the disk as another, until one of them is changed. Returns false where the
/// file system cannot do that.
#[cfg(target_os = "linux")]
pub fn share_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

/// Lets a new file have the same blocks on the disk as another, which this system cannot do.
#[cfg(not(target_os = "linux"))]
pub fn share_blocks(_source: &File, _target: &File) -> bool {
    false
}

/// Gives the disk space of a part of a file back. Its length stays.
#[cfg(target_os = "linux")]
pub fn punch_hole(file: &File, from: u64, count: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, hole, from, count)?)
}

/// Gives the disk space of a part of a file back, which this system cannot do.
#[cfg(not(target_os = "linux"))]
pub fn punch_hole(_file: &File, _from: u64, _count: u64) -> io::Result<()> {
    Ok(())
}

/// Replaces a file as a whole or not at all, also when the power fails. The mode of an existing file stays; a new one gets
/// `mode`, less what the user's mask takes away. A link is followed, so that a settings file kept elsewhere stays a link.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_whole(path, bytes, mode, Existing::Replace, File::sync_all)
}

/// Makes a file as a whole or not at all: a full disk must not leave an empty one, which others would take for damaged.
/// `AlreadyExists` when there is one.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    write_whole(path, bytes, mode, Existing::Keep, File::sync_all)
}

/// Replaces a file of our own, which nobody else may read and which need not survive the machine: 5 ms less at the start of
/// every run.
pub fn replace_own(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole(path, bytes, 0o600, Existing::Replace, |_| Ok(()))
}

fn write_whole(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    existing: Existing,
    settle: fn(&File) -> io::Result<()>,
) -> io::Result<()> {
    write_piecewise(path, mode, existing, |file| {
        file.write_all(bytes)?;
        settle(file)
    })
}

/// Replaces a file as a whole or not at all by one that is too large for memory: `write` writes it, and may lock it, before it
/// has its name.
pub fn replace_piecewise(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    write_piecewise(path, mode, Existing::Replace, |file| {
        write(file)?;
        file.sync_all()
    })
}

fn write_piecewise(
    path: &Path,
    mode: u32,
    existing: Existing,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let there = fs::metadata(&target).ok().map(|meta| meta.permissions().mode() & 0o7777);
    let mut unfinished = Unfinished::beside(&target, there.unwrap_or(mode))?;
    write(&mut unfinished.file)?;
    if let Some(mode) = there {
        unfinished.file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    unfinished.appear(&target, existing)
}

/// Whether a move may take the place of a file that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The move fails with `AlreadyExists`.
    Keep,
    /// The move replaces it.
    Replace,
}

/// Moves a file: by rename, or where that cannot be (another file system) by a copy that appears under its name only
/// when it is complete and on the disk.
pub fn move_file(from: &Path, to: &Path, existing: Existing) -> io::Result<()> {
    match rename(from, to, existing) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        other => return other,
    }
    copy_file(from, to, existing)?;
    fs::remove_file(from)
}

/// Copies a file, which appears under its name only when it is complete and on the disk.
pub fn copy_file(from: &Path, to: &Path, existing: Existing) -> io::Result<()> {
    let mut unfinished = Unfinished::beside(to, 0o600)?;
    let mut source = open(from)?;
    let meta = source.metadata()?;
    io::copy(&mut source, &mut unfinished.file)?;
    unfinished.file.set_permissions(meta.permissions())?;
    if let Ok(modified) = meta.modified() {
        unfinished.file.set_modified(modified)?;
    }
    unfinished.file.sync_all()?;
    unfinished.appear(to, existing)
}

fn rename(from: &Path, to: &Path, existing: Existing) -> io::Result<()> {
    if existing == Existing::Replace {
        return fs::rename(from, to);
    }
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            // File systems without the flag.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// A file that is being written. Where the system has files without a name it has none until it is whole, so that a
/// process which is killed in the middle leaves nothing in the user's directories.
struct Unfinished {
    file: File,
    temporary: PathBuf,
    named: bool,
}

impl Unfinished {
    fn beside(target: &Path, mode: u32) -> io::Result<Self> {
        let temporary = temporary_beside(target);
        if let Some(file) = nameless(target.parent().unwrap_or(Path::new(".")), mode) {
            return Ok(Self { file, temporary, named: false });
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        Ok(Self { file, temporary, named: true })
    }

    fn appear(mut self, target: &Path, existing: Existing) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if !self.named {
            use std::os::fd::AsRawFd;
            let link = |to: &Path| {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, own, CWD, to, rustix::fs::AtFlags::SYMLINK_FOLLOW)
            };
            if existing == Existing::Keep {
                return Ok(link(target)?);
            }
            // There is no way to replace a name by a file that has none.
            link(&self.temporary)?;
            self.named = true;
        }
        rename(&self.temporary, target, existing)?;
        self.named = false;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.named {
            let _gone = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(target_os = "linux")]
fn nameless(dir: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    // Without /proc it could not be given a name.
    let has_proc = Path::new("/proc/self/fd").is_dir();
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(dir, flags, Mode::from_raw_mode(mode)).ok().filter(|_| has_proc).map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_dir: &Path, _mode: u32) -> Option<File> {
    None
}

/// A name that no reader of the directory takes for its own: the CLI looks for `session-` at the start.
fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!("{}{}-{count}", temporary_prefix(path), std::process::id()))
}

fn temporary_prefix(path: &Path) -> String {
    format!(".{}.alhena-", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes what killed writers of a file may have left beside it. Only for somebody who knows that nobody writes it now.
pub fn remove_unfinished(path: &Path) -> io::Result<()> {
    let prefix = temporary_prefix(path);
    let dir = path.parent().unwrap_or(Path::new("."));
    for name in names_in(dir)?.into_iter().filter(|name| name.starts_with(&prefix)) {
        fs::remove_file(dir.join(name))?;
    }
    Ok(())
}

/// Makes a directory and its missing parents, each readable by the user alone, and gives it back.
pub fn create_private_dir(path: &Path) -> io::Result<&Path> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    Ok(path)
}

/// Whether something could not be written because there is no room for it, on the disk or in the user's share of it.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Reads a file; none when there is none.
pub fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The names in a directory, sorted; none when there is no such directory. Names that are not Unicode are left out.
pub fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether the path itself, not what it links to, is a regular file.
pub fn is_plain_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file())
}

/// Whether the path itself, not what it links to, is a directory.
pub fn is_plain_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, b"new", 0o600).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names_in(dir.path()).unwrap(), ["link", "real"]);
    }

    #[test]
    fn a_move_does_not_take_the_place_of_a_file_unless_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::write(&from, "from").unwrap();
        fs::write(&to, "to").unwrap();
        assert_eq!(move_file(&from, &to, Existing::Keep).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&to).unwrap(), "to");
        move_file(&from, &to, Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "from");
        assert!(!from.exists());
    }

    #[test]
    fn a_move_between_file_systems_keeps_content_mode_and_time() {
        use std::os::unix::fs::MetadataExt;
        let here = tempfile::tempdir().unwrap();
        let Ok(there) = tempfile::tempdir_in("/dev/shm") else { return };
        if here.path().metadata().unwrap().dev() == there.path().metadata().unwrap().dev() {
            return;
        }
        let (from, to) = (there.path().join("from"), here.path().join("to"));
        fs::write(&from, "content").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::metadata(&from).unwrap();
        move_file(&from, &to, Existing::Keep).unwrap();
        let after = fs::metadata(&to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "content");
        assert_eq!((after.mode(), after.modified().unwrap()), (before.mode(), before.modified().unwrap()));
        assert_eq!(names_in(here.path()).unwrap(), ["to"]);
        assert_eq!(names_in(there.path()).unwrap(), Vec::<String>::new());
        fs::write(&from, "again").unwrap();
        assert_eq!(move_file(&from, &to, Existing::Keep).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            (fs::read_to_string(&to).unwrap(), names_in(here.path()).unwrap()),
            ("content".into(), vec!["to".into()])
        );
    }

    #[test]
    fn what_a_killed_writer_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("notes");
        for name in ["notes", ".notes.alhena-4194304-0", ".notes.alhena", ".other.alhena-1-0"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        remove_unfinished(&target).unwrap();
        assert_eq!(names_in(dir.path()).unwrap(), [".notes.alhena", ".other.alhena-1-0", "notes"]);
    }

    #[test]
    fn a_file_of_our_own_is_nobody_elses_and_one_that_is_there_is_not_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let (own, users) = (dir.path().join("own"), dir.path().join("users"));
        replace_own(&own, b"1").unwrap();
        replace_own(&own, b"2").unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"2");
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
        create(&users, b"1", 0o640).unwrap();
        assert_eq!(create(&users, b"2", 0o640).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&users).unwrap(), b"1");
        assert_eq!(names_in(dir.path()).unwrap(), ["own", "users"]);
    }

    #[test]
    fn created_directories_belong_to_the_user_alone() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        assert_eq!(create_private_dir(&deep).unwrap(), deep);
        create_private_dir(&deep).unwrap();
        for path in [root.path().join("a"), deep] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_is_being_written_has_no_name_that_a_killed_process_could_leave() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("projects.json");
        let mut unfinished = Unfinished::beside(&target, 0o600).unwrap();
        unfinished.file.write_all(b"half").unwrap();
        assert_eq!(names_in(dir.path()).unwrap(), Vec::<String>::new());
        unfinished.appear(&target, Existing::Keep).unwrap();
        let second = Unfinished::beside(&target, 0o600).unwrap();
        assert_eq!(second.appear(&target, Existing::Keep).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        Unfinished::beside(&target, 0o600).unwrap().appear(&target, Existing::Replace).unwrap();
        assert_eq!(names_in(dir.path()).unwrap(), ["projects.json"]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "");
    }
}
