//! The submitter's side: every result of a batch, those of the past too.

use std::time::{Duration, Instant};

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use futures_util::StreamExt;

use crate::error::server;
use crate::names::{self, Name, Ticket};
use crate::{Queue, QueueError, Refused, parcel};

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
    /// What the worker said; nothing where that is lost.
    pub payload: Vec<u8>,
    /// Why nobody can have what it said, if that is so.
    pub lost: Option<String>,
    /// How many more there were behind it when it came.
    pub left: u64,
}

/// The results of a batch as they come.
pub struct Gathering {
    queue: Queue,
    batch: Name,
    heard: Option<Heard>,
    seen: u64,
    left: Option<u64>,
    refused: Vec<Refused>,
}

/// What the server tells.
struct Heard {
    messages: pull::Ordered,
    since: Instant,
    /// The last message that was there then.
    last: u64,
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
        Gathering {
            queue: self.clone(),
            batch: batch.clone(),
            heard: None,
            seen: 0,
            left: None,
            refused: Vec::new(),
        }
    }
}

impl Gathering {
    /// The next result, if one comes in this time, and nothing is [refused](Self::refused) before. What goes wrong loses none: the next
    /// call goes on from there.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Gathered>, QueueError> {
        let queue = self.queue.clone();
        queue.wait(async {
            let until = tokio::time::Instant::now() + wait;
            loop {
                // Neither this nor the unpacking may be broken off: what was received then would be lost.
                let heard = match &mut self.heard {
                    Some(heard) => heard,
                    none => none.insert(listen(&self.queue, &self.batch, self.seen).await?),
                };
                let message = match tokio::time::timeout_at(until, heard.messages.next()).await {
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
                        self.heard = None;
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                };
                return self.unpack(&message).await;
            }
        })
    }

    /// How many more there were behind the last one that came; none before the first.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// What came since this was asked last and is no result.
    pub fn refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }

    async fn unpack(&mut self, message: &Message) -> Result<Option<Gathered>, QueueError> {
        let info = message.info();
        let (sequence, left) = info.map_or((self.seen, 0), |info| (info.stream_sequence, info.pending));
        let mut opened = match parcel::open(&message.subject, &message.payload) {
            Ok(opened) => opened,
            Err(error) => {
                let (subject, reason) = (message.subject.to_string(), error.to_string());
                self.refused.push(Refused { subject, reason });
                (self.seen, self.left) = (sequence, Some(left));
                return Ok(None);
            }
        };
        // What was there when we came is waited for once, not each time.
        let there = self.heard.as_ref().filter(|heard| sequence <= heard.last);
        let since = there.map_or_else(Instant::now, |heard| heard.since);
        let payload = opened.payload(&self.queue, since).await.inspect_err(|_| self.heard = None)?;
        (self.seen, self.left) = (sequence, Some(left));
        let (payload, lost) = match payload {
            Ok(payload) => (payload, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let Ticket { job, attempt, .. } = opened.ticket;
        Ok(Some(Gathered { job, attempt, payload, lost, left }))
    }
}

async fn listen(queue: &Queue, batch: &Name, seen: u64) -> Result<Heard, QueueError> {
    let config = pull::OrderedConfig {
        filter_subject: names::results_of(batch),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: seen + 1 },
        replay_policy: ReplayPolicy::Instant,
        ..pull::OrderedConfig::default()
    };
    let results = queue.jetstream.get_stream(names::RESULTS).await;
    let results = results.map_err(server("the results are opened"))?;
    let (since, last) = (Instant::now(), results.cached_info().state.last_sequence);
    let consumer = results.create_consumer(config).await.map_err(server("results are asked for"))?;
    let messages = consumer.messages().await.map_err(server("results are asked for"))?;
    Ok(Heard { messages, since, last })
}
