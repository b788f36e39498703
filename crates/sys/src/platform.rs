//! The system that this program was built for, and the machine that it runs on.

use std::ffi::OsString;

/// A kind of system, as far as paths and names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other Unix systems.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The system that this program was built for.
pub const PLATFORM: Platform = if cfg!(windows) {
    Platform::Windows
} else if cfg!(target_os = "macos") {
    Platform::MacOs
} else {
    Platform::Linux
};

/// Returns the name of this machine in its network.
#[must_use]
pub fn machine_name() -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(rustix::system::uname().nodename().to_bytes().to_vec())
}
