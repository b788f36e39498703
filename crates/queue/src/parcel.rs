//! What travels: a first line that says whose it is, then the bytes; or, where they are too many for a message, the name of
//! the object that has them.

use std::time::{Duration, Instant};

use async_nats::jetstream::object_store::GetErrorKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use crate::error::server;
use crate::names::{Name, Ticket};
use crate::{Queue, QueueError};

/// A server takes messages of a megabyte unless it is told otherwise.
const INLINE: usize = 256 << 10;
/// Nobody sends more, and what claims to be more is not read.
const LARGEST: usize = 1 << 30;

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
    /// The bytes; or why nobody will ever have them, as the inner error.
    pub async fn payload(&mut self, queue: &Queue) -> Result<Result<Vec<u8>, QueueError>, QueueError> {
        let Some(name) = &self.object else { return Ok(Ok(std::mem::take(&mut self.payload))) };
        match fetch(queue, name).await {
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
    if queue.files.info(&name).await.is_err() {
        let mut bytes = payload;
        queue.files.put(name.as_str(), &mut bytes).await.map_err(server("a file is stored"))?;
    }
    Ok(name)
}

async fn fetch(queue: &Queue, name: &str) -> Result<Vec<u8>, QueueError> {
    let begin = Instant::now();
    let mut object = loop {
        match queue.files.get(name).await {
            Ok(object) => break object,
            Err(error) if !matches!(error.kind(), GetErrorKind::NotFound | GetErrorKind::InvalidName) => {
                return Err(server("a file is fetched")(error));
            }
            Err(_) if begin.elapsed() > COMES => return Err(QueueError::Gone(name.to_owned())),
            Err(_) => tokio::time::sleep(COMES / 8).await,
        }
    };
    let size = object.info().size;
    if size > LARGEST {
        return Err(QueueError::Broken(format!("{name} has {size} bytes, which nobody sent")));
    }
    let mut bytes = Vec::with_capacity(size);
    object.read_to_end(&mut bytes).await.map_err(server("a file is fetched"))?;
    Ok(bytes)
}

impl Queue {
    /// Keeps a file of a batch, for whoever gets its name. The same twice is kept once.
    pub fn keep_file(&self, batch: &Name, payload: &[u8]) -> Result<String, QueueError> {
        let kind = format!("file.{batch}");
        self.wait(self.patiently("a file is stored", || keep(self, &kind, payload)))
    }

    /// A file by its name.
    pub fn file(&self, name: &str) -> Result<Vec<u8>, QueueError> {
        self.wait(fetch(self, name))
    }
}
