//! The worker's side: a job, held by a lease that is renewed while somebody works on it; and whether any worker is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{self, AckKind};
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::names::{self, Label, Name, Ticket};
use super::server;
use super::{Queue, QueueError, payload};

/// With several labels, how long one is waited for before the next is asked.
const TURN: Duration = Duration::from_millis(300);
/// So long the connection may take for what a worker says last of a job.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Takes jobs with certain labels.
#[derive(Debug)]
pub struct JobConsumer {
    queue: Queue,
    labels: Vec<(Label, Consumer<pull::Config>)>,
    next: usize,
    refused: Vec<Refused>,
    generation: u64,
}

/// A message that is no job, and was taken out of the queue, or no result. All of it was written by whoever put it there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// What it was put under.
    pub subject: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What a message turned out to be.
enum Taken {
    Job(Box<Held>),
    Refused(Refused),
    Nothing,
}

/// A job that is held, and has still to be [opened](Self::open). Dropped, it goes to another worker when the lease is over.
pub struct Held {
    opened: payload::Opened,
    delivery: Delivery,
}

/// A job that is held. Dropped without a word, it goes to another worker when the lease is over.
pub struct Delivery {
    queue: Queue,
    ticket: Ticket,
    payload: Vec<u8>,
    lost: Option<String>,
    raw: Vec<u8>,
    times: u32,
    acker: Arc<Acker>,
    /// What is told of it whenever the lease is renewed.
    begun: Arc<Mutex<Option<Begun>>>,
    renewal: JoinHandle<()>,
}

/// Somebody works on a job now. It is told again whenever the lease is renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Begun {
    /// The job's id.
    pub job: String,
    /// Which try of it.
    pub attempt: u32,
    /// Who.
    pub worker: String,
    /// How long that one may be silent before the job is given to another, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Whether it is given back instead: nobody works on it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returned: bool,
}

impl Queue {
    /// Tells of each job of a batch that somebody begins, goes on with or gives back, from now on. Nothing that counts may depend on it.
    pub fn watch_begun(&self, batch: &Name, tell: impl Fn(Begun) + Send + 'static) -> Result<(), QueueError> {
        let subject = names::begun(&batch.to_string());
        let mut told =
            self.wait(self.client.subscribe(subject)).map_err(server("workers are listened to"))?;
        self.runtime.spawn(async move {
            while let Some(message) = told.next().await {
                if let Ok(begun) = serde_json::from_slice(&message.payload) {
                    tell(begun);
                }
            }
        });
        Ok(())
    }

    /// A worker for jobs with these labels, and for those that ask for none.
    pub fn worker(&self, labels: &[Label]) -> Result<JobConsumer, QueueError> {
        let mut all = vec![Label::any()];
        all.extend(labels.iter().filter(|label| **label != Label::any()).cloned());
        let labels: Result<Vec<_>, QueueError> = all
            .into_iter()
            .map(|label| {
                let consumer = self.wait(self.patiently("a worker signs in", || self.consumer(&label)))?;
                Ok((label, consumer))
            })
            .collect();
        let generation = self.known_generation();
        Ok(JobConsumer { queue: self.clone(), labels: labels?, next: 0, refused: Vec::new(), generation })
    }

    async fn consumer(&self, label: &Label) -> Result<Consumer<pull::Config>, QueueError> {
        let config = pull::Config {
            durable_name: Some(names::workers(label)),
            filter_subject: names::jobs_of_label(label),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.layout.lease,
            // How often is our own decision: the last delivery is for the one who says so.
            max_deliver: -1,
            max_ack_pending: 100_000,
            ..pull::Config::default()
        };
        let consumer = self.jetstream.create_consumer_on_stream(config, names::JOBS).await;
        consumer.map_err(server("a worker signs in"))
    }
}

