//! What to do about an error.

use std::borrow::Cow;
use std::error::Error;

use alhena_wire::release::NotAVersion;
use alhena_wire::stream::LineError;

/// An error that may know what to do about it. Every public error of the library is one; what it comes from is its
/// [`source`](Error::source).
pub trait Hint: Error {
    /// What to do about it, in a sentence for people.
    fn hint(&self) -> Option<Cow<'_, str>> {
        None
    }
}

impl Hint for NotAVersion {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some("Write it as 0.61.0.".into())
    }
}

impl Hint for LineError {}
