//! Streams and buckets on the server: made when somebody connects, and made again when the server has lost its storage.
//!
//! A server that comes back with an empty store directory looks like one that was restarted: the connection is back, and every request
//! for a stream fails or waits for ever. Streams are therefore known by the time at which they were made. A stream with another time is
//! a new one, whoever made it, and everything that was in the old one is gone.

use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, kv};

use super::error::server;
use super::{Layout, Queue, QueueError, names};

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

/// Makes what is missing.
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
