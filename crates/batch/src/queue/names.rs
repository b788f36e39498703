//! What things are called on the server: one place, because every program that takes part has to agree.
//!
//! | Stream or bucket | What is in it |
//! |---|---|
//! | `alhena-jobs` | `alhena.jobs.LABEL.BATCH.JOB.ATTEMPT`, until a result is there (work queue) |
//! | `alhena-results` | `alhena.results.BATCH.JOB.ATTEMPT`, one each |
//! | `alhena-dead` | `alhena.dead.BATCH.JOB.ATTEMPT`: jobs that ended every worker that took them |
//! | `alhena-batches` (keys) | what is known of a batch, and whether it was cancelled |
//! | `alhena-limits` (keys) | until when nobody calls a model |
//! | (no stream) | `alhena.begun.BATCH`: somebody works on a job now, or gave it back; who does not listen misses nothing that counts |
//! | `alhena-files` (objects) | what is too large for a message, and files that travel |

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::QueueError;

pub(crate) const JOBS: &str = "alhena-jobs";
pub(crate) const RESULTS: &str = "alhena-results";
pub(crate) const DEAD: &str = "alhena-dead";
pub(crate) const BATCHES: &str = "alhena-batches";
pub(crate) const LIMITS: &str = "alhena-limits";
pub(crate) const FILES: &str = "alhena-files";
/// What NATS calls the stream of that bucket.
pub(crate) const FILES_STREAM: &str = "OBJ_alhena-files";

/// How long a name may be; subjects have a limit of their own.
const LONGEST: usize = 64;

/// The name of a batch: letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

/// What a job asks of its worker, such as `gpu`; written as a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label(String);

