//! The watcher's socket: in the server's private directory, for the same user only.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use alhena_sys::processes;

const NAME: &str = "watcher.sock";
/// A socket's path has room for 108 bytes, one of them the end.
const LONGEST: usize = 104;

/// Listens in this directory. Whatever was there is a leftover: who calls this holds the watcher's lock.
pub(super) fn listen(dir: &Path) -> io::Result<UnixListener> {
    let _gone = std::fs::remove_file(dir.join(NAME));
    with_short_path(dir, |path| UnixListener::bind(path))
}

/// Connects to the watcher of this directory, if that is this user's.
pub(super) fn connect(dir: &Path) -> io::Result<UnixStream> {
    let stream = with_short_path(dir, |path| UnixStream::connect(path))?;
    check_peer(&stream)?;
    Ok(stream)
}

pub(super) fn remove(dir: &Path) {
    let _gone = std::fs::remove_file(dir.join(NAME));
}

/// Whether the other side is a process of this user.
pub(super) fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    match peer.uid == rustix::process::geteuid() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other side is another user's")),
    }
}

/// Ends the watcher at the other side: a process of this user, by the system's word.
pub(super) fn end_peer(stream: &UnixStream) {
    if let Ok(peer) = rustix::net::sockopt::socket_peercred(stream)
        && peer.uid == rustix::process::geteuid()
        && is_watcher(peer.pid)
    {
        let _gone = rustix::process::kill_process(peer.pid, rustix::process::Signal::KILL);
    }
}

/// Whether a process is a watcher, by its arguments: nothing else is to be ended by mistake.
fn is_watcher(pid: rustix::process::Pid) -> bool {
    let words = processes::arguments(pid.as_raw_nonzero().get().unsigned_abs());
    words.get(1).is_some_and(|word| word == b"terminal") && words.iter().any(|word| word == b"watcher")
}

/// A path that is too long for a socket is shortened by way of an open directory.
fn with_short_path<T>(dir: &Path, act: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = dir.join(NAME);
    if path.as_os_str().len() <= LONGEST {
        return act(&path);
    }
    let open = File::open(dir)?;
    act(&PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_directory_has_a_socket_too() {
        let root = tempfile::tempdir().unwrap();
        for dir in [root.path().to_owned(), root.path().join("d".repeat(90)).join("e".repeat(90))] {
            std::fs::create_dir_all(&dir).unwrap();
            assert!(connect(&dir).is_err());
            let listener = listen(&dir).unwrap();
            connect(&dir).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            check_peer(&accepted).unwrap();
            assert!(dir.join(NAME).exists());
        }
    }
}
