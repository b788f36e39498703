//! What can go wrong between here and the server.

use std::fmt::Display;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The address, a file with credentials or a certificate is no good.
    #[error("{0}")]
    Address(String),
    /// Nobody answers there, or not with what a queue needs.
    #[error("no connection to NATS at {address}: {reason}")]
    Connect {
        /// Where, without secrets.
        address: String,
        /// What was said.
        reason: String,
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
    /// What came is not what was put in.
    #[error("{0}")]
    Broken(String),
}

impl QueueError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            QueueError::Address(_) => Some(
                "Give --nats nats://HOST:4222; the environment's NATS_URL, NATS_CREDS and NATS_CA count too.",
            ),
            QueueError::Connect { .. } => Some(
                "Start it with `nats-server -js`, or look whether the address and the credentials are right.",
            ),
            QueueError::Server { .. } => Some(
                "Look whether the server runs with JetStream (-js) and has room; `nats stream ls` shows it.",
            ),
            QueueError::Name(_) | QueueError::Broken(_) => None,
        }
    }
}

/// For `map_err`.
pub(crate) fn server<E: Display>(doing: &'static str) -> impl FnOnce(E) -> QueueError {
    move |error| QueueError::Server { doing, reason: error.to_string() }
}
