//! The submitter's side: every result of a batch, those of the past too.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use futures_util::StreamExt;

use super::names::{self, Name, Ticket};
use super::server;
use super::{Queue, QueueError, Refused, payload};

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
    generation: u64,
    /// Whether the server has lost its streams, and the submitter has not put everything back yet.
    is_lost: bool,
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
            generation: self.known_generation(),
            is_lost: false,
        }
    }
}

impl Queue {
    /// Those of these jobs, with their attempts, that are neither in the queue nor have a result: nobody will ever do them. A server
    /// may have lost them, or somebody may have taken them out.
    pub fn vanished(&self, batch: &Name, jobs: Vec<(String, u32)>) -> Result<Vec<(String, u32)>, QueueError> {
        // In this order: a job leaves the queue when its result is there.
        let open = self.wait(self.tickets(names::JOBS, names::jobs_of_batch(batch), "alhena.jobs."))?;
        let done = self.wait(self.tickets(names::RESULTS, names::results_of(batch), "alhena.results."))?;
        let is_gone = |(job, attempt): &(String, u32)| {
            let path = Ticket::new(batch, job, *attempt).path();
            !open.contains(&path) && !done.contains(&path)
        };
        Ok(jobs.into_iter().filter(is_gone).collect())
    }

    async fn tickets(
        &self,
        stream: &'static str,
        filter: String,
        prefix: &str,
    ) -> Result<HashSet<String>, QueueError> {
        let subjects = self.subjects(stream, filter).await?.into_iter();
        let path = |(subject, _): (String, u64)| {
            let rest = subject.strip_prefix(prefix)?;
            let path = if stream == names::JOBS { rest.split_once('.')?.1 } else { rest };
            Some(path.to_owned())
        };
        Ok(subjects.filter_map(path).collect())
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

    /// Returns whether the server has lost its streams, until [`Self::restored`] is called. They are there again, and results are gathered
    /// from the first on: their numbers begin anew, and the client itself would wait for the old ones for ever.
    pub fn begins_anew(&mut self) -> Result<bool, QueueError> {
        let generation = self.queue.generation()?;
        if std::mem::replace(&mut self.generation, generation) != generation {
            (self.heard, self.seen, self.left) = (None, 0, None);
            self.is_lost = true;
        }
        Ok(self.is_lost)
    }

    /// Notes that the submitter has put back what the server had lost.
    pub fn restored(&mut self) {
        self.is_lost = false;
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
        let mut opened = match payload::open(&message.subject, &message.payload) {
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
