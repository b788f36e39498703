//! Files that grow: the system says when, where it has such a thing and watches left to give.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

/// How often to look where nobody tells.
const LOOK: Duration = Duration::from_millis(200);

/// Tells when files grow, come or go.
#[derive(Debug)]
pub struct Growth(system::Growth);

impl Growth {
    /// Watches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(system::Growth::new())
    }

    /// Watches this file, or the files of this directory.
    pub fn watch(&self, path: &Path) {
        self.0.watch(path);
    }

    /// Watches nothing any more, until it is told to again. A watcher that still watches takes up to 20 ms to close (Linux 6.18: the kernel
    /// waits until nobody looks at its watches); one that stopped a little earlier takes none.
    pub fn rest(&self) {
        self.0.rest();
    }

    /// Readable when something happened. None when that is not told of everything: the caller then looks again and again.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.0.fd()
    }

    /// Forgets what has been told so far.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// Waits until something may have happened, at most this long.
    pub fn wait(&self, longest: Duration) {
        let Some(fd) = self.fd() else { return std::thread::sleep(longest.min(LOOK)) };
        let _interrupted = crate::poll::is_readable(fd, longest);
        self.clear();
    }
}

impl Default for Growth {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the system tells of growth here and now.
pub fn is_told() -> io::Result<()> {
    system::try_out()
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    #[derive(Debug)]
    pub(super) struct Growth {
        inotify: Option<OwnedFd>,
        watched: RefCell<Vec<i32>>,
        /// A file could not be watched.
        blind: Cell<bool>,
    }

    impl Growth {
        pub(super) fn new() -> Self {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
            Self { inotify, watched: RefCell::default(), blind: Cell::new(false) }
        }

        pub(super) fn watch(&self, path: &Path) {
            let flags = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
            let watched = self.inotify.as_ref().map(|inotify| inotify::add_watch(inotify, path, flags));
            match watched {
                Some(Ok(watch)) => self.watched.borrow_mut().push(watch),
                Some(Err(_)) | None => self.blind.set(true),
            }
        }

        pub(super) fn rest(&self) {
            for watch in self.watched.take() {
                // Of a file that is gone it is gone, too.
                let _gone = self.inotify.as_ref().map(|inotify| inotify::remove_watch(inotify, watch));
            }
        }

        pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
            self.inotify.as_ref().filter(|_| !self.blind.get()).map(AsFd::as_fd)
        }

        pub(super) fn clear(&self) {
            let mut buffer = [0; 4096];
            while let Some(inotify) = &self.inotify
                && rustix::io::read(inotify, &mut buffer).is_ok_and(|count| count > 0)
            {}
        }
    }

    pub(super) fn try_out() -> io::Result<()> {
        inotify::init(CreateFlags::CLOEXEC).map(drop).map_err(Into::into)
    }
}

/// Elsewhere nobody tells.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;

    #[derive(Debug)]
    pub(super) struct Growth;

    impl Growth {
        pub(super) fn new() -> Self {
            Self
        }

        pub(super) fn watch(&self, _path: &Path) {}

        pub(super) fn rest(&self) {}

        pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        pub(super) fn clear(&self) {}
    }

    pub(super) fn try_out() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;

    fn has_news(growth: &Growth) -> bool {
        let news = crate::poll::is_readable(growth.fd().unwrap(), Duration::ZERO).unwrap();
        growth.clear();
        news
    }

    #[test]
    fn a_file_that_grows_comes_or_goes_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let growth = Growth::new();
        growth.watch(dir.path());
        assert!(!has_news(&growth));
        for text in ["", "one", "more"] {
            fs::write(&file, text).unwrap();
            assert!(has_news(&growth), "{text}");
            assert!(!has_news(&growth), "{text}");
        }
        fs::remove_file(&file).unwrap();
        growth.wait(Duration::MAX);
        assert!(!has_news(&growth));
    }

    #[test]
    fn whoever_rests_hears_nothing_until_told_to_watch_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        fs::write(&file, "").unwrap();
        let growth = Growth::new();
        growth.watch(&file);
        growth.rest();
        growth.clear();
        fs::write(&file, "one").unwrap();
        assert!(!has_news(&growth));
        growth.watch(&file);
        fs::write(&file, "two").unwrap();
        assert!(has_news(&growth));
        fs::remove_file(&file).unwrap();
        growth.rest();
    }

    #[test]
    fn what_cannot_be_watched_is_not_waited_for() {
        let growth = Growth::new();
        growth.watch(Path::new("/nowhere/at/all"));
        assert!(growth.fd().is_none());
        growth.wait(Duration::from_millis(1));
    }
}
