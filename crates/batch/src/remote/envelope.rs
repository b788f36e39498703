//! A job and its result, as they are in the queue.

use std::sync::Arc;

use alhena_model::{Failure, Outcome, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::{Checkout, Job};
use crate::meaning::{Fault, Options};
use crate::perform::{Attempt, Where};
use crate::result::JobResult;

/// The version of both envelopes. Others are refused.
pub const VERSION: u32 = 3;

const OTHER_RELEASE: &str = "it was written by another release of alhena";

/// A job on its way to a worker. Nothing in it refers to the machine that it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobEnvelope {
    /// The version of the format.
    pub version: u32,
    /// The job's id.
    pub id: String,
    /// The line on which it begins.
    pub line: u64,
    /// The mark by which the job is known again.
    pub mark: String,
    /// Its options.
    pub options: Options,
    /// Where it works.
    pub place: Place,
    /// The files it gives back beside its patch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// A warning of its outcome for each file that did not travel with its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Where a job works on the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Place {
    /// In a directory below the worker's root.
    Dir,
    /// In a copy of a folder that travelled with it.
    Copy {
        /// The name of the folder in the queue.
        folder: String,
    },
    /// In a checkout.
    Git {
        /// The address of the repository.
        url: String,
        /// A branch, a tag or a commit.
        reference: String,
        /// The directory in it.
        dir: String,
    },
}

/// A finished attempt on its way back, with the worker's name in its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultEnvelope {
    version: u32,
    attempt: Attempt,
}

/// The field that all releases write the same way.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl JobEnvelope {
    /// Reads an envelope.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice(bytes) {
            Ok(Versioned { version }) if version != VERSION => of_another_release(),
            _ => refused(&format!("it is no job: {error}"), ""),
        })
    }

    /// Returns the envelope of a job that cannot be read: its result needs the id and the mark, which its key in the queue has.
    pub fn unread(key: &str) -> Self {
        let (id, mark) = id_and_mark(key);
        Self {
            version: VERSION,
            id: id.to_owned(),
            line: 0,
            mark: mark.to_owned(),
            options: Options::new(),
            place: Place::Dir,
            outputs: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Returns an attempt of this job that never began.
    pub fn not_begun(&self, failure: Failure, place: Where) -> Attempt {
        let outcome = Arc::new(Outcome::not_begun(failure));
        Attempt { result: JobResult::new(&self.id, &self.mark, outcome), place }
    }

    /// Returns whether the job runs another CLI than the worker's, with the scripted model.
    pub fn is_offline(&self) -> bool {
        self.options.get("offline").is_some_and(|offline| *offline != Value::Bool(false))
    }
}

impl Place {
    /// The place of a checkout.
    pub fn of_checkout(checkout: &Checkout) -> Self {
        Place::Git {
            url: checkout.url.clone(),
            reference: checkout.reference.clone(),
            dir: checkout.dir.to_string_lossy().into_owned(),
        }
    }
}

impl ResultEnvelope {
    /// Returns what a worker sends back for a job.
    pub fn new(envelope: &JobEnvelope, worker: &str, number: u32, mut attempt: Attempt) -> Self {
        let result = &mut attempt.result;
        if !envelope.left_out.is_empty() {
            Arc::make_mut(&mut result.outcome).warnings.extend_from_slice(&envelope.left_out);
        }
        (result.attempt, result.worker, result.at) = (number, Some(worker.to_owned()), Timestamp::now());
        Self { version: VERSION, attempt }
    }

    /// Reads the attempt, which must be one of the job with this key in the queue.
    pub fn read(bytes: &[u8], key: &str) -> Result<Attempt, String> {
        let Versioned { version } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if version != VERSION {
            return Err(OTHER_RELEASE.to_owned());
        }
        let Self { attempt, .. } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match id_and_mark(key) == (&attempt.result.id, &attempt.result.job) {
            true => Ok(attempt),
            false => Err("it is that of another job".to_owned()),
        }
    }
}

fn refused(message: &str, hint: &str) -> Fault {
    Fault::new(format!("the worker refuses it: {message}"), hint)
}

/// Why an envelope of another release is refused.
pub fn of_another_release() -> Fault {
    refused(OTHER_RELEASE, "Use the same release of alhena for both.")
}

/// Returns the key of a job in the queue. Another job with the same id has another one.
pub fn key(id: &str, mark: &str) -> String {
    format!("{id}@{mark}")
}

/// Returns the key of a job.
pub fn key_of(job: &Job) -> String {
    key(&job.id, &job.mark.to_string())
}

/// Returns the id and the mark of the job with this key.
pub fn id_and_mark(key: &str) -> (&str, &str) {
    key.rsplit_once('@').unwrap_or((key, ""))
}
