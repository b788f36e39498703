//! What a trial is made of: homes, disks, streams, moments and stops.

use std::time::Duration;

use rustix::process::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    Plain,
    /// Blanks, quotes and letters beyond ASCII in its path.
    OddName,
    Linked,
    /// Its path is longer than a socket's name may be.
    Long,
    ReadOnly,
    Unset,
    Empty,
    Workspace,
}

/// All that are not ordinary.
pub const ODD_HOMES: &[Home] =
    &[Home::OddName, Home::Linked, Home::Long, Home::ReadOnly, Home::Unset, Home::Empty, Home::Workspace];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    Home,
    Temporary,
    Record,
    Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Good,
    /// Never a result: it goes on until it is stopped.
    Endless,
    Garbage,
    InvalidUtf8,
    EndlessLine,
    /// 50 MB of short lines.
    Flood,
    LargeOutputs,
    /// 60 MB on stderr.
    StderrFlood,
    ErrorAfterSuccess,
    UnratedError,
    NoResult,
    HalfLine,
    NoExit,
    ClosedOutput,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Alhena,
    Guard,
    Keeper,
    Cli,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blow {
    pub target: Target,
    pub signal: Signal,
    /// This long after the blow before; zero means the same instant.
    pub after: Duration,
}

/// When the first blow falls: this long after something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Spawned,
    Keeper,
    Cli,
    Text,
    Tool,
    Result,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    None,
    Blows { moment: Moment, delay: Duration, blows: Vec<Blow> },
    CloseOutput { moment: Moment },
    Timeout(Duration),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Events,
    Outcome,
    /// One of the others, of which only the exit code is judged.
    Other(&'static str),
}
