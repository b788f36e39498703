//! What travels: a first line that says whose it is, then the bytes; or, where they are too many for a message, the name of
//! the object that has them.

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

/// Whose it is, and the bytes. What a message says of itself has to fit the subject that it was put under.
pub(crate) async fn unpack(
    queue: &Queue,
    subject: &str,
    message: &[u8],
) -> Result<(Ticket, Vec<u8>), QueueError> {
    let broken =
        |reason: &str| QueueError::Broken(format!("a message in the queue is not Alhena's: {reason}"));
    let end = message.iter().position(|byte| *byte == b'\n').ok_or_else(|| broken("it has no head"))?;
    let (head, payload) = message.split_at(end);
    let head: Head = serde_json::from_slice(head).map_err(|error| broken(&error.to_string()))?;
    if !head.ticket.is_under(subject) {
        return Err(broken("its head does not fit its subject"));
    }
    let payload = match &head.object {
        Some(name) => fetch(queue, name).await?,
        None => payload.get(1..).unwrap_or_default().to_vec(),
    };
    Ok((head.ticket, payload))
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
    let mut object = queue.files.get(name).await.map_err(server("a file is fetched"))?;
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
