//! The connection, the streams and buckets that it needs, and what is put into the queue and taken out of it.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{AccountErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Context, ErrorCode, kv};
use async_nats::subject::SubjectError;
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::names::{self, Label, Name, Ticket};
use super::{Address, QueueError, clock, payload};
use super::{Trouble, server};

/// How long is waited for a server that does not take something: a cluster may have to choose a new leader.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long is waited for a cluster that has just come up, or lost a server.
const COMING_UP: Duration = Duration::from_secs(30);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);

/// How the queue is laid out on the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Layout {
    /// On how many servers of a cluster everything is kept; none is as it is, or one.
    pub replicas: Option<usize>,
    /// How long a worker may be silent before its job is given to another.
    pub lease: Duration,
    /// How often a job is given to a worker before it counts as one that ends them.
    pub deliveries: u32,
    /// How long results are kept.
    pub keep: Duration,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            replicas: None,
            lease: Duration::from_secs(30),
            deliveries: 5,
            keep: Duration::from_secs(14 * 24 * 3600),
        }
    }
}

impl Layout {
    /// On how many servers of a cluster everything is kept.
    pub fn replicas(mut self, servers: usize) -> Self {
        self.replicas = Some(servers);
        self
    }

    /// How long a worker may be silent.
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// How often a job is given out.
    pub fn deliveries(mut self, times: u32) -> Self {
        self.deliveries = times;
        self
    }
}

