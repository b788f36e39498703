//! How a batch ends, and why it does not begin.

use std::fmt;
use std::io;

use alhena_model::SettingError;

use crate::journal::Journal;
use crate::progress::Progress;
use crate::supply::{Complaint, Supply};

/// Why no more jobs began.
#[derive(Debug)]
pub enum Why {
    /// Somebody asked for it.
    Interrupted,
    /// A job failed, and that was to be the end.
    FailFast,
    /// It has cost what it may.
    Budget,
    /// What it costs is not known, and it may not cost just anything.
    Unpriced,
    /// The API's quota of this day is used up.
    Quota,
    /// Results cannot be kept.
    Journal(io::Error),
    /// No more jobs can be read.
    Jobs(Vec<Complaint>),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Interrupted => f.write_str("stopped on request"),
            Why::FailFast => f.write_str("a job failed"),
            Why::Budget => f.write_str("it has cost what it may"),
            Why::Unpriced => {
                f.write_str("a model was used whose price is not known, so that its cost cannot be limited")
            }
            Why::Quota => f.write_str("the API's quota of this day is used up"),
            Why::Journal(error) => write!(f, "the results cannot be written: {error}"),
            Why::Jobs(complaints) => match complaints.first() {
                Some(Complaint { line, fault }) => write!(f, "line {line}: {fault}"),
                None => f.write_str("no more jobs can be read"),
            },
        }
    }
}

/// How a batch ended. The journal is right, whatever happened.
#[derive(Debug)]
pub struct Ended {
    /// Why not all jobs were begun, if so.
    pub why: Option<Why>,
    /// How far it got.
    pub progress: Progress,
    /// How many jobs have no result.
    pub left: u64,
    /// How many results could not be written; their jobs count as not done.
    pub unwritten: usize,
    /// The results.
    pub journal: Journal,
    /// The jobs.
    pub supply: Supply,
}

impl Ended {
    /// Whether every job has succeeded, and every line was one.
    pub fn is_success(&self) -> bool {
        self.why.is_none() && self.left == 0 && self.progress.failed == 0 && self.progress.refused == 0
    }
}

/// Jobs that are not those whose results are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Those that say something else now.
    pub changed: Vec<String>,
    /// Those that are not there any more.
    pub gone: Vec<String>,
}

impl Changed {
    pub(super) fn sorted(mut self) -> Self {
        self.changed.sort();
        self.gone.sort();
        self
    }
}

pub(super) fn changed_since(id: &str) -> SettingError {
    SettingError::new(
        format!("the job {id:?} is another than when its result was written"),
        "Give another file for the results, or have changed jobs done again.",
    )
}
