//! What a trial is made of: homes, disks, streams, moments and stops.

use std::time::Duration;

use rustix::process::Signal;

/// Where the user's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// As most people's.
    Plain,
    /// Blanks, quotes and letters beyond ASCII in its path.
    OddName,
    /// A symbolic link leads to it.
    Linked,
    /// Its path is longer than a socket's name may be.
    Long,
    /// `.gemini` cannot be written to.
    ReadOnly,
    /// `HOME` is not set.
    Unset,
    /// There is nothing in it.
    Empty,
    /// It is the folder to work in.
    Workspace,
}

/// All that are not ordinary.
pub const ODD_HOMES: &[Home] =
    &[Home::OddName, Home::Linked, Home::Long, Home::ReadOnly, Home::Unset, Home::Empty, Home::Workspace];

/// A directory whose disk is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// The user's home.
    Home,
    /// `TMPDIR`.
    Temporary,
    /// The directory of the recording.
    Record,
    /// Where stdout goes.
    Output,
}

/// What the stand-in writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Text, a tool, text and a result.
    Good,
    /// Never a result: it goes on until it is stopped.
    Endless,
    /// Lines that are no events between good ones.
    Garbage,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// One line without an end.
    EndlessLine,
    /// 50 MB of short lines.
    Flood,
    /// Large tool outputs.
    LargeOutputs,
    /// 60 MB on stderr.
    StderrFlood,
    /// An error result after the result of success.
    ErrorAfterSuccess,
    /// An error event without a severity.
    UnratedError,
    /// Exit 0 without a result.
    NoResult,
    /// Dies in the middle of a line.
    HalfLine,
    /// A result, and then it does not exit.
    NoExit,
    /// Closes its output and lives on.
    ClosedOutput,
    /// Says success and exits 1.
    WrongExit,
}

impl Stream {
    /// Whether a run with it that nobody disturbs may, must or must not be a success.
    pub fn may_succeed(self) -> bool {
        use Stream::{EndlessLine, ErrorAfterSuccess, Garbage, InvalidUtf8, LargeOutputs, UnratedError};
        match self {
            Stream::Good | Garbage | InvalidUtf8 | LargeOutputs | Stream::Flood => true,
            Stream::StderrFlood | Stream::NoExit | EndlessLine => true,
            Stream::Endless | ErrorAfterSuccess | UnratedError | Stream::NoResult => false,
            Stream::HalfLine | Stream::ClosedOutput | Stream::WrongExit => false,
        }
    }

    /// Whether one that nobody disturbs has to be a success.
    pub fn must_succeed(self) -> bool {
        matches!(self, Stream::Good | Stream::LargeOutputs | Stream::Flood)
    }
}

/// All that are not good.
pub const HOSTILE_STREAMS: &[Stream] = &[
    Stream::Garbage,
    Stream::InvalidUtf8,
    Stream::EndlessLine,
    Stream::Flood,
    Stream::LargeOutputs,
    Stream::StderrFlood,
    Stream::ErrorAfterSuccess,
    Stream::UnratedError,
    Stream::NoResult,
    Stream::HalfLine,
    Stream::NoExit,
    Stream::ClosedOutput,
    Stream::WrongExit,
];

/// Who a blow is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Alhena itself.
    Alhena,
    /// The process that watches the keeper.
    Guard,
    /// The keeper.
    Keeper,
    /// The agent.
    Cli,
}

/// A signal to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blow {
    /// To whom.
    pub target: Target,
    /// Which.
    pub signal: Signal,
    /// This long after the blow before; zero means the same instant.
    pub after: Duration,
}

/// When the first blow falls: this long after something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Alhena was started.
    Spawned,
    /// The keeper is there.
    Keeper,
    /// The agent is there.
    Cli,
    /// The model's first text is out.
    Text,
    /// A tool was called.
    Tool,
    /// The agent wrote its result.
    Result,
    /// The agent has ended, Alhena has not.
    Ended,
}

/// How a run is ended from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Not at all.
    None,
    /// By signals.
    Blows {
        /// When.
        moment: Moment,
        /// How long after that.
        delay: Duration,
        /// What.
        blows: Vec<Blow>,
    },
    /// The reader of its stdout goes away.
    CloseOutput {
        /// When.
        moment: Moment,
    },
    /// By `--timeout`.
    Timeout(Duration),
    /// By `--stall-timeout`.
    Stall(Duration),
}

impl Stop {
    /// Whether Alhena is the one who stops the agent, which it does by ^C first: then the CLI wipes its session.
    pub fn is_gentle(&self) -> bool {
        match self {
            Stop::None => false,
            Stop::Blows { blows, .. } => {
                blows.iter().all(|blow| blow.target == Target::Alhena && blow.signal != Signal::KILL)
            }
            Stop::CloseOutput { .. } | Stop::Timeout(_) | Stop::Stall(_) => true,
        }
    }
}

/// How the output is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// `--as events`: the moments can be seen.
    Events,
    /// `--as outcome`.
    Outcome,
    /// One of the others, of which only the exit code is judged.
    Other(&'static str),
}