/// A connection to the queue. Clones share it.
#[derive(Clone)]
pub struct Queue {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) client: async_nats::Client,
    pub(crate) jetstream: Context,
    pub(crate) layout: Layout,
    pub(crate) batches: kv::Store,
    pub(crate) limits: kv::Store,
    pub(crate) files: ObjectStore,
    pub(crate) generations: Arc<Mutex<Generations>>,
    /// Which rate limits hold, as they were seen last.
    pub(crate) seen: Arc<Mutex<clock::Seen>>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl Queue {
    /// Connects, and makes the streams where there are none.
    pub fn connect(address: &Address, layout: Layout) -> Result<Self, QueueError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("alhena-nats")
            .enable_all()
            .build()
            .map_err(|error| QueueError::Address(format!("no thread for NATS: {error}")))?;
        let begin = Instant::now();
        let (client, jetstream, stores) = loop {
            let prepared = runtime.block_on(async {
                let (client, jetstream) = open(address).await?;
                let stores = set_up(&jetstream, &layout).await?;
                Ok((client, jetstream, stores))
            });
            match prepared {
                // A cluster may have to choose a leader first.
                Err(error @ QueueError::Server { .. }) if begin.elapsed() < COMING_UP => {
                    tracing::debug!(%error, "NATS is not ready, once more");
                    std::thread::sleep(PAUSE);
                }
                prepared => break prepared?,
            }
        };
        let Stores { batches, limits, files, made } = stores;
        let (generations, seen) = (Arc::new(Mutex::new(Generations::first(made))), Arc::default());
        let runtime = Arc::new(runtime);
        Ok(Self { runtime, client, jetstream, layout, batches, limits, files, generations, seen })
    }

    /// Whether there is a connection just now. One that is lost comes back by itself when it can.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Puts a job into the queue; false when it is there already.
    pub fn put(
        &self,
        batch: &Name,
        job: &str,
        attempt: u32,
        label: &Label,
        payload: &[u8],
    ) -> Result<bool, QueueError> {
        self.put_in_turn(batch, job, attempt, label, payload, || ())
    }

    /// The same, and tells when it is on its way: what is put from then on comes behind it, unless it has to be sent again.
    pub fn put_in_turn(
        &self,
        batch: &Name,
        job: &str,
        attempt: u32,
        label: &Label,
        payload: &[u8],
        sent: impl FnMut(),
    ) -> Result<bool, QueueError> {
        self.wait(async {
            let ticket = Ticket::new(batch, job, attempt);
            let message = payload::pack(self, &ticket, "job", payload).await?;
            let subject = ticket.job_subject(label);
            self.store_in_turn("a job is put into the queue", subject, message, sent).await
        })
    }

    /// Takes a job out of the queue, whoever may work on it: what that one finds out is kept all the same.
    pub fn withdraw(&self, batch: &Name, job: &str, attempt: u32) -> Result<(), QueueError> {
        let subject = Ticket::new(batch, job, attempt).any_job_subject();
        self.wait(async {
            let jobs = self.jetstream.get_stream_no_info(names::JOBS).await;
            let jobs = jobs.map_err(server("the queue is opened"))?;
            jobs.purge().filter(subject).await.map(drop).map_err(server("a job is taken out"))
        })
    }

    /// Forgets a result, so that there can be another of the same attempt.
    pub fn forget_result(&self, batch: &Name, job: &str, attempt: u32) -> Result<(), QueueError> {
        let subject = Ticket::new(batch, job, attempt).result();
        self.wait(async {
            let results = self.jetstream.get_stream_no_info(names::RESULTS).await;
            let results = results.map_err(server("the results are opened"))?;
            results.purge().filter(subject).await.map(drop).map_err(server("a result is forgotten"))
        })
    }

    /// Tries until the server takes it, or too much time is over.
    pub(crate) async fn patiently<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        doing: &'static str,
        mut work: impl FnMut() -> F,
    ) -> Result<T, QueueError> {
        let begin = Instant::now();
        loop {
            match work().await {
                Ok(done) => return Ok(done),
                Err(error) if begin.elapsed() > PATIENCE => return Err(server(doing)(error)),
                Err(error) => tracing::debug!(%error, doing, "NATS did not take it, once more"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The outcome of something that is done by the queue's own runtime.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Stores the first message of a subject, and no other; false when there is one.
    pub(crate) async fn store(
        &self,
        doing: &'static str,
        subject: String,
        payload: Vec<u8>,
    ) -> Result<bool, QueueError> {
        self.store_in_turn(doing, subject, payload, || ()).await
    }

    async fn store_in_turn(
        &self,
        doing: &'static str,
        subject: String,
        payload: Vec<u8>,
        mut sent: impl FnMut(),
    ) -> Result<bool, QueueError> {
        let begin = Instant::now();
        let payload = bytes::Bytes::from(payload);
        loop {
            let message = PublishMessage::build().payload(payload.clone()).expected_last_subject_sequence(0);
            let handed_over = self.jetstream.send_publish(subject.clone(), message).await;
            sent();
            let stored = match handed_over {
                Ok(acknowledged) => acknowledged.await,
                Err(error) => Err(error),
            };
            match stored {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => return Ok(false),
                Err(error) if begin.elapsed() > PATIENCE || is_for_ever(&error) => {
                    return Err(server(doing)(error));
                }
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                    tracing::debug!(%error, doing, "NATS has lost the stream, which is made again");
                    let _said_by_the_next = self.restore().await;
                }
                Err(error) => tracing::debug!(%error, doing, "NATS did not take it, once more"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether it goes wrong however often it is tried.
fn is_for_ever(error: &PublishError) -> bool {
    let source = std::error::Error::source(error);
    error.kind() == PublishErrorKind::MaxPayloadExceeded
        || source.is_some_and(|source| source.is::<SubjectError>())
}

/// What a server says that will never have JetStream.
const NONE: [ErrorCode; 2] = [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT];

async fn open(address: &Address) -> Result<(async_nats::Client, Context), QueueError> {
    let lost = |reason: String, trouble| QueueError::Connect { address: address.shown(), reason, trouble };
    let client = address
        .options()
        .await?
        .connect(address.servers()?)
        .await
        .map_err(|error| lost(error.to_string(), Trouble::of(&error)))?;
    let jetstream = jetstream::new(client.clone());
    let account = jetstream.query_account().await;
    account.map_err(|error| match error.kind() {
        AccountErrorKind::JetStream(said) if NONE.contains(&said.error_code()) => {
            lost(format!("it has no JetStream ({error})"), Trouble::NoJetStream)
        }
        AccountErrorKind::JetStreamUnavailable => {
            lost(format!("it has no JetStream ({error})"), Trouble::NoJetStream)
        }
        // A cluster without a leader says nothing, or that it is not ready.
        _ => server("JetStream is asked for")(error),
    })?;
    Ok((client, jetstream))
}

/// What is on the server.
pub(crate) struct Stores {
    pub batches: kv::Store,
    pub limits: kv::Store,
    pub files: ObjectStore,
    /// When the streams of jobs and of results and the bucket of batches were made.
    pub made: Made,
}

/// When the streams of jobs and of results and the bucket of batches were made.
pub(crate) type Made = [String; 3];

/// How often the server has lost the streams, as far as this process knows.
#[derive(Debug)]
pub(crate) struct Generations {
    number: u64,
    made: Made,
}

impl Generations {
    pub fn first(made: Made) -> Self {
        Self { number: 0, made }
    }
}

impl Queue {
    /// Makes the streams and buckets again that the server has lost. Returns a number that is higher than before whenever the server
    /// has lost them, also when somebody else has made them again: jobs and results from before are gone.
    pub fn generation(&self) -> Result<u64, QueueError> {
        self.wait(self.restore())
    }

    pub(crate) async fn restore(&self) -> Result<u64, QueueError> {
        let Stores { made, .. } = set_up(&self.jetstream, &self.layout).await?;
        let mut known = self.generations.lock();
        if known.made != made {
            *known = Generations { number: known.number + 1, made };
        }
        Ok(known.number)
    }

    /// The number that [`Self::generation`] returned last.
    pub(crate) fn known_generation(&self) -> u64 {
        self.generations.lock().number
    }
}

/// Makes the streams and buckets that are missing.
///
/// A server that comes back with an empty store directory looks like one that was restarted: the connection is back, and every request
/// for a stream fails or waits for ever. Streams are therefore known by the time at which they were made. A stream with another time is
/// a new one, whoever made it, and everything that was in the old one is gone.
pub(crate) async fn set_up(jetstream: &Context, layout: &Layout) -> Result<Stores, QueueError> {
    let stream = |name: &str, words: &str| Config {
        name: name.to_owned(),
        subjects: vec![format!("alhena.{words}.>")],
        storage: StorageType::File,
        num_replicas: layout.replicas.unwrap_or(1),
        discard: DiscardPolicy::New,
        ..Config::default()
    };
    let jobs = Config { retention: RetentionPolicy::WorkQueue, ..stream(names::JOBS, "jobs") };
    let results = Config { max_age: layout.keep, ..stream(names::RESULTS, "results") };
    let jobs = be_there(jetstream, jobs, layout).await?;
    let results = be_there(jetstream, results, layout).await?;
    be_there(jetstream, stream(names::DEAD, "dead"), layout).await?;
    let batches = keys(jetstream, names::BATCHES, layout).await?;
    let limits = keys(jetstream, names::LIMITS, layout).await?;
    let files = match jetstream.get_object_store(names::FILES).await {
        Ok(files) => files,
        Err(_) => {
            let config = object_store::Config {
                bucket: names::FILES.to_owned(),
                max_age: layout.keep,
                num_replicas: layout.replicas.unwrap_or(1),
                ..object_store::Config::default()
            };
            jetstream.create_object_store(config).await.map_err(server("the store of files is made"))?
        }
    };
    let made = [jobs, results, batches.stream.cached_info().created.to_string()];
    Ok(Stores { batches, limits, files, made })
}

/// Creates a stream if it does not exist. Returns the time of its creation.
async fn be_there(jetstream: &Context, config: Config, layout: &Layout) -> Result<String, QueueError> {
    let stream = jetstream.get_or_create_stream(config.clone()).await.map_err(server("a stream is made"))?;
    let info = stream.cached_info();
    let (there, made) = (info.config.clone(), info.created.to_string());
    if let Some(wanted) = layout.replicas.filter(|wanted| *wanted != there.num_replicas) {
        let config = Config { num_replicas: wanted, ..there };
        jetstream.update_stream(config).await.map_err(server("a stream gets its replicas"))?;
    }
    Ok(made)
}

async fn keys(jetstream: &Context, bucket: &str, layout: &Layout) -> Result<kv::Store, QueueError> {
    if let Ok(store) = jetstream.get_key_value(bucket).await {
        return Ok(store);
    }
    let config = kv::Config {
        bucket: bucket.to_owned(),
        history: 1,
        num_replicas: layout.replicas.unwrap_or(1),
        ..kv::Config::default()
    };
    jetstream.create_key_value(config).await.map_err(server("a store of keys is made"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_that_nats_never_takes_is_tried_once() {
        let server = alhena_testbed::nats::NatsServer::alone().unwrap();
        let address = Address::of(Some(&server.url()), |_| None).unwrap();
        let queue = Queue::connect(&address, Layout::default()).unwrap();
        let put = |subject: &str| {
            let message = PublishMessage::build().payload("x".into());
            queue.wait(async { queue.jetstream.send_publish(subject.to_owned(), message).await?.await })
        };
        assert!(is_for_ever(&put("alhena.results.a b.1.1").unwrap_err()));
        assert!(!is_for_ever(&put("alhena.nowhere.b.1.1").unwrap_err()));
    }
}
