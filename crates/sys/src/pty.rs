//! A terminal as standard input.
//!
//! ^C typed on a terminal is the only way to make Gemini CLI 0.61.0 stop in order: it ends its shell command, writes a
//! `result` and exits 130. Signals make it exit 0 without a word. The terminal is nobody's controlling terminal.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Both ends of a terminal.
pub struct Terminal {
    master: File,
    /// For the CLI.
    pub slave: OwnedFd,
}

impl Terminal {
    /// Opens a new one.
    pub fn open() -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let slave = rustix::fs::open(
            name.as_c_str(),
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self { master: File::from(master), slave })
    }

    /// The end that types.
    pub fn keyboard(self) -> Keyboard {
        Keyboard(self.master)
    }
}

/// The keeper's end of the terminal; when it is dropped the terminal hangs up.
pub struct Keyboard(File);

impl Keyboard {
    /// Types ^C.
    pub fn interrupt(&self) -> io::Result<()> {
        (&self.0).write_all(b"\x03")
    }
}