impl JobConsumer {
    /// The next job, if one comes in this time, and nothing is [refused](Self::refused) before.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Delivery>, QueueError> {
        self.hold(wait)?.map(Held::open).transpose()
    }

    /// The same before what was put in is fetched, which may take its time.
    pub fn hold(&mut self, wait: Duration) -> Result<Option<Held>, QueueError> {
        let begin = Instant::now();
        let several = self.labels.len() > 1;
        loop {
            let left = wait.saturating_sub(begin.elapsed());
            let turn = if several { left.min(TURN) } else { left };
            let index = self.next % self.labels.len().max(1);
            self.next = index + 1;
            let Some((_, consumer)) = self.labels.get(index) else { return Ok(None) };
            match self.queue.wait(take(&self.queue, consumer, turn)).map_err(|error| self.recover(error))? {
                Taken::Job(held) => return Ok(Some(*held)),
                Taken::Refused(refused) => {
                    self.refused.push(refused);
                    return Ok(None);
                }
                Taken::Nothing if begin.elapsed() >= wait => return Ok(None),
                Taken::Nothing => {}
            }
        }
    }

    /// Signs in again where the server has lost the streams or this worker. Returns the error to report: why no job was given, or
    /// that the queue was empty.
    fn recover(&mut self, error: QueueError) -> QueueError {
        // Without a connection each request would be waited for.
        if !self.queue.is_connected() {
            return error;
        }
        let queue = self.queue.clone();
        let signed_in = queue.wait(async {
            let generation = queue.restore().await?;
            for (label, consumer) in &mut self.labels {
                *consumer = queue.consumer(label).await?;
            }
            Ok(generation)
        });
        match signed_in {
            Ok(generation) if std::mem::replace(&mut self.generation, generation) != generation => {
                QueueError::Emptied
            }
            Ok(_) => error,
            Err(failed) => failed,
        }
    }

    /// What was taken out of the queue since this was asked last, because nobody can work on it.
    pub fn refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }
}

async fn take(queue: &Queue, consumer: &Consumer<pull::Config>, wait: Duration) -> Result<Taken, QueueError> {
    // A wait of nothing would be one for ever.
    let wait = wait.max(Duration::from_millis(10));
    let mut batch = consumer
        .batch()
        .max_messages(1)
        .expires(wait)
        .messages()
        .await
        .map_err(server("a job is asked for"))?;
    // A server that went away tells nobody that the time is over.
    let message = match tokio::time::timeout(wait + Duration::from_secs(2), batch.next()).await {
        Ok(Some(Ok(message))) => message,
        Ok(Some(Err(error))) => return Err(server("a job is asked for")(error)),
        Ok(None) | Err(_) => return Ok(Taken::Nothing),
    };
    hold(queue, message).await
}

async fn hold(queue: &Queue, message: jetstream::Message) -> Result<Taken, QueueError> {
    let times = message.info().map_or(1, |info| u32::try_from(info.delivered).unwrap_or(u32::MAX));
    let raw = message.payload.to_vec();
    let opened = match payload::open(&message.subject, &raw) {
        Ok(opened) => opened,
        // Whoever put it there: nobody can work on it, and it would come again and again.
        Err(error) => return refuse(queue, &message, &error).await,
    };
    let ticket = opened.ticket.clone();
    let (_, acker) = message.split();
    let acker = Arc::new(acker);
    let begun = Arc::default();
    let renewal = Renewal {
        client: queue.client.clone(),
        batch: ticket.batch.clone(),
        acker: Arc::clone(&acker),
        begun: Arc::clone(&begun),
    };
    let renewal = tokio::spawn(renewal.each(queue.layout.lease / 3));
    let (queue, payload, lost) = (queue.clone(), Vec::new(), None);
    let delivery = Delivery { queue, ticket, payload, lost, raw, times, acker, begun, renewal };
    Ok(Taken::Job(Box::new(Held { opened, delivery })))
}

/// Takes a message out of the queue.
async fn refuse(
    queue: &Queue,
    message: &jetstream::Message,
    error: &QueueError,
) -> Result<Taken, QueueError> {
    message.ack_with(AckKind::Term).await.map_err(server("a message is taken out"))?;
    flush(&queue.client).await;
    Ok(Taken::Refused(Refused { subject: message.subject.to_string(), reason: error.to_string() }))
}

/// What keeps a lease. It has no queue, whose runtime would be dropped by itself then.
struct Renewal {
    client: async_nats::Client,
    batch: String,
    acker: Arc<Acker>,
    begun: Arc<Mutex<Option<Begun>>>,
}

impl Renewal {
    async fn each(self, time: Duration) {
        loop {
            tokio::time::sleep(time).await;
            if let Err(error) = self.acker.ack_with(AckKind::Progress).await {
                tracing::debug!(%error, "a lease was not renewed, once more later");
            }
            let begun = self.begun.lock().clone();
            if let Some(begun) = begun {
                tell(&self.client, &self.batch, &begun).await;
            }
        }
    }
}

async fn tell(client: &async_nats::Client, batch: &str, begun: &Begun) {
    let Ok(message) = serde_json::to_vec(begun) else { return };
    if let Err(error) = client.publish(names::begun(batch), message.into()).await {
        tracing::debug!(%error, "nobody was told of who works on a job");
    }
}

