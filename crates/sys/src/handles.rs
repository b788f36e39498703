//! Open files, pipes, sockets and terminals of any kind, and the three that every process has.

use std::fs::File;
use std::io;

/// Something that has a handle, the handle, and an owned handle.
pub use std::os::fd::{AsFd as AsHandle, BorrowedFd as Handle, OwnedFd as OwnedHandle};

/// Returns the handle of something.
pub fn of(thing: &impl AsHandle) -> Handle<'_> {
    thing.as_fd()
}

/// Returns a handle of its own for the same thing.
pub fn duplicate(thing: impl AsHandle) -> io::Result<OwnedHandle> {
    thing.as_fd().try_clone_to_owned()
}

/// Returns standard input, without the buffer of the standard library.
#[must_use]
pub fn stdin() -> Handle<'static> {
    rustix::stdio::stdin()
}

/// Returns standard output, without the buffer of the standard library.
#[must_use]
pub fn stdout() -> Handle<'static> {
    rustix::stdio::stdout()
}

/// Returns standard error.
#[must_use]
pub fn stderr() -> Handle<'static> {
    rustix::stdio::stderr()
}

/// Reads once.
pub fn read(from: impl AsHandle, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(from, buffer)?)
}

/// Writes once.
pub fn write(to: impl AsHandle, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(to, bytes)?)
}

/// Returns true if a read failed because there is nothing now: a signal came, or another process has read first.
#[must_use]
pub fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Returns true if a read failed because the handle is open for writing only, such as the input that `nohup` gives.
#[must_use]
pub fn is_not_for_reading(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error())
}

/// Replaces standard output by nothing, which closes what it was.
pub fn drop_stdout() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(nowhere()?)?)
}

/// Replaces standard error by nothing, which closes what it was.
pub fn drop_stderr() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(nowhere()?)?)
}

fn nowhere() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}
