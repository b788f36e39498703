//! Jobs for workers on many machines, over NATS JetStream.
//!
//! A job is bytes with a name, and has one result, whoever dies in between: workers, the one who submitted it, a server of
//! a cluster. The guarantees are those of JetStream, used as they are:
//!
//! - a job leaves the queue when its result has been stored, not before: a worker that dies loses its lease, and the job
//!   is given to another;
//! - the first result of a job and attempt is *the* result: the server refuses every other, so a job that was done twice
//!   counts once;
//! - a job that ended several workers is given to no further one: it gets a result that says so, and is kept in a stream
//!   of its own;
//! - a server that lost its storage is [set up again](Queue::generation) by whoever notices, and whoever submitted a job that is gone
//!   [notices](Queue::vanished) and puts it back.
//!
//! This module knows nothing of Gemini CLI, and its types can be used without a runtime: it has one of its own.

mod address;
mod batches;
mod clock;
mod connection;
mod gather;
mod names;
mod payload;
mod work;

use std::fmt::Display;

pub use address::Address;
pub use batches::{Batch, Cancelled, Progress};
pub use clock::{Next, Turn};
pub use connection::{Layout, Queue};

pub use gather::{Gathered, Gathering};
pub use names::{Label, Name};
pub use work::{Begun, Delivery, Hearing, Held, JobConsumer, Refused, WorkerPresence};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The address is no good.
    #[error("{0}")]
    Address(String),
    /// Nobody answers there, or not with what a queue needs.
    #[error("no connection to NATS at {address}: {reason}")]
    Connect {
        /// Where, without secrets.
        address: String,
        /// What was said.
        reason: String,
        /// What kind of trouble that is.
        trouble: Trouble,
    },
    /// A name that NATS would not take.
    #[error("{0}")]
    Name(String),
    /// The server refused or did not answer.
    #[error("NATS: {doing}: {reason}")]
    Server {
        /// What was tried.
        doing: &'static str,
        /// What was said.
        reason: String,
    },
    /// The server has lost all streams, and they were made again.
    #[error(
        "NATS lost what it had stored; the queue was set up again, and jobs come back when their submitters notice"
    )]
    Emptied,
    /// What a message refers to is not there any more.
    #[error("the file {0:?} of the queue is gone")]
    Gone(String),
    /// What came is not what was put in.
    #[error("{0}")]
    Broken(String),
}

/// Why there is no connection, as far as that says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// Nobody answers.
    Nobody,
    /// The server does not let this one in.
    NotLetIn,
    /// One of the two does not believe the other's certificate.
    Tls,
    /// A file with credentials, a key or certificates is no good.
    Files,
    /// The server keeps nothing.
    NoJetStream,
}

impl Trouble {
    pub(crate) fn of(error: &async_nats::ConnectError) -> Self {
        use async_nats::ConnectErrorKind as Kind;
        let said =
            std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
        match error.kind() {
            // A certificate that nobody knows is data that makes no sense.
            Kind::Io if said.is_some_and(|said| said.kind() == std::io::ErrorKind::InvalidData) => {
                Trouble::Tls
            }
            Kind::Authentication | Kind::AuthorizationViolation => Trouble::NotLetIn,
            Kind::Tls => Trouble::Tls,
            _ => Trouble::Nobody,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Trouble::Nobody => "Start it with `nats-server -js`, or look whether the address is right.",
            Trouble::NotLetIn => {
                "Give credentials that it knows: NATS_CREDS, NATS_NKEY, NATS_USER with NATS_PASSWORD, or NATS_TOKEN."
            }
            Trouble::Tls => {
                "Give the authority of its certificate in NATS_CA, and your own in NATS_CERT and NATS_KEY if it wants one."
            }
            Trouble::Files => {
                "Give the file as it was handed out: NATS_CREDS for credentials, NATS_NKEY for a seed, NATS_CA, NATS_CERT and NATS_KEY for certificates."
            }
            Trouble::NoJetStream => "Start the server with JetStream: `nats-server -js`.",
        }
    }
}

impl QueueError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            QueueError::Address(_) => {
                Some("Give nats://HOST:4222; the environment's NATS_URL, NATS_CREDS and NATS_CA count too.")
            }
            QueueError::Connect { trouble, .. } => Some(trouble.hint()),
            QueueError::Server { .. } => Some(
                "Look whether the server runs with JetStream (-js) and has room; `nats stream ls` shows it.",
            ),
            QueueError::Emptied => {
                Some("Give the server a store directory that outlives it: `nats-server -js -sd DIR`.")
            }
            QueueError::Name(_) | QueueError::Gone(_) | QueueError::Broken(_) => None,
        }
    }
}

/// For `map_err`.
pub(crate) fn server<E: Display>(doing: &'static str) -> impl FnOnce(E) -> QueueError {
    move |error| QueueError::Server { doing, reason: error.to_string() }
}
