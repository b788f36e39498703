//! What is known of a batch by everybody: how many jobs it has, what came of them, and whether it was cancelled.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::names::{self, Name};
use super::server;
use super::{Queue, QueueError};

/// So long a server may take that is asked by somebody who cannot wait.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How often a watch checks whether it still has the connection on which it began, and how long it waits after an error.
const LOOK: Duration = Duration::from_secs(1);
/// How often a watch asks the server whether the bucket is still the same one.
const CHECK: Duration = Duration::from_secs(60);

/// A batch, as it was announced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Batch {
    /// How many jobs it has.
    pub jobs: u64,
    /// What the one who submitted it has to know again.
    #[serde(default)]
    pub about: String,
    /// By which the one who submitted it is known again; one is enough.
    #[serde(default)]
    pub marks: Vec<String>,
    /// Whether it was cancelled.
    #[serde(default)]
    pub cancelled: bool,
    /// Whether whoever submitted it has all of its results.
    #[serde(default)]
    pub finished: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// How many jobs it has.
    pub jobs: u64,
    /// How many results there are, those of repeated jobs included.
    pub results: u64,
    /// How many jobs are waiting or being worked on.
    pub open: u64,
    /// How many were put aside because they ended their workers.
    pub dead: u64,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Whether whoever submitted it has all of its results.
    pub finished: bool,
}

impl Batch {
    /// So many jobs.
    pub fn new(jobs: u64, about: impl Into<String>) -> Self {
        Self { jobs, about: about.into(), ..Self::default() }
    }

    /// Known again by these.
    pub fn marks(mut self, marks: Vec<String>) -> Self {
        self.marks = marks;
        self
    }

    /// Whether it is that of somebody else, who is known by other marks.
    pub fn is_of_another(&self, marks: &[String]) -> bool {
        !self.marks.is_empty() && !self.marks.iter().any(|mark| marks.contains(mark))
    }
}

/// The batches that were cancelled, kept up to date.
#[derive(Clone, Debug, Default)]
pub struct Cancelled(Arc<Mutex<HashSet<String>>>);

impl Cancelled {
    /// Whether this one was.
    pub fn has(&self, batch: &str) -> bool {
        self.0.lock().contains(batch)
    }

    fn set(&self, batch: &str, cancelled: bool) {
        let mut all = self.0.lock();
        match cancelled {
            true => all.insert(batch.to_owned()),
            false => all.remove(batch),
        };
    }
}

impl Queue {
    /// Announces a batch, or says anew how many jobs it has. What was cancelled is open again.
    pub fn announce(&self, name: &Name, batch: &Batch) -> Result<(), QueueError> {
        let value = serde_json::to_vec(batch).map_err(|error| QueueError::Broken(error.to_string()))?;
        let put = || self.batches.put(name.to_string(), value.clone().into());
        self.wait(self.patiently("a batch is announced", put)).map(drop)
    }

    /// Announces a batch that the server has lost. Returns false, and changes nothing, if the server knows the batch: it may have been
    /// cancelled or forgotten since.
    pub fn announce_again(&self, name: &Name, batch: &Batch) -> Result<bool, QueueError> {
        let value = serde_json::to_vec(batch).map_err(|error| QueueError::Broken(error.to_string()))?;
        match self.wait(self.batches.update(name.to_string(), value.into(), 0)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
            Err(error) => Err(server("a batch is announced again")(error)),
        }
    }

