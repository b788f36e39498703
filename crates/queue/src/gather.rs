//! The submitter's side: every result of a batch, those of the past too.

use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use futures_util::StreamExt;

use crate::error::server;
use crate::names::{self, Name};
use crate::{Queue, QueueError, parcel};

/// A result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gathered {
    /// The job's id.
    pub job: String,
    /// Which try of it.
    pub attempt: u32,
    /// What the worker said.
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
    /// The next result, if one comes in this time.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Gathered>, QueueError> {
        let queue = self.queue.clone();
        queue.wait(async {
            match tokio::time::timeout(wait, self.receive()).await {
                Ok(received) => received.map(Some),
                Err(_) => Ok(None),
            }
        })
    }

    async fn receive(&mut self) -> Result<Gathered, QueueError> {
        loop {
            let mut messages = match self.messages.take() {
                Some(messages) => messages,
                None => self.listen().await?,
            };
            match messages.next().await {
                Some(Ok(message)) => {
                    let info = message.info();
                    let (sequence, left) =
                        info.map_or((self.seen, 0), |info| (info.stream_sequence, info.pending));
                    self.messages = Some(messages);
                    let unpacked = parcel::unpack(&self.queue, &message.payload).await;
                    self.seen = sequence;
                    match unpacked {
                        Ok((ticket, payload)) => {
                            return Ok(Gathered { job: ticket.job, attempt: ticket.attempt, payload, left });
                        }
                        Err(error @ QueueError::Broken(_)) => {
                            tracing::warn!(%error, "a result was passed over");
                        }
                        Err(error) => return Err(error),
                    }
                }
                // The server went away: from where we were, on another.
                Some(Err(error)) => {
                    tracing::debug!(%error, "results are asked for anew");
                    tokio::time::sleep(Duration::from_millis(250)).await;
                }
                None => tokio::time::sleep(Duration::from_millis(250)).await,
            }
        }
    }

    async fn listen(&self) -> Result<pull::Ordered, QueueError> {
        let config = pull::OrderedConfig {
            filter_subject: names::results_of(&self.batch),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.seen + 1 },
            replay_policy: ReplayPolicy::Instant,
            ..pull::OrderedConfig::default()
        };
        let results = self.queue.jetstream.get_stream(names::RESULTS).await;
        let results = results.map_err(server("the results are opened"))?;
        let consumer = results.create_consumer(config).await.map_err(server("results are asked for"))?;
        consumer.messages().await.map_err(server("results are asked for"))
    }
}
