//! Following a file that another process writes.
//!
//! The CLI's output goes to regular files, because on a pipe it loses the end of what it wrote (0.61.0: with a 1 MB
//! prompt and a slow reader, runs lost their `result` and still exited 0). The system says when a file grew.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file that grows.
pub struct Follower {
    file: File,
    buffer: Vec<u8>,
    read: u64,
}

impl Follower {
    /// Creates the file if it is not there yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        Ok(Self { file, buffer: vec![0; 128 << 10], read: 0 })
    }

    /// A file that must be there.
    pub fn read_only(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, buffer: vec![0; 16 << 10], read: 0 })
    }

    /// What came since the last time, up to one buffer; empty when there is nothing new now.
    pub fn next(&mut self) -> io::Result<&[u8]> {
        self.next_until(u64::MAX)
    }

    /// The same, not beyond this position.
    pub fn next_until(&mut self, end: u64) -> io::Result<&[u8]> {
        let room = usize::try_from(end.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let size = self.buffer.len().min(room);
        let count = loop {
            match self.file.read(self.buffer.get_mut(..size).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.read += count as u64;
        Ok(self.buffer.get(..count).unwrap_or_default())
    }

    /// How much has been read.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// How much there is.
    pub fn len(&self) -> u64 {
        self.file.metadata().map_or(self.read, |data| data.len())
    }
}

#[cfg(target_os = "linux")]
pub use linux::Growth;
#[cfg(not(target_os = "linux"))]
pub use other::Growth;

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::cell::Cell;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    /// Tells when files grow. Where the system has no more watches to give, nobody tells: see [`Growth::fd`].
    pub struct Growth {
        inotify: Option<OwnedFd>,
        /// A file could not be watched.
        blind: Cell<bool>,
    }

    impl Growth {
        /// Watches nothing yet.
        pub fn new() -> Self {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
            Self { inotify, blind: Cell::new(false) }
        }

        /// Watches this file, or the files of this directory.
        pub fn watch(&self, path: &Path) {
            let flags = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let watched = self.inotify.as_ref().map(|inotify| inotify::add_watch(inotify, path, flags));
            if !matches!(watched, Some(Ok(_))) {
                self.blind.set(true);
            }
        }

        /// Readable when something grew. None when that is not told of everything: the caller then looks again every few
        /// milliseconds.
        pub fn fd(&self) -> Option<BorrowedFd<'_>> {
            self.inotify.as_ref().filter(|_| !self.blind.get()).map(AsFd::as_fd)
        }

        /// Forgets what has been told so far.
        pub fn clear(&self) {
            let mut buffer = [0; 4096];
            while let Some(inotify) = &self.inotify
                && rustix::io::read(inotify, &mut buffer).is_ok_and(|count| count > 0)
            {}
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::*;
    use std::os::fd::BorrowedFd;

    /// Elsewhere nobody tells: the caller looks again every few milliseconds.
    pub struct Growth;

    impl Growth {
        /// Watches nothing.
        pub fn new() -> Self {
            Self
        }

        /// Does nothing.
        pub fn watch(&self, _path: &Path) {}

        /// There is nothing to wait on.
        pub fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        /// Does nothing.
        pub fn clear(&self) {}
    }
}
