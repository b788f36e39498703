//! Waiting for several things at once. A signal ends a wait early; whoever waits then looks again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// What can be waited for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// Something to be read, or the end.
    Readable(BorrowedFd<'a>),
    /// The other side has gone.
    HungUp(BorrowedFd<'a>),
    /// Room to write.
    Writable(BorrowedFd<'a>),
}

impl<'a> Wanted<'a> {
    /// Something to be read, or the end.
    pub fn readable(fd: &'a impl AsFd) -> Self {
        Wanted::Readable(fd.as_fd())
    }

    /// The other side has gone. What it has said before is not read.
    pub fn hung_up(fd: &'a impl AsFd) -> Self {
        Wanted::HungUp(fd.as_fd())
    }

    /// Room to write.
    pub fn writable(fd: &'a impl AsFd) -> Self {
        Wanted::Writable(fd.as_fd())
    }

    fn poll_fd(self) -> PollFd<'a> {
        match self {
            Wanted::Readable(fd) => PollFd::from_borrowed_fd(fd, PollFlags::IN),
            Wanted::HungUp(fd) => PollFd::from_borrowed_fd(fd, PollFlags::empty()),
            Wanted::Writable(fd) => PollFd::from_borrowed_fd(fd, PollFlags::OUT),
        }
    }

    fn has_come(self, events: PollFlags) -> bool {
        match self {
            Wanted::Readable(_) | Wanted::Writable(_) => !events.is_empty(),
            Wanted::HungUp(_) => events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        }
    }
}

/// Waits for any of these, at most so long; for ever when there is no limit. Tells which have come, in their order.
pub fn wait(wanted: &[Wanted<'_>], longest: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = wanted.iter().map(|wanted| wanted.poll_fd()).collect();
    // What does not fit is longer than anybody lives.
    let limit = longest.and_then(|longest| Timespec::try_from(longest).ok());
    match rustix::event::poll(&mut fds, limit.as_ref()) {
        Ok(_) => Ok(wanted.iter().zip(&fds).map(|(wanted, fd)| wanted.has_come(fd.revents())).collect()),
        Err(Errno::INTR) => Ok(vec![false; wanted.len()]),
        Err(error) => Err(error.into()),
    }
}

/// Waits for something to be read, or the end.
pub fn is_readable(fd: impl AsFd, longest: Duration) -> io::Result<bool> {
    Ok(wait(&[Wanted::readable(&fd)], Some(longest))?.contains(&true))
}

/// Waits for the other side of a pipe, a socket or a terminal to go. Files have no other side.
pub fn has_hung_up(fd: impl AsFd, longest: Duration) -> io::Result<bool> {
    Ok(wait(&[Wanted::hung_up(&fd)], Some(longest))?.contains(&true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_can_be_read_and_who_has_gone_are_told_apart() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (other, _kept) = UnixStream::pair().unwrap();
        let wanted = [Wanted::readable(&other), Wanted::readable(&ours), Wanted::hung_up(&ours)];
        assert_eq!(wait(&wanted, Some(Duration::ZERO)).unwrap(), [false, false, false]);
        theirs.write_all(b"word").unwrap();
        assert_eq!(wait(&wanted, None).unwrap(), [false, true, false]);
        drop(theirs);
        assert_eq!(wait(&wanted, Some(Duration::MAX)).unwrap(), [false, true, true]);
        assert!(is_readable(&ours, Duration::ZERO).unwrap() && has_hung_up(&ours, Duration::ZERO).unwrap());
        assert!(
            !is_readable(&other, Duration::ZERO).unwrap() && !has_hung_up(&other, Duration::ZERO).unwrap()
        );
    }

    #[test]
    fn a_pipe_that_nobody_reads_has_hung_up() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(!has_hung_up(&writer, Duration::ZERO).unwrap());
        drop(reader);
        assert!(has_hung_up(&writer, Duration::ZERO).unwrap());
    }
}
