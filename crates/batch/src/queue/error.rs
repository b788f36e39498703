//! What can go wrong between here and the server.

use std::fmt::Display;

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
