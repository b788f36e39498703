//! Standard input, read so that nobody waits for ever: a signal ends it, and so does a size that no prompt can have.

use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use alhena_sys::poll;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::signals::Interrupts;

/// How long something may take to come that perhaps never does: as long as Gemini CLI itself waits (0.61.0). Hosts and
/// CI leave a pipe open that nobody writes to.
const FIRST_BYTE: Duration = Duration::from_millis(500);
/// How often a signal is looked for.
const GLANCE: Duration = Duration::from_millis(50);
/// No prompt can be larger.
const MOST: usize = 8 << 20;

/// What is expected of standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It is the prompt: whatever it takes.
    Everything,
    /// It may add to a prompt that is there already: nothing of a terminal, and nothing if nothing comes soon.
    Perhaps,
}

/// Why there is nothing.
#[derive(Debug)]
pub enum Unread {
    /// A signal came first.
    Interrupted,
    /// More than any prompt can have.
    TooMuch,
    Failed(io::Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Interrupted => f.write_str("Stopped while the prompt was read from stdin"),
            Unread::TooMuch => {
                write!(f, "the prompt is too large: there are more than {MOST} bytes on stdin")
            }
            Unread::Failed(error) => write!(f, "stdin: {error}"),
        }
    }
}

/// What came of standard input.
#[derive(Debug, Default)]
pub struct Piped {
    pub bytes: Vec<u8>,
    /// Somebody holds a pipe open and said nothing in time, so that what may still come is not read.
    pub left_open: bool,
}

/// What standard input holds.
pub fn read(expect: Expect, interrupts: &Interrupts) -> Result<Piped, Unread> {
    let stdin = io::stdin();
    let mut bytes = Vec::new();
    if expect == Expect::Perhaps && stdin.is_terminal() {
        return Ok(Piped::default());
    }
    let (begun, mut buffer) = (Instant::now(), vec![0; 64 << 10]);
    loop {
        if interrupts.caught().is_some() {
            return Err(Unread::Interrupted);
        }
        if !poll::is_readable(&stdin, GLANCE).map_err(Unread::Failed)? {
            if expect == Expect::Perhaps && bytes.is_empty() && begun.elapsed() >= FIRST_BYTE {
                return Ok(Piped { bytes, left_open: is_pipe(&stdin) });
            }
            continue;
        }
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Unread::Failed(error.into())),
        }
        if bytes.len() > MOST {
            return Err(Unread::TooMuch);
        }
    }
    Ok(Piped { bytes, left_open: false })
}

/// A pipe, or what some hosts use for one.
fn is_pipe(stdin: &io::Stdin) -> bool {
    let kind = rustix::fs::fstat(stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}
