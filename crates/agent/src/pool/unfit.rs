//! Why a pool does not take a request.

use std::borrow::Cow;
use std::fmt;

use alhena_model::Hint;

use crate::prepare::RunError;

/// What a pool cannot do for a request: it needs a process of its own, which [`Gemini::run`](crate::Gemini::run) gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    reason: String,
}

const HINT: &str = "Run it in a process of its own, with Gemini::run.";

impl Unfit {
    pub(super) fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a pool cannot take this: {}", self.reason)
    }
}

impl std::error::Error for Unfit {}

impl Hint for Unfit {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(HINT.into())
    }
}

impl From<Unfit> for RunError {
    fn from(unfit: Unfit) -> Self {
        RunError::usage(unfit.to_string(), HINT)
    }
}

/// Why there is no key for a request.
pub(super) enum NoKey {
    Unfit(Unfit),
    /// No process could run it.
    Wrong(RunError),
}

impl From<Unfit> for NoKey {
    fn from(unfit: Unfit) -> Self {
        NoKey::Unfit(unfit)
    }
}

impl From<NoKey> for RunError {
    fn from(why: NoKey) -> Self {
        match why {
            NoKey::Unfit(unfit) => unfit.into(),
            NoKey::Wrong(error) => error,
        }
    }
}
