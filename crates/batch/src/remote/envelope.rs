//! A job and its result, as they are in the queue.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_agent::read_schema;
use alhena_model::options::AnswerSchema;
use alhena_model::{Failure, Outcome, Prompt, RunOptions, SettingError, Timestamp};
use alhena_sys::files;
use serde::{Deserialize, Serialize};

use crate::job::{self, Checkout, Job};
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
    /// Its prompt and its options.
    pub options: EnvelopeOptions,
    /// Where it works.
    pub place: Place,
    /// The files it gives back beside its patch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// A warning of its outcome for each file that did not travel with its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// The prompt of a job among its options. A file with a prompt does not travel: its content does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeOptions {
    /// The prompt.
    pub prompt: String,
    /// The options.
    #[serde(flatten)]
    pub run: RunOptions,
}

/// A folder in the queue: its name there, and a warning for each file that was left out.
pub type StoredFolder = (String, Vec<String>);

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
    /// Packs a job, so that it refers to nothing on this machine. `store` stores a folder in the queue.
    pub fn pack(
        job: &Job,
        store: impl FnOnce(&Path) -> Result<StoredFolder, SettingError>,
    ) -> Result<Self, SettingError> {
        let mut run = job.options.clone();
        let mut left_out = Vec::new();
        let place = match &job.place {
            job::Place::Dir => Place::Dir,
            job::Place::Git(checkout) => Place::of_checkout(checkout),
            job::Place::Copy => {
                let dir = run.dir.take().unwrap_or_else(|| PathBuf::from("."));
                let (folder, missing) = store(&dir)?;
                left_out = missing;
                Place::Copy { folder }
            }
        };
        let prompt = match &job.prompt {
            Prompt::Text(text) => text.clone(),
            Prompt::File(file) => content(file)?,
        };
        if let Some(file) = run.system_prompt_file.take() {
            run.system_prompt = Some(content(&file)?);
        }
        if let Some(given @ AnswerSchema::FileOrText(_)) = &run.schema {
            let schema = read_schema(given).map_err(|error| SettingError::new(error.to_string(), ""))?;
            run.schema = schema.as_object().cloned().map(AnswerSchema::Json);
        }
        Ok(Self {
            version: VERSION,
            id: job.id.clone(),
            line: job.line,
            mark: job.mark.to_string(),
            options: EnvelopeOptions { prompt, run },
            place,
            outputs: job.outputs.patterns().to_vec(),
            left_out,
        })
    }

    /// Reads an envelope.
    pub fn read(bytes: &[u8]) -> Result<Self, SettingError> {
        serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice(bytes) {
            Ok(Versioned { version }) if version != VERSION => of_another_release(),
            _ => refused(&format!("it is no job: {error}"), ""),
        })
    }

    /// Returns an attempt of this job that never began.
    pub fn not_begun(&self, failure: Failure, place: Where) -> Attempt {
        not_begun(&self.id, &self.mark, failure, place)
    }

    /// Returns whether the job runs another CLI than the worker's, with the scripted model.
    pub fn is_offline(&self) -> bool {
        self.options.run.offline.is_some()
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
    /// Returns what a worker sends back for a job. `left_out` are the warnings of its envelope.
    pub fn new(left_out: &[String], worker: &str, number: u32, mut attempt: Attempt) -> Self {
        let result = &mut attempt.result;
        if !left_out.is_empty() {
            Arc::make_mut(&mut result.outcome).warnings.extend_from_slice(left_out);
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

fn content(file: &Path) -> Result<String, SettingError> {
    let mut text = String::new();
    files::open(file)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|error| SettingError::new(format!("{}: {error}", file.display()), "Give a text file."))?;
    Ok(text)
}

fn not_begun(id: &str, mark: &str, failure: Failure, place: Where) -> Attempt {
    Attempt { result: JobResult::new(id, mark, Arc::new(Outcome::not_begun(failure))), place }
}

/// Returns the attempt of a job whose envelope cannot be read. Its key in the queue has its id and its mark.
pub fn unread(key: &str, failure: Failure) -> Attempt {
    let (id, mark) = id_and_mark(key);
    not_begun(id, mark, failure, Where::Shared)
}

/// Returns the error with which a worker refuses a job.
pub(super) fn refused(message: &str, hint: &str) -> SettingError {
    SettingError::new(format!("the worker refuses it: {message}"), hint)
}

/// Why an envelope of another release is refused.
pub fn of_another_release() -> SettingError {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::outputs::Outputs;

    #[test]
    fn an_envelope_refers_to_nothing_on_the_machine_it_comes_from() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name)
        };
        let options = json!({
            "dir": "/here", "system_prompt_file": write("i", "instructions"), "schema": write("s", "{\"type\": \"object\"}"),
            "timeout": 90, "deny_tool": "x", "trust": true,
        });
        let job = Job {
            id: "a".to_owned(),
            line: 7,
            prompt: Prompt::File(write("p", "prompt")),
            options: serde_json::from_value(options).unwrap(),
            place: job::Place::Copy,
            outputs: Outputs::new(vec!["out".to_owned()]).unwrap(),
            mark: "00112233445566778899aabbccddeeff".parse().unwrap(),
        };
        let store = |folder: &Path| Ok((format!("folder of {}", folder.display()), vec!["w".to_owned()]));
        let envelope = JobEnvelope::pack(&job, store).unwrap();
        let bytes = serde_json::to_vec(&envelope).unwrap();
        let expected = json!({
            "version": 3, "id": "a", "line": 7, "mark": "00112233445566778899aabbccddeeff",
            "options": {
                "prompt": "prompt", "trust": true, "deny_tool": ["x"], "system_prompt": "instructions", "timeout": "90s",
                "schema": {"type": "object"},
            },
            "place": {"kind": "copy", "folder": "folder of /here"}, "outputs": ["out"], "left_out": ["w"],
        });
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), expected);
        assert_eq!(JobEnvelope::read(&bytes).unwrap(), envelope);
    }
}
