//! Bounds on time: nothing in a test waits for ever, whatever the agent does.

use std::fs::File;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use alhena_sys::files;

use crate::processes::kill_tree;

/// A point in time after which waiting is over.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// What is left, zero when it has passed.
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub fn passed(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Waits until the condition holds. False when the deadline passed first.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) -> bool {
        loop {
            if condition() {
                return true;
            }
            if self.passed() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10).min(self.remaining()));
        }
    }
}

/// Ends the whole test process with a message if it is not dropped in time.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    pub fn new(name: &str, limit: Duration) -> Self {
        let (alive, dropped) = mpsc::channel::<()>();
        let name = name.to_owned();
        std::thread::spawn(move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name}: not finished after {limit:?}");
                std::process::exit(101);
            }
        });
        Self { _alive: alive }
    }
}

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether it was killed because its time was over.
    pub timed_out: bool,
}

impl Finished {
    pub fn succeeded(&self) -> bool {
        self.status.success() && !self.timed_out
    }

    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub fn ending(&self) -> String {
        if self.timed_out { "it ran out of time".to_owned() } else { self.status.to_string() }
    }
}

/// Runs a command without stdin, and kills it with all its descendants when its time is over.
///
/// Output goes through files: a process that inherited stdout and lives on cannot make this wait. The command stays in
/// this process group, so that whoever ends a test or presses ^C ends it too.
pub fn run_bounded(command: &mut Command, limit: Duration) -> io::Result<Finished> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).stdin(Stdio::null());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child =
        command.spawn().map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    let deadline = Deadline::after(limit);
    let (status, timed_out) = loop {
        if let Some(status) = child.try_wait()? {
            break (status, false);
        }
        if deadline.passed() {
            kill_tree(child.id());
            break (child.wait()?, true);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ok(Finished { status, stdout: contents(&stdout)?, stderr: contents(&stderr)?, timed_out })
}

/// Read without moving in it: whoever lives on writes where the file is, which is the same for both.
fn contents(file: &File) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes = vec![0; size];
    files::read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}
