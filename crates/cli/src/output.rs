//! The only way out: whatever a command prints, on stdout or stderr, is written here.
//!
//! A terminal obeys what it is sent, and much of what Alhena prints was written by others: a model, a tool, a file's name, a
//! CLI that is not what it says. So what goes to a terminal passes a [`Guard`], which shows every character that is unsafe to
//! show as `\u001b`. Alhena's own colours are told apart from foreign ones by [`own`]. JSON passes it wherever it
//! goes: `\u009b` means the same there, and a file of it may be printed later. Other text goes to pipes and files as it is.

mod guard;
mod own;

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use alhena_sys::handles::{self, Handle};
use parking_lot::Mutex;

pub use self::guard::Guard;
pub use self::own::{Own, adopt};
use crate::command_error::complain;

/// So much is written at once, so that it is seen when somebody reads slowly.
const PIECE: usize = 16 << 10;
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// How often somebody took what was printed, so far.
pub fn taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

impl Stream {
    /// The stream itself, past the buffer of the standard library: that one calls a closed stream a success.
    fn handle(self) -> Handle<'static> {
        match self {
            Stream::Out => handles::stdout(),
            Stream::Err => handles::stderr(),
        }
    }

    pub fn is_terminal(self) -> bool {
        self.handle().is_terminal()
    }

    /// A writer for it, guarded if it is a terminal.
    pub fn open(self) -> Guard<Self> {
        if self.is_terminal() { Guard::new(self) } else { Guard::open(self) }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = handles::write(self.handle(), bytes.get(..PIECE).unwrap_or(bytes))?;
        TAKEN.fetch_add(1, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A buffered writer for stdout. Nothing is seen before it is flushed.
pub fn stdout() -> Guard<BufWriter<Stream>> {
    let out = BufWriter::with_capacity(64 << 10, Stream::Out);
    if Stream::Out.is_terminal() { Guard::new(out) } else { Guard::open(out) }
}

/// Says something on stderr. Whoever closed it does not want to hear it.
pub fn say(text: impl fmt::Display) {
    say_part(format_args!("{text}\n"));
}

/// The same without a line end.
pub fn say_part(text: impl fmt::Display) {
    on_stderr(text, 0);
}

/// Shows on stderr, which is a terminal, what is being waited for: until something else is said there, or this again. None of its
/// lines may be wider than the terminal.
pub fn progress(lines: impl fmt::Display) {
    if NO_PROGRESS.load(Ordering::Acquire) > 0 {
        return;
    }
    let lines = lines.to_string();
    let count = lines.split('\n').count();
    on_stderr(lines, count);
}

/// As long as it is held nothing shows progress: somebody is being asked.
pub struct NoProgress(());

static NO_PROGRESS: AtomicU64 = AtomicU64::new(0);

/// Takes progress away, and keeps it away.
pub fn without_progress() -> NoProgress {
    NO_PROGRESS.fetch_add(1, Ordering::AcqRel);
    progress_over();
    NoProgress(())
}

impl Drop for NoProgress {
    fn drop(&mut self) {
        NO_PROGRESS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Takes it away.
pub fn progress_over() {
    on_stderr("", 0);
}

/// How many of the last lines on stderr only show progress.
static PROGRESS: Mutex<usize> = Mutex::new(0);

fn on_stderr(text: impl fmt::Display, progress: usize) {
    let mut shown = PROGRESS.lock();
    let stale = std::mem::replace(&mut *shown, progress);
    let mut whole = String::new();
    for line in 0..stale.max(progress.min(1)) {
        let up = if line == 0 { String::new() } else { Own::Up.to_string() };
        whole.push_str(&format!("{up}{}", Own::ClearLine));
    }
    whole.push_str(&text.to_string());
    // In one write: others may use the same terminal.
    let _closed = Stream::Err.open().write_all(whole.as_bytes());
}

/// Prints text and a line end.
pub fn print(text: &str) -> ExitCode {
    written(write(|out| writeln!(out, "{text}")))
}

/// Writes something on stdout, to the end.
pub fn write(what: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = stdout();
    what(&mut out)?;
    out.flush()
}

/// The same for JSON.
pub fn write_json(what: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = Guard::new(BufWriter::with_capacity(64 << 10, Stream::Out));
    what(&mut out)?;
    out.flush()
}

/// Writes a value as one line of JSON.
pub fn json_line(value: &impl serde::Serialize) -> io::Result<()> {
    write_json(|out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Writes a value as JSON.
pub fn json(value: &impl serde::Serialize) -> io::Result<()> {
    write_json(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Prints a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> ExitCode {
    written(json(value))
}

/// What became of the output, as an exit code. What could not be written is said; a reader that went away has what it wants.
pub fn written(done: io::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format_args!("the output could not be written: {error}"), "");
            ExitCode::FAILURE
        }
    }
}

/// Whether the reader went away, as `head` does when it has enough.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