impl Name {
    /// A name that is the same for the same parts, and begins with as much of `stem` as can be in one.
    pub fn derived(stem: &str, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digits: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let plain: String = stem.chars().filter(|letter| is_plain(*letter)).take(40).collect();
        Self(format!("{plain}-{digits}"))
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

impl Label {
    /// What jobs have that ask for nothing: every worker takes them.
    pub fn any() -> Self {
        Self("any".to_owned())
    }
}

impl FromStr for Name {
    type Err = QueueError;

    fn from_str(text: &str) -> Result<Self, QueueError> {
        plain(text).map(Self).ok_or_else(|| wrong("batch", text))
    }
}

impl FromStr for Label {
    type Err = QueueError;

    fn from_str(text: &str) -> Result<Self, QueueError> {
        plain(text).map(Self).ok_or_else(|| wrong("label", text))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong(what: &str, text: &str) -> QueueError {
    QueueError::Name(format!(
        "{text:?} cannot be the name of a {what}: 1 to {LONGEST} letters, digits, - and _ can"
    ))
}

fn plain(text: &str) -> Option<String> {
    let fits = (1..=LONGEST).contains(&text.len()) && text.chars().all(is_plain);
    fits.then(|| text.to_owned())
}

/// A job's id as a part of a subject: as it is where it can be, else its digest.
fn token(id: &str) -> String {
    plain(id).unwrap_or_else(|| {
        let digest = Sha256::digest(id.as_bytes());
        let digits = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
        // No plain id begins like that.
        std::iter::once("~".to_owned()).chain(digits).collect()
    })
}

/// Which job of which batch, and which try.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ticket {
    pub batch: String,
    pub job: String,
    pub attempt: u32,
}

impl Ticket {
    pub fn new(batch: &Name, job: &str, attempt: u32) -> Self {
        Self { batch: batch.0.clone(), job: job.to_owned(), attempt }
    }

    /// What the subjects of its job and of its result end with.
    pub fn path(&self) -> String {
        format!("{}.{}.{}", self.batch, token(&self.job), self.attempt)
    }

    /// Whether it is that of whatever was put under this subject, as a job or as a result. What is in a message anybody can write; the
    /// server decides who may put it where.
    pub fn is_under(&self, subject: &str) -> bool {
        let of_job = || subject.strip_prefix("alhena.jobs.")?.split_once('.').map(|(_label, path)| path);
        let path = subject.strip_prefix("alhena.results.").or_else(of_job);
        plain(&self.batch).is_some() && path == Some(self.path().as_str())
    }

    pub fn result(&self) -> String {
        format!("alhena.results.{}", self.path())
    }

    pub fn dead(&self) -> String {
        format!("alhena.dead.{}", self.path())
    }

    /// That of the job, whatever its label.
    pub fn any_job_subject(&self) -> String {
        format!("alhena.jobs.*.{}", self.path())
    }

    pub fn job_subject(&self, label: &Label) -> String {
        format!("alhena.jobs.{label}.{}", self.path())
    }
}

/// All jobs with a label.
pub(crate) fn jobs_of_label(label: &Label) -> String {
    format!("alhena.jobs.{label}.>")
}

/// What all workers together are called that take jobs with a label.
pub(crate) fn workers(label: &Label) -> String {
    format!("workers-{label}")
}

/// All jobs of a batch, whatever their label.
pub(crate) fn jobs_of_batch(batch: &Name) -> String {
    format!("alhena.jobs.*.{batch}.>")
}

/// Where it is told that somebody works on a job of a batch now. No stream keeps it.
pub(crate) fn begun(batch: &str) -> String {
    format!("alhena.begun.{batch}")
}

/// The pieces of a file, as NATS keeps them.
pub(crate) fn pieces(file: &str) -> String {
    format!("$O.{FILES}.C.{file}")
}

/// All results of a batch.
pub(crate) fn results_of(batch: &Name) -> String {
    format!("alhena.results.{batch}.>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_nats_would_not_take_becomes_a_token_of_its_own() {
        let names = ["a b", "a.b", "a*b", ">", "ä", "", &"x".repeat(65), "~00"];
        let tokens: std::collections::HashSet<String> = names.iter().map(|id| token(id)).collect();
        assert_eq!(tokens.len(), names.len());
        assert!(tokens.iter().all(|token| token.starts_with('~') && token.len() == 33));
        assert_eq!(token("fix-readme_2"), "fix-readme_2");
    }

    #[test]
    fn a_derived_name_is_one_and_says_where_it_comes_from() {
        let name = Name::derived("nightly results.2", &[b"a", b"bc"]);
        assert!(name.0.starts_with("nightlyresults2-") && name.0.parse::<Name>().is_ok(), "{name}");
        assert_eq!(name, Name::derived("nightly results.2", &[b"a", b"bc"]));
        assert_ne!(name, Name::derived("nightly results.2", &[b"ab", b"c"]));
        assert!(Name::derived(&"x".repeat(99), &[]).0.parse::<Name>().is_ok());
        assert!(Name::derived("", &[]).0.parse::<Name>().is_ok());
    }

    #[test]
    fn a_ticket_is_that_of_its_own_subject_and_of_no_other() {
        let ticket =
            |batch: &str, job: &str| Ticket { batch: batch.to_owned(), job: job.to_owned(), attempt: 1 };
        let mine = ticket("b", "a job");
        let label = "gpu".parse().unwrap();
        assert!(mine.is_under(&mine.result()) && mine.is_under(&mine.job_subject(&label)));
        let others = [ticket("c", "a job"), ticket("b", "a"), Ticket { attempt: 2, ..mine.clone() }];
        assert!(others.iter().all(|other| !mine.is_under(&other.result())));
        assert!(!mine.is_under(&mine.dead()) && !mine.is_under("alhena.jobs.gpu") && !mine.is_under(""));
        for odd in ["a.b", "", "*", "a b", &"x".repeat(5000)].map(|batch| ticket(batch, "a")) {
            assert!(!odd.is_under(&odd.result()), "{odd:?}");
        }
    }

    #[test]
    fn names_of_batches_are_plain() {
        assert!("nightly-2026".parse::<Name>().is_ok());
        for wrong in ["", "a.b", "a b", "*", &"n".repeat(65)] {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
    }
}
