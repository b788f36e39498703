//! A job and its answer, as they are in the queue.

use std::sync::Arc;

use alhena::Outcome;
use alhena::batch::job::{Checkout, Job};
use alhena::batch::meaning::{Fault, Options};
use alhena::batch::outputs::OutputFile;
use alhena::batch::perform::{Done, Where};
use alhena::model::Timestamp;
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

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub version: u32,
    pub id: String,
    pub mark: String,
    /// Who did it.
    pub worker: String,
    pub outcome: Arc<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub place: Worked,
    /// When it was over.
    pub at: Timestamp,
}

/// Where it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worked {
    Own,
    Shared,
    Nowhere,
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

    /// As much of one that cannot be read as an answer needs: what it is called in the queue.
    pub fn unread(key: &str) -> Self {
        let (id, mark) = key.rsplit_once('@').unwrap_or((key, ""));
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
    pub fn read(bytes: &[u8], key: &str) -> Result<Self, String> {
        let answer: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let asked = Letter::unread(key);
        match answer {
            answer if answer.version != VERSION => {
                Err("it was written by another release of alhena".to_owned())
            }
            answer if answer.id == asked.id && answer.mark == asked.mark => Ok(answer),
            _ => Err("it is that of another job".to_owned()),
        }
    }

    pub fn of(letter: &Letter, worker: &str, mut done: Done) -> Self {
        if !letter.left_out.is_empty() {
            Arc::make_mut(&mut done.outcome).warnings.extend_from_slice(&letter.left_out);
        }
        Self {
            version: VERSION,
            id: letter.id.clone(),
            mark: letter.mark.clone(),
            worker: worker.to_owned(),
            outcome: done.outcome,
            patch: done.patch,
            outputs: done.outputs,
            commit: done.commit,
            place: match done.place {
                Where::Own => Worked::Own,
                Where::Shared => Worked::Shared,
                Where::Nowhere => Worked::Nowhere,
            },
            at: Timestamp::now(),
        }
    }

    /// As the batch has it.
    pub fn done(self) -> Done {
        let place = match self.place {
            Worked::Own => Where::Own,
            Worked::Shared => Where::Shared,
            Worked::Nowhere => Where::Nowhere,
        };
        Done {
            outcome: self.outcome,
            patch: self.patch,
            outputs: self.outputs,
            commit: self.commit,
            worker: Some(self.worker),
            place,
        }
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
