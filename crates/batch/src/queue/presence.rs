//! Whether anybody is there to take jobs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use futures_util::StreamExt;
use tokio::task::JoinHandle;

use super::error::server;
use super::names::{self, Label, Name};
use super::{Begun, Queue, QueueError};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);

/// Who is there for the jobs with a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerPresence {
    /// Nobody asks for jobs at this moment, and nobody has one.
    Nobody,
    /// A worker waits for jobs.
    Asks,
    /// Nobody waits, but jobs were given to somebody. Those of a worker that was killed count until another asks, so only who is
    /// [heard](Queue::hear_workers) within the lease is there.
    Holds {
        /// How long a worker may be silent that works.
        lease: Duration,
    },
}

/// Hears whether anybody works, on whatever batch.
#[derive(Debug)]
pub struct Hearing {
    heard: Arc<AtomicBool>,
    since: Instant,
    listens: JoinHandle<()>,
}

impl Hearing {
    /// Whether somebody said so.
    pub fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Acquire)
    }

    /// How long it listens.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.listens.abort();
    }
}

impl Queue {
    /// Who is there for jobs with this label at this moment. A worker with several labels asks for them in turn, so that only several
    /// looks tell that there is none.
    pub fn worker_presence(&self, label: &Label) -> Result<WorkerPresence, QueueError> {
        self.wait(async {
            let jobs = self.jetstream.get_stream_no_info(names::JOBS).await;
            let jobs = jobs.map_err(server("the queue is opened"))?;
            match jobs.consumer_info(names::workers(label)).await {
                Ok(info) if info.num_waiting > 0 => Ok(WorkerPresence::Asks),
                Ok(info) if info.num_ack_pending > 0 => {
                    Ok(WorkerPresence::Holds { lease: info.config.ack_wait })
                }
                Ok(_) => Ok(WorkerPresence::Nobody),
                Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(WorkerPresence::Nobody),
                Err(error) => Err(server("workers are counted")(error)),
            }
        })
    }

    /// Listens to everybody who works on a job of any batch, from now on.
    pub fn hear_workers(&self) -> Result<Hearing, QueueError> {
        let subject = names::begun("*");
        let mut told =
            self.wait(self.client.subscribe(subject)).map_err(server("workers are listened to"))?;
        let heard = Arc::new(AtomicBool::new(false));
        let hears = heard.clone();
        let listens = self.runtime.spawn(async move {
            while let Some(message) = told.next().await {
                let begun: Option<Begun> = serde_json::from_slice(&message.payload).ok();
                if begun.is_some_and(|begun| !begun.returned) {
                    hears.store(true, Ordering::Release);
                }
            }
        });
        Ok(Hearing { heard, since: Instant::now(), listens })
    }

    /// The labels of a batch's open jobs that no worker takes, looked at for so long.
    pub fn unattended(&self, batch: &Name, patience: Duration) -> Result<Vec<Label>, QueueError> {
        let mut labels = self.wait(self.labels(batch))?;
        let begin = Instant::now();
        loop {
            let mut left = BTreeSet::new();
            for label in labels {
                let there = label.parse().map(|label| self.worker_presence(&label));
                if matches!(there, Ok(Ok(WorkerPresence::Nobody) | Err(_))) {
                    left.insert(label);
                }
            }
            if left.is_empty() || begin.elapsed() >= patience {
                return Ok(left.iter().filter_map(|label| label.parse().ok()).collect());
            }
            labels = left;
            std::thread::sleep(LOOK);
        }
    }

    async fn labels(&self, batch: &Name) -> Result<BTreeSet<String>, QueueError> {
        let subjects = self.subjects(names::JOBS, names::jobs_of_batch(batch)).await?;
        Ok(subjects.iter().filter_map(|(subject, _)| subject.split('.').nth(2).map(str::to_owned)).collect())
    }
}
