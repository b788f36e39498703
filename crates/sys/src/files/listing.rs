//! One directory and what is in it.
//!
//! A scan spends its time in the system: on Linux a file is looked at through its open directory, which spares walking its
//! whole path again. Elsewhere the standard library is good enough.

use std::fs::Metadata;
use std::time::SystemTime;

use super::changed;

/// What is at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskState {
    /// Whether there is something, links followed.
    pub exists: bool,
    /// Its size in bytes.
    pub size: u64,
    /// When its contents last changed.
    pub modified: Option<SystemTime>,
    /// When anything about it last changed, where the system keeps that.
    pub changed: Option<SystemTime>,
    /// When it came to be, where the file system keeps that. A file that was written anew and moved into place came to be
    /// then.
    pub born: Option<SystemTime>,
}

impl DiskState {
    /// Whether it changed since a time.
    #[must_use]
    pub fn changed_since(&self, since: SystemTime) -> bool {
        [self.modified, self.changed, self.born].into_iter().flatten().any(|time| time >= since)
    }

    /// Whether it came to be since a time; false when that is not known.
    #[must_use]
    pub fn created_since(&self, since: SystemTime) -> bool {
        self.born.is_some_and(|time| time >= since)
    }

    /// Returns what was looked up.
    #[must_use]
    pub fn of(data: &Metadata) -> Self {
        Self {
            exists: true,
            size: data.len(),
            modified: data.modified().ok(),
            changed: changed(data),
            born: data.created().ok(),
        }
    }
}

/// What a name in a directory stands for. Devices, pipes and sockets are of no interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A file or a link.
    File,
    /// A device, a pipe, or a socket.
    Other,
}

/// What looking at one name says.
pub struct Look {
    /// Its kind.
    pub kind: FileKind,
    /// Its size and times.
    pub state: DiskState,
    /// The file system it is on.
    pub device: u64,
}

pub use system::Listing;

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use rustix::fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawDir, Statx, StatxFlags, StatxTimestamp, openat, statx,
    };

    use super::{DiskState, FileKind, Look};

    /// An open directory and the names in it.
    pub struct Listing {
        directory: OwnedFd,
        /// Its names, in the order of the system.
        pub names: Vec<OsString>,
    }

    impl Listing {
        /// Opens a directory without reading its names; a link is none.
        pub fn open(path: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(Self { directory: openat(CWD, path, flags, Mode::empty())?, names: Vec::new() })
        }

        /// Reads a directory; a link is none.
        pub fn read(path: &Path) -> io::Result<Self> {
            let mut listing = Self::open(path)?;
            let mut buffer = [MaybeUninit::uninit(); 16 << 10];
            let mut entries = RawDir::new(&listing.directory, &mut buffer);
            while let Some(entry) = entries.next() {
                let name = entry?.file_name().to_bytes().to_vec();
                if name != b"." && name != b".." {
                    listing.names.push(OsString::from_vec(name));
                }
            }
            Ok(listing)
        }

        /// Looks at one name. A link is not followed.
        pub fn look(&self, name: &OsStr) -> io::Result<Look> {
            let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
            let data = statx(&self.directory, name.as_bytes(), flags, wanted)?;
            Ok(Look {
                kind: kind(&data),
                state: state(&data),
                device: u64::from(data.stx_dev_major) << 32 | u64::from(data.stx_dev_minor),
            })
        }
    }

    fn kind(data: &Statx) -> FileKind {
        match FileType::from_raw_mode(data.stx_mode.into()) {
            FileType::Directory => FileKind::Directory,
            FileType::RegularFile | FileType::Symlink => FileKind::File,
            _ => FileKind::Other,
        }
    }

    fn state(data: &Statx) -> DiskState {
        let has_birth = StatxFlags::from_bits_retain(data.stx_mask).contains(StatxFlags::BTIME);
        DiskState {
            exists: true,
            size: data.stx_size,
            modified: time(&data.stx_mtime),
            changed: time(&data.stx_ctime),
            born: if has_birth { time(&data.stx_btime) } else { None },
        }
    }

    fn time(stamp: &StatxTimestamp) -> Option<SystemTime> {
        let after = Duration::new(u64::try_from(stamp.tv_sec).ok()?, stamp.tv_nsec);
        SystemTime::UNIX_EPOCH.checked_add(after)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::{DiskState, FileKind, Look};

    /// A directory and the names in it.
    pub struct Listing {
        directory: PathBuf,
        /// Its names, in the order of the system.
        pub names: Vec<OsString>,
    }

    impl Listing {
        /// Names a directory without reading it.
        pub fn open(path: &Path) -> io::Result<Self> {
            Ok(Self { directory: path.to_path_buf(), names: Vec::new() })
        }

        /// Reads a directory.
        pub fn read(path: &Path) -> io::Result<Self> {
            let names =
                std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
            Ok(Self { directory: path.to_path_buf(), names })
        }

        /// Looks at one name. A link is not followed.
        pub fn look(&self, name: &OsStr) -> io::Result<Look> {
            let data = self.directory.join(name).symlink_metadata()?;
            let kind = match data.file_type() {
                kind if kind.is_dir() => FileKind::Directory,
                kind if kind.is_file() || kind.is_symlink() => FileKind::File,
                _ => FileKind::Other,
            };
            Ok(Look { kind, state: DiskState::of(&data), device: device(&data) })
        }
    }

    #[cfg(unix)]
    fn device(data: &std::fs::Metadata) -> u64 {
        std::os::unix::fs::MetadataExt::dev(data)
    }

    /// Windows mounts by links, which are not followed anyway.
    #[cfg(not(unix))]
    fn device(_data: &std::fs::Metadata) -> u64 {
        0
    }
}
