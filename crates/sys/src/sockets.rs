//! Sockets between processes of one machine, and one property of TCP that the standard library lacks.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// One end of a connection, and a listener that has a path.
pub use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};

/// A socket's path has room for 108 bytes, one of them the end.
const LONGEST: usize = 104;

/// Gives a connection to a new process as its standard input.
#[must_use]
pub fn as_stdin(stream: Stream) -> Stdio {
    Stdio::from(OwnedFd::from(stream))
}

/// Takes the connection that this process got as its standard input. No process that is started inherits it.
pub fn from_stdin() -> io::Result<Stream> {
    Ok(Stream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?))
}

/// Listens by a name in a directory, however long its path is.
pub fn listen(dir: &Path, name: &str) -> io::Result<Listener> {
    with_short_path(dir, name, |path| Listener::bind(path))
}

/// Connects to a name in a directory, however long its path is.
pub fn connect(dir: &Path, name: &str) -> io::Result<Stream> {
    with_short_path(dir, name, |path| Stream::connect(path))
}

/// Shortens a path that is too long for a socket by way of an open directory.
fn with_short_path<T>(dir: &Path, name: &str, act: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = dir.join(name);
    if path.as_os_str().len() <= LONGEST {
        return act(&path);
    }
    let open = File::open(dir)?;
    act(&PathBuf::from(format!("/proc/self/fd/{}/{name}", open.as_raw_fd())))
}

/// Returns the process at the other side, if it is one of this user, and none if it is another user's.
pub fn own_peer(stream: &Stream) -> io::Result<Option<u32>> {
    let peer = sockopt::socket_peercred(stream)?;
    let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
    Ok((peer.uid == rustix::process::geteuid()).then_some(pid))
}

/// Lets a connection end with a reset when it is closed, and what was not sent is lost.
pub fn reset_when_closed(stream: &TcpStream) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(stream, Some(Duration::ZERO))?)
}

/// A port that no other process is given while this value lives. A server that sets `SO_REUSEADDR` can listen on it.
#[derive(Debug)]
pub struct HeldPort {
    /// Its number.
    pub number: u16,
    _held: OwnedFd,
}

impl HeldPort {
    /// Takes a free port.
    pub fn new() -> io::Result<Self> {
        let held = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&held, true)?;
        bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let address = SocketAddr::try_from(getsockname(&held)?)?;
        Ok(Self { number: address.port(), _held: held })
    }
}

/// Returns true if standard input is a socket.
pub fn stdin_is_one() -> bool {
    rustix::fs::fstat(io::stdin())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_socket())
}