    /// Returns whether a batch is announced and neither cancelled nor forgotten. Asks the leader of a cluster, whose answer is never an
    /// old one, and asks it once.
    pub fn is_open(&self, name: &Name) -> Result<bool, QueueError> {
        let subject = format!("{}{name}", self.batches.prefix);
        match self.wait(self.batches.stream.get_last_raw_message_by_subject(&subject)) {
            // A batch that was forgotten has an empty message.
            Ok(message) => {
                Ok(serde_json::from_slice(&message.payload).is_ok_and(|batch: Batch| !batch.cancelled))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(server("a batch is looked up")(error)),
        }
    }

    /// What was announced of a batch.
    pub fn batch(&self, name: &Name) -> Result<Option<Batch>, QueueError> {
        let get = || self.batches.get(name.to_string());
        let value = self.wait(self.patiently("a batch is looked up", get))?;
        value.map(|value| serde_json::from_slice(&value)).transpose().map_err(|error| {
            QueueError::Broken(format!("what is kept of batch {name} cannot be read: {error}"))
        })
    }

    /// Whether a batch is cancelled. None if nobody says so at once, or nothing is known of it.
    pub fn is_cancelled(&self, name: &Name) -> Option<bool> {
        let value = self.wait(async {
            tokio::time::timeout(AT_ONCE, self.batches.get(name.to_string())).await.ok()?.ok()?
        })?;
        serde_json::from_slice(&value).ok().map(|batch: Batch| batch.cancelled)
    }

    /// The names of all batches.
    pub fn batches(&self) -> Result<Vec<String>, QueueError> {
        self.wait(async {
            let keys = self.batches.keys().await.map_err(server("the batches are listed"))?;
            let mut names: Vec<String> = keys.filter_map(|key| std::future::ready(key.ok())).collect().await;
            names.sort();
            Ok(names)
        })
    }

    /// Cancels a batch: what nobody has begun is taken out, and who works on it is told.
    pub fn cancel(&self, name: &Name) -> Result<(), QueueError> {
        let batch = self.batch(name)?.unwrap_or_default();
        self.announce(name, &Batch { cancelled: true, ..batch })?;
        self.wait(async {
            let jobs = self.jetstream.get_stream(names::JOBS).await.map_err(server("the queue is opened"))?;
            let purge = jobs.purge().filter(names::jobs_of_batch(name));
            purge.await.map(drop).map_err(server("jobs are taken out"))
        })
    }

    /// How far a batch is; none when nobody announced it.
    pub fn progress(&self, name: &Name) -> Result<Option<Progress>, QueueError> {
        let Some(batch) = self.batch(name)? else { return Ok(None) };
        let count = || async {
            let results = self.count(names::RESULTS, names::results_of(name)).await?;
            let open = self.count(names::JOBS, names::jobs_of_batch(name)).await?;
            let dead = self.count(names::DEAD, format!("alhena.dead.{name}.>")).await?;
            Ok::<_, QueueError>((results, open, dead))
        };
        let (results, open, dead) = self.wait(self.patiently("messages are counted", count))?;
        Ok(Some(Progress {
            jobs: batch.jobs,
            results,
            open,
            dead,
            cancelled: batch.cancelled,
            finished: batch.finished,
        }))
    }

    /// Forgets a batch with its results and files.
    pub fn forget(&self, name: &Name) -> Result<(), QueueError> {
        self.cancel(name)?;
        self.wait(async {
            for (stream, subject) in
                [(names::RESULTS, names::results_of(name)), (names::DEAD, format!("alhena.dead.{name}.>"))]
            {
                let stream = self.jetstream.get_stream(stream).await.map_err(server("a stream is opened"))?;
                stream.purge().filter(subject).await.map_err(server("results are forgotten"))?;
            }
            let mut objects = self.files.list().await.map_err(server("files are listed"))?;
            let of_batch = ["job", "result", "file"].map(|kind| format!("{kind}.{name}."));
            while let Some(Ok(object)) = objects.next().await {
                if of_batch.iter().any(|kind| object.name.starts_with(kind)) {
                    self.files.delete(&object.name).await.map_err(server("a file is forgotten"))?;
                }
            }
            self.batches.purge(name.to_string()).await.map_err(server("a batch is forgotten"))
        })
    }

    /// The cancelled batches, from now on. Those that are cancelled after the server has lost its storage are among them.
    pub fn watch_cancelled(&self) -> Cancelled {
        let cancelled = Cancelled::default();
        let (client, store, seen) = (self.client.clone(), self.batches.clone(), cancelled.clone());
        self.runtime.spawn(async move {
            loop {
                if let Err(error) = follow(&client, &store, &seen).await {
                    tracing::debug!(%error, "cancelled batches are watched anew");
                    tokio::time::sleep(LOOK).await;
                }
            }
        });
        cancelled
    }

    pub(crate) async fn count(&self, stream: &'static str, filter: String) -> Result<u64, QueueError> {
        let subjects = self.subjects(stream, filter).await?;
        Ok(subjects.iter().fold(0, |sum: u64, (_, messages)| sum.saturating_add(*messages)))
    }

    /// The subjects of a stream that a filter matches, with the number of their messages.
    pub(crate) async fn subjects(
        &self,
        stream: &'static str,
        filter: String,
    ) -> Result<Vec<(String, u64)>, QueueError> {
        let stream = self.jetstream.get_stream(stream).await.map_err(server("a stream is opened"))?;
        let mut subjects = stream.info_with_subjects(filter).await.map_err(server("messages are counted"))?;
        let mut all = Vec::new();
        while let Some(subject) = subjects.next().await {
            let (subject, messages) = subject.map_err(server("messages are counted"))?;
            all.push((subject, u64::try_from(messages).unwrap_or(u64::MAX)));
        }
        Ok(all)
    }
}

/// Notes which batches are cancelled. Returns when the bucket may be another one: after a new connection, or when the server says so.
/// A watch that went on would ask the new bucket for numbers behind the last one of the old bucket, and hear nothing.
async fn follow(client: &async_nats::Client, store: &Store, seen: &Cancelled) -> Result<(), QueueError> {
    let connections = || client.statistics().connects.load(Ordering::Relaxed);
    // Both are asked for before the watch begins, so that no later change is missed.
    let (connection, made) = (connections(), made(store).await?);
    let changes = store.watch_with_history(">").await;
    let mut changes = changes.map_err(server("cancelled batches are watched"))?;
    let mut checked = Instant::now();
    while connections() == connection {
        match tokio::time::timeout(LOOK, changes.next()).await {
            Ok(Some(entry)) => {
                let entry = entry.map_err(server("cancelled batches are watched"))?;
                let batch: Option<Batch> = serde_json::from_slice(&entry.value).ok();
                let is = entry.operation == Operation::Put && batch.is_some_and(|batch| batch.cancelled);
                seen.set(&entry.key, is);
            }
            Ok(None) => return Err(server("cancelled batches are watched")("the server ended the watch")),
            Err(_nothing_new) if checked.elapsed() >= CHECK => {
                checked = Instant::now();
                if self::made(store).await? != made {
                    return Ok(());
                }
            }
            Err(_nothing_new) => {}
        }
    }
    Ok(())
}

/// When a bucket was made.
async fn made(store: &Store) -> Result<String, QueueError> {
    let info = store.stream.get_info().await.map_err(server("the batches are opened"))?;
    Ok(info.created.to_string())
}
