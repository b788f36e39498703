//! Terminals: one of our own as standard input of the CLI, and the one that a person sits at.
//!
//! ^C typed on a terminal is the only way to make Gemini CLI 0.61.0 stop in order: it ends its shell command, writes a
//! `result` and exits 130. Signals make it exit 0 without a word. The terminal is nobody's controlling terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

use crate::handles::AsHandle;

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
        self.press(b"\x03")
    }

    /// Types this text.
    pub fn press(&self, keys: &[u8]) -> io::Result<()> {
        (&self.0).write_all(keys)
    }
}

/// The way in which a terminal handles what is typed.
#[derive(Clone, Debug)]
pub struct Settings(Termios);

impl Settings {
    /// Returns the settings that a terminal has now; none of what is no terminal.
    pub fn of(terminal: impl AsHandle) -> Option<Self> {
        tcgetattr(terminal).ok().map(Self)
    }

    /// Gives a terminal these settings again.
    pub fn restore(&self, terminal: impl AsHandle) -> io::Result<()> {
        Ok(tcsetattr(terminal, OptionalActions::Now, &self.0)?)
    }
}

/// Forgets what was typed and not read yet.
pub fn forget_typed(terminal: impl AsHandle) -> io::Result<()> {
    Ok(tcflush(terminal, QueueSelector::IFlush)?)
}

/// Returns true if a read from a terminal failed because the terminal is gone.
#[must_use]
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// Returns the number of columns of a terminal; none of what is no terminal.
pub fn columns(terminal: impl AsHandle) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal);
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0)
}

/// Opens the terminal of this process, wherever its input and output lead.
pub fn open_own() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Returns true if this process may read from the terminal: it is not in the background of it.
pub fn is_in_foreground(terminal: impl AsHandle) -> bool {
    matches!(rustix::termios::tcgetpgrp(terminal), Ok(group) if group == rustix::process::getpgrp())
}

/// Rings the bell of the terminal at this path, and does not wait for it.
pub fn ring(path: &str) -> io::Result<()> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
    let mut terminal = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    terminal.write_all(b"\x07")
}
