//! Ports of loopback that stay free for one server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

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
