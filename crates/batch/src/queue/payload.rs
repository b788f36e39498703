//! What travels: a first line that says whose it is, then the bytes; or, where they are too many for a message, the name of
//! the object that has them.

use std::time::{Duration, Instant};

use async_nats::jetstream::object_store::{InfoErrorKind, ObjectInfo};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use super::names::{self, Name, Ticket};
use super::server;
use super::{Queue, QueueError};

/// A server takes messages of a megabyte unless it is told otherwise.
const INLINE: usize = 256 << 10;
/// Nobody sends more, and what claims to be more is not read.
const LARGEST: usize = 1 << 30;

/// So long a server may say nothing while a file is fetched.
const SILENCE: Duration = Duration::from_secs(20);
/// So long a server of a cluster may not know what another has taken.
const COMES: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(flatten)]
    ticket: Ticket,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<String>,
}

pub(crate) async fn pack(
    queue: &Queue,
    ticket: &Ticket,
    kind: &str,
    payload: &[u8],
) -> Result<Vec<u8>, QueueError> {
    let object = match payload.len() > INLINE {
        true => Some(keep(queue, &format!("{kind}.{}", ticket.batch), payload).await?),
        false => None,
    };
    let head = Head { ticket: ticket.clone(), object };
    let mut message =
        serde_json::to_vec(&head).map_err(|error| QueueError::Broken(format!("no head: {error}")))?;
    message.push(b'\n');
    if head.object.is_none() {
        message.extend_from_slice(payload);
    }
    Ok(message)
}

/// Whose a message is, and where its bytes are.
pub(crate) struct Opened {
    pub ticket: Ticket,
    object: Option<String>,
    payload: Vec<u8>,
}

/// What a message says of itself has to fit the subject that it was put under.
pub(crate) fn open(subject: &str, message: &[u8]) -> Result<Opened, QueueError> {
    let broken =
        |reason: &str| QueueError::Broken(format!("a message in the queue is not Alhena's: {reason}"));
    let end = message.iter().position(|byte| *byte == b'\n').ok_or_else(|| broken("it has no head"))?;
    let (head, payload) = message.split_at(end);
    let head: Head = serde_json::from_slice(head).map_err(|error| broken(&error.to_string()))?;
    if !head.ticket.is_under(subject) {
        return Err(broken("its head does not fit its subject"));
    }
    let payload = payload.get(1..).unwrap_or_default().to_vec();
    Ok(Opened { ticket: head.ticket, object: head.object, payload })
}

impl Opened {
    /// The bytes; or why nobody will ever have them, as the inner error. The message was there at that time.
    pub async fn payload(
        &mut self,
        queue: &Queue,
        since: Instant,
    ) -> Result<Result<Vec<u8>, QueueError>, QueueError> {
        let Some(name) = &self.object else { return Ok(Ok(std::mem::take(&mut self.payload))) };
        match fetch(queue, name, since).await {
            Ok(payload) => Ok(Ok(payload)),
            Err(error @ (QueueError::Broken(_) | QueueError::Gone(_))) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }
}

/// Keeps bytes under a name made of them: the same twice is kept once, and nobody overwrites another's.
async fn keep(queue: &Queue, kind: &str, payload: &[u8]) -> Result<String, QueueError> {
    if payload.len() > LARGEST {
        return Err(QueueError::Broken(format!("{} bytes are too many to travel", payload.len())));
    }
    let digest = Sha256::digest(payload);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{kind}.{digits}");
    // What was forgotten leaves a note behind, and what was cut off a part.
    let is_there = match queue.files.info(&name).await {
        Ok(info) => is_whole(queue, &name, &info).await.unwrap_or(false),
        Err(_) => false,
    };
    if !is_there {
        let mut bytes = payload;
        queue.files.put(name.as_str(), &mut bytes).await.map_err(server("a file is stored"))?;
    }
    Ok(name)
}

/// What was referred to at that time.
async fn fetch(queue: &Queue, name: &str, since: Instant) -> Result<Vec<u8>, QueueError> {
    let size = loop {
        match queue.files.info(name).await {
            Ok(info) if is_whole(queue, name, &info).await? => break info.size,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), InfoErrorKind::NotFound | InfoErrorKind::InvalidName) => {}
            // The client tells it in words only.
            Err(error) if error.to_string().contains("failed to decode") => {
                return Err(QueueError::Broken(format!("what is kept of {name} cannot be read: {error}")));
            }
            Err(error) => return Err(server("a file is fetched")(error)),
        }
        if since.elapsed() > COMES {
            return Err(QueueError::Gone(name.to_owned()));
        }
        tokio::time::sleep(COMES / 8).await;
    };
    let object = queue.files.get(name).await.map_err(server("a file is fetched"))?;
    let mut object = object.take(size as u64 + 1);
    let mut bytes = Vec::with_capacity(size + 1);
    loop {
        // The client itself waits for ever for a server that has gone away.
        let read = tokio::time::timeout(SILENCE, object.read_buf(&mut bytes)).await;
        match read.map_err(|_| server("a file is fetched")("the server says nothing"))? {
            Ok(0) if bytes.len() == size => return Ok(bytes),
            Ok(1..) => {}
            Err(error) if error.kind() != std::io::ErrorKind::InvalidData => {
                return Err(server("a file is fetched")(error));
            }
            Ok(0) | Err(_) => return Err(QueueError::Broken(format!("{name} is not what was sent"))),
        }
    }
}

/// Whether all of it is there: who reads waits for what is not. What else anybody may have written of it is believed as little.
async fn is_whole(queue: &Queue, name: &str, info: &ObjectInfo) -> Result<bool, QueueError> {
    let is_link = info.options.as_ref().is_some_and(|options| options.link.is_some());
    let is_plain = info.nuid.chars().all(|letter| letter.is_ascii_alphanumeric());
    if is_link || !is_plain || info.bucket != names::FILES {
        return Err(QueueError::Broken(format!("{name} is kept as nobody keeps files")));
    }
    if info.size > LARGEST {
        return Err(QueueError::Broken(format!("{name} has {} bytes, which nobody sent", info.size)));
    }
    if info.deleted || info.chunks == 0 {
        return Ok(!info.deleted && info.size == 0);
    }
    let pieces = queue.count(names::FILES_STREAM, names::pieces(&info.nuid)).await?;
    Ok(pieces >= info.chunks as u64)
}

impl Queue {
    /// Keeps a file of a batch, for whoever gets its name. The same twice is kept once.
    pub fn keep_file(&self, batch: &Name, payload: &[u8]) -> Result<String, QueueError> {
        let kind = format!("file.{batch}");
        self.wait(self.patiently("a file is stored", || keep(self, &kind, payload)))
    }

    /// A file by its name.
    pub fn file(&self, name: &str) -> Result<Vec<u8>, QueueError> {
        self.wait(fetch(self, name, Instant::now()))
    }
}
