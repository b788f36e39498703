//! The submitter's side: every result of a batch, those of the past too.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use futures_util::StreamExt;

use crate::error::server;
use crate::names::{self, Name, Ticket};
use crate::{Queue, QueueError, parcel};

/// Before a server is asked again that ended what it had begun.
const PAUSE: Duration = Duration::from_millis(250);

/// A result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gathered {
    /// The job's id.
    pub job: String,
    /// Which try of it.
    pub attempt: u32,
    /// What the worker said; nothing where that is gone.
    pub payload: Vec<u8>,
    /// How many more there were behind it when it came.
    pub left: u64,
}

/// The results of a batch as they come.
pub struct Gathering {
    queue: Queue,
    batch: Name,
    messages: Option<pull::Ordered>,
    seen: u64,
}

impl std::fmt::Debug for Gathering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gathering")
            .field("batch", &self.batch)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// All results of a batch, from the first on.
    pub fn gather(&self, batch: &Name) -> Gathering {
        Gathering { queue: self.clone(), batch: batch.clone(), messages: None, seen: 0 }
    }
}

impl Gathering {
    /// The next result, if one comes in this time. What goes wrong loses none: the next call goes on from there.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Gathered>, QueueError> {
        let queue = self.queue.clone();
        queue.wait(async {
            let until = tokio::time::Instant::now() + wait;
            loop {
                // Neither this nor the unpacking may be broken off: what was received then would be lost.
                let messages = match &mut self.messages {
                    Some(messages) => messages,
                    none => none.insert(listen(&self.queue, &self.batch, self.seen).await?),
                };
                let message = match tokio::time::timeout_at(until, messages.next()).await {
                    Ok(Some(Ok(message))) => message,
                    Err(_over) => return Ok(None),
                    // The server went away: from where we were, on another.
                    Ok(ended) => {
                        let error = ended.map_or_else(
                            || "it ended".to_owned(),
                            |error| match error {
                                Ok(_) => String::new(),
                                Err(error) => error.to_string(),
                            },
                        );
                        tracing::debug!(error, "results are asked for anew");
                        self.messages = None;
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                };
                if let Some(gathered) = self.unpack(&message).await? {
                    return Ok(Some(gathered));
                }
            }
        })
    }

    async fn unpack(&mut self, message: &Message) -> Result<Option<Gathered>, QueueError> {
        let info = message.info();
        let (sequence, left) = info.map_or((self.seen, 0), |info| (info.stream_sequence, info.pending));
        let mut opened = match parcel::open(&message.subject, &message.payload) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "a result was passed over");
                self.seen = sequence;
                return Ok(None);
            }
        };
        let payload = opened.payload(&self.queue).await.inspect_err(|_| self.messages = None)?;
        self.seen = sequence;
        let payload = payload.unwrap_or_else(|error| {
            tracing::warn!(%error, "what a worker said is gone");
            Vec::new()
        });
        let Ticket { job, attempt, .. } = opened.ticket;
        Ok(Some(Gathered { job, attempt, payload, left }))
    }
}

async fn listen(queue: &Queue, batch: &Name, seen: u64) -> Result<pull::Ordered, QueueError> {
    let config = pull::OrderedConfig {
        filter_subject: names::results_of(batch),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: seen + 1 },
        replay_policy: ReplayPolicy::Instant,
        ..pull::OrderedConfig::default()
    };
    let results = queue.jetstream.get_stream(names::RESULTS).await;
    let results = results.map_err(server("the results are opened"))?;
    let consumer = results.create_consumer(config).await.map_err(server("results are asked for"))?;
    consumer.messages().await.map_err(server("results are asked for"))
}
