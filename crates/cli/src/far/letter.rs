//! A job and its answer, as they are in the queue.

use std::sync::Arc;

use alhena::batch::job::{Checkout, Job};
use alhena::batch::meaning::{Fault, Options};
use alhena::batch::perform::{Attempt, Where};
use alhena::batch::result::JobResult;
use alhena::model::Timestamp;
use alhena::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gate::refused;

/// Another one is not understood.
pub const VERSION: u32 = 3;

/// A job on its way to a worker. Nothing in it refers to the machine that it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Letter {
    pub version: u32,
    /// The job's id.
    pub id: String,
    pub line: u64,
    /// By which the job is known again.
    pub mark: String,
    pub options: Options,
    pub place: Place,
    /// Which files it gives back beside its patch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// What of its folder did not travel: warnings of its outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Where the job works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Place {
    /// In a directory below the worker's root.
    Dir,
    /// In a copy of the folder that this file of the queue holds.
    Copy { folder: String },
    /// In a checkout.
    Git { url: String, reference: String, dir: String },
}

/// A finished attempt on its way back, with the worker's name in its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    version: u32,
    pub attempt: Attempt,
}

/// The one thing that all releases write the same way.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Letter {
    /// What these bytes ask for.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice(bytes) {
            Ok(Versioned { version }) if version != VERSION => of_another_release(),
            _ => refused(format!("it is no job: {error}"), ""),
        })
    }

    /// Returns the result of an attempt that never began.
    pub fn not_begun(&self, failure: Failure, place: Where) -> Attempt {
        let outcome = Arc::new(Outcome::not_begun(failure));
        Attempt { result: JobResult::new(&self.id, &self.mark, outcome), place }
    }

    /// As much of one that cannot be read as an answer needs: what it is called in the queue.
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

    /// Whether it runs another CLI than the worker's, with the scripted model.
    pub fn is_offline(&self) -> bool {
        self.options.get("offline").is_some_and(|offline| *offline != Value::Bool(false))
    }
}

impl Place {
    /// That of a checkout.
    pub fn of_checkout(checkout: &Checkout) -> Self {
        Place::Git {
            url: checkout.url.clone(),
            reference: checkout.reference.clone(),
            dir: checkout.dir.to_string_lossy().into_owned(),
        }
    }
}

impl Answer {
    /// What these bytes answer, if it is the job that is called so in the queue.
    pub fn read(bytes: &[u8], key: &str) -> Result<Attempt, String> {
        let Versioned { version } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if version != VERSION {
            return Err("it was written by another release of alhena".to_owned());
        }
        let Self { attempt, .. } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match id_and_mark(key) == (&attempt.result.id, &attempt.result.job) {
            true => Ok(attempt),
            false => Err("it is that of another job".to_owned()),
        }
    }

    /// The answer to a letter.
    pub fn of(letter: &Letter, worker: &str, number: u32, mut attempt: Attempt) -> Self {
        let result = &mut attempt.result;
        if !letter.left_out.is_empty() {
            Arc::make_mut(&mut result.outcome).warnings.extend_from_slice(&letter.left_out);
        }
        (result.attempt, result.worker, result.at) = (number, Some(worker.to_owned()), Timestamp::now());
        Self { version: VERSION, attempt }
    }
}

/// Why a letter is not understood that another release wrote.
pub fn of_another_release() -> Fault {
    refused("it was written by another release of alhena", "Use the same release of alhena for both.")
}

/// What a job is called in the queue: another job with the same id is another one there, too.
pub fn key(id: &str, mark: &str) -> String {
    format!("{id}@{mark}")
}

/// The same, of a job.
pub fn key_of(job: &Job) -> String {
    key(&job.id, &job.mark.to_string())
}

/// The id and the mark of the job that is called so in the queue.
pub fn id_and_mark(key: &str) -> (&str, &str) {
    key.rsplit_once('@').unwrap_or((key, ""))
}
