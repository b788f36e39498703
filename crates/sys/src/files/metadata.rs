//! What the system keeps about a file: which one it is, its times, its permissions, its owner.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::handles::AsHandle;

/// The identity of a file: equal for all paths and handles of the same file, as long as the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    /// Returns the identity of an open file.
    pub fn of(file: impl AsHandle) -> io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        // The field is narrower and signed on macOS.
        #[allow(clippy::unnecessary_cast)]
        Ok(Self { device: stat.st_dev as u64, number: stat.st_ino })
    }

    /// Returns the identity of the file at a path, links followed.
    pub fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|data| Self::from(&data))
    }

    /// Returns the identity of what is at a path, also when that is a link.
    pub fn at_link(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(|data| Self::from(&data))
    }

    fn from(data: &Metadata) -> Self {
        Self { device: data.dev(), number: data.ino() }
    }
}

/// The state of a file: differs once the file was written again or replaced by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    id: FileId,
    modified: (i64, i64),
}

impl Stamp {
    /// Returns the state that was looked up.
    #[must_use]
    pub fn of(data: &Metadata) -> Self {
        Self { id: FileId::from(data), modified: (data.mtime(), data.mtime_nsec()) }
    }
}

/// Returns the number of a file in its file system; 0 where the system tells it only of open files.
#[must_use]
pub fn number(data: &Metadata) -> u64 {
    data.ino()
}

/// Returns true if a file belongs to the user of this process.
#[must_use]
pub fn is_own(data: &Metadata) -> bool {
    data.uid() == rustix::process::geteuid().as_raw()
}

/// Returns the permissions as Unix writes them, without the kind of file. A system that judges others by access lists gives
/// them no bits.
#[must_use]
pub fn mode(data: &Metadata) -> u32 {
    data.permissions().mode() & 0o7777
}

/// Returns the disk space that a file takes, in bytes.
#[must_use]
pub fn size_on_disk(data: &Metadata) -> u64 {
    data.blocks() * 512
}

/// Sets the permissions of the file at a path.
pub fn set_mode(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Takes these permissions away from every file that this process creates from now on.
pub fn set_mask(mode: u32) {
    let _before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(mode));
}

/// Sets the permissions of an open file.
pub fn set_file_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Returns when anything about a file last changed: its contents, its name, its permissions. None where the system does
/// not keep that.
#[must_use]
pub fn changed(data: &Metadata) -> Option<SystemTime> {
    let (seconds, nanoseconds) = (u64::try_from(data.ctime()).ok()?, u32::try_from(data.ctime_nsec()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

/// Returns the time that the system would stamp a file with now; none where that clock cannot be read.
#[cfg(target_os = "linux")]
#[must_use]
pub fn stamping_clock() -> Option<SystemTime> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

/// Returns the time that the system would stamp a file with now, which cannot be read here.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn stamping_clock() -> Option<SystemTime> {
    None
}

/// Returns true if a directory is on a local file system that keeps fractions of seconds.
#[cfg(target_os = "linux")]
#[must_use]
pub fn keeps_fine_time(root: &Path) -> bool {
    /// NFS, SMB in three forms, 9P, FUSE, FAT, and Ceph, by the numbers of `statfs(2)`.
    const ELSEWHERE: [u32; 8] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546, 0x4d44, 0x00c3_6400];
    // The numbers fill 32 bits, which some machines keep in a signed and some in a longer integer.
    let local = rustix::fs::statfs(root).is_ok_and(|data| !ELSEWHERE.contains(&(data.f_type as u32)));
    local && root.metadata().is_ok_and(|data| data.mtime_nsec() != 0 || data.ctime_nsec() != 0)
}

/// Returns true if the time of a directory has a fraction of a second.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn keeps_fine_time(root: &Path) -> bool {
    let modified = root.metadata().and_then(|data| data.modified());
    let fraction = modified.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    fraction.is_some_and(|time| time.subsec_nanos() != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_the_same_by_handle_and_by_path_until_it_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&path, "1").unwrap();
        crate::files::symlink(&path, &link).unwrap();
        let open = File::open(&path).unwrap();
        let id = FileId::of(&open).unwrap();
        assert_eq!([FileId::at(&path).unwrap(), FileId::at(&link).unwrap()], [id, id]);
        assert_ne!(FileId::at_link(&link).unwrap(), id);
        let stamp = Stamp::of(&open.metadata().unwrap());
        assert_eq!(Stamp::of(&path.metadata().unwrap()), stamp);
        crate::files::replace(&path, b"2", 0o600).unwrap();
        assert_ne!(FileId::at(&path).unwrap(), id);
        assert_ne!(Stamp::of(&path.metadata().unwrap()), stamp);
    }
}