/// Waits until what was said is on its way: whoever says it may end the next moment. A server that is away hears nothing anyway.
async fn flush(client: &async_nats::Client) {
    let _said_or_not = tokio::time::timeout(LAST_WORDS, client.flush()).await;
}

impl Held {
    /// The batch that it belongs to.
    pub fn batch(&self) -> &str {
        self.delivery.batch()
    }

    /// Fetches what was put in.
    pub fn open(self) -> Result<Delivery, QueueError> {
        let Self { mut opened, mut delivery } = self;
        let queue = delivery.queue.clone();
        let payload = match queue.wait(opened.payload(&queue, Instant::now())) {
            Err(error) if delivery.is_exhausted() => Err(error),
            payload => payload?,
        };
        match payload {
            Ok(payload) => delivery.payload = payload,
            Err(error) => delivery.lost = Some(error.to_string()),
        }
        Ok(delivery)
    }
}

impl Delivery {
    /// The batch that it belongs to.
    pub fn batch(&self) -> &str {
        &self.ticket.batch
    }

    /// The job's id.
    pub fn job(&self) -> &str {
        &self.ticket.job
    }

    /// Which try of the job it is.
    pub fn attempt(&self) -> u32 {
        self.ticket.attempt
    }

    /// What was put in.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Why nobody can have what was put in, if that is so. It wants a [result](Self::finish) all the same.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// How often it was given to somebody, this time included.
    pub fn times(&self) -> u32 {
        self.times
    }

    /// Whether it has ended as many workers as are allowed. Then it is to be [buried](Self::bury).
    pub fn is_exhausted(&self) -> bool {
        self.times > self.queue.layout.deliveries
    }

    /// Stores the result, then takes the job out of the queue. False when another's result was there first.
    pub fn finish(self, result: &[u8]) -> Result<bool, QueueError> {
        let queue = self.queue.clone();
        queue.wait(self.end(result))
    }

    /// The same for a job that ends its workers: it is kept beside.
    pub fn bury(self, result: &[u8]) -> Result<bool, QueueError> {
        let queue = self.queue.clone();
        queue.wait(async {
            queue.store("a job is put aside", self.ticket.dead(), self.raw.clone()).await?;
            self.end(result).await
        })
    }

    /// Takes it out of the queue without a result: nobody wants one any more.
    pub fn discard(self) -> Result<(), QueueError> {
        self.queue.wait(async {
            self.acker.ack_with(AckKind::Term).await.map_err(server("a job is taken out"))?;
            flush(&self.queue.client).await;
            Ok(())
        })
    }

    /// Tells whoever listens that somebody works on it, now and for as long as it is held.
    pub fn tell_begun(&self, worker: &str) {
        let begun = Begun {
            job: self.ticket.job.clone(),
            attempt: self.ticket.attempt,
            worker: worker.to_owned(),
            lease_ms: u64::try_from(self.queue.layout.lease.as_millis()).ok(),
            returned: false,
        };
        self.queue.wait(tell(&self.queue.client, self.batch(), &begun));
        *self.begun.lock() = Some(begun);
    }

    /// Gives it to another, at once.
    pub fn give_back(mut self) -> Result<(), QueueError> {
        let queue = self.queue.clone();
        queue.wait(async {
            self.renewal.abort();
            let _aborted = (&mut self.renewal).await;
            // Before it is: the next one's word has to come behind this one.
            let begun = self.begun.lock().take();
            if let Some(begun) = begun {
                tell(&queue.client, self.batch(), &Begun { returned: true, ..begun }).await;
            }
            self.acker.ack_with(AckKind::Nak(None)).await.map_err(server("a job is given back"))?;
            flush(&queue.client).await;
            Ok(())
        })
    }

    async fn end(&self, result: &[u8]) -> Result<bool, QueueError> {
        let pack = || payload::pack(&self.queue, &self.ticket, "result", result);
        let message = match pack().await {
            // What is too large for a message needs the store of files, which may have to be made again.
            Err(QueueError::Server { .. }) if self.queue.restore().await.is_ok() => pack().await?,
            packed => packed?,
        };
        let first = self.queue.store("a result is stored", self.ticket.result(), message).await?;
        // Lost, this costs a delivery whose result counts for nothing.
        if let Err(error) = self.acker.double_ack().await {
            tracing::debug!(%error, "a job that is done was not taken out of the queue");
        }
        Ok(first)
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("ticket", &self.ticket)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

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

/// Listens for workers of any batch.
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
