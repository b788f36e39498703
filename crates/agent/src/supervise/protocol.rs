//! What Alhena and the keeper say to each other: one JSON object per line over a socket pair.
//!
//! The environment of the CLI, secrets included, goes over the socket and never onto a command line.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::home::{FinishPlan, Finished};

/// Raised when a message changes its meaning: a library may find the keeper of another release. `Hello` never changes.
pub const VERSION: u32 = 3;

/// From Alhena to the keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The first word to a keeper in a process of its own. One that does not know it ends at once.
    Hello {
        /// [`VERSION`] of the sender.
        version: u32,
    },
    /// Start the CLI.
    Launch(Box<Launch>),
    /// Stop everything.
    Stop(Gentle),
}

/// Whether to begin with ^C on the CLI's terminal: it works only after `init`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gentle {
    /// ^C first, if the CLI has a terminal.
    Yes,
    /// Straight to the process group.
    No,
    /// SIGKILL, also when a gentler stop is under way.
    AtOnce,
}

/// Everything that it takes to start the CLI and to clean up after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// Stands in the environment of every process of the run.
    pub mark: String,
    /// What to run.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where to run it.
    pub dir: OsString,
    /// Its standard input.
    pub stdin: Stdin,
    /// Regular files for its output: on a pipe it loses the end (0.61.0).
    pub stdout: OsString,
    /// The same for standard error.
    pub stderr: OsString,
    /// How to finish the run's private home.
    pub finish: Option<FinishPlan>,
    /// Directories of the run that go when Alhena is no longer there to read them.
    pub remove_when_abandoned: Vec<OsString>,
    /// Directories of the run that go in any case.
    pub remove: Vec<OsString>,
    /// A process has to hold the run: without one nothing is started.
    #[serde(skip)]
    pub require_keeper: bool,
}

/// What the CLI reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Nothing.
    Null,
    /// A file: the prompt.
    File(OsString),
    /// A terminal on which nobody types, except for the keeper's ^C.
    Terminal,
}

/// From the keeper to Alhena, in this order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The answer to [`Order::Hello`].
    Hello {
        /// [`VERSION`] of the keeper.
        version: u32,
    },
    /// The CLI runs.
    Started {
        /// Its process.
        pid: u32,
    },
    /// It could not be started; nothing follows.
    NotStarted {
        /// Whether the program itself is missing.
        missing: bool,
        /// The system's reason.
        message: String,
    },
    /// The CLI's own process is gone.
    Exited(ProcessEnd),
    /// The keeper was killed, and the CLI with it; its guard goes on with what follows.
    KeeperLost,
    /// Every other process of the run is gone too.
    Swept {
        /// How many had to be ended.
        ended: usize,
        /// What the first of them are called.
        names: Vec<String>,
        /// How many could not be: they are in the kernel's hands.
        left: usize,
    },
    /// The run's home is put away; the last report.
    Finished(Finished),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessEnd {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// Writes one message.
pub fn send<T: Serialize>(mut to: impl Write, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads one message; `None` when the other side is gone.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
