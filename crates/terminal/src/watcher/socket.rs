//! The watcher's socket: in the server's private directory, for the same user only.

use std::io;
use std::path::Path;

use alhena_sys::processes::{self, Signal};
use alhena_sys::sockets::{self, Listener, Stream};

const NAME: &str = "watcher.sock";

/// Listens in this directory. Whatever was there is a leftover: who calls this holds the watcher's lock.
pub(super) fn listen(dir: &Path) -> io::Result<Listener> {
    let _gone = std::fs::remove_file(dir.join(NAME));
    sockets::listen(dir, NAME)
}

/// Connects to the watcher of this directory, if that is this user's.
pub(super) fn connect(dir: &Path) -> io::Result<Stream> {
    let stream = sockets::connect(dir, NAME)?;
    check_peer(&stream)?;
    Ok(stream)
}

pub(super) fn remove(dir: &Path) {
    let _gone = std::fs::remove_file(dir.join(NAME));
}

pub(super) fn check_peer(stream: &Stream) -> io::Result<()> {
    match sockets::own_peer(stream)? {
        Some(_) => Ok(()),
        None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other side is another user's")),
    }
}

/// Ends the watcher at the other side: a process of this user, by the system's word.
pub(super) fn end_peer(stream: &Stream) {
    if let Ok(Some(peer)) = sockets::own_peer(stream)
        && is_watcher(peer)
    {
        processes::signal(peer, Signal::KILL);
    }
}

/// Whether a process is a watcher, by its arguments: nothing else is to be ended by mistake.
fn is_watcher(pid: u32) -> bool {
    let words = processes::arguments(pid);
    words.get(1).is_some_and(|word| word == b"terminal") && words.iter().any(|word| word == b"watcher")
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
