//! The record that a message was made from, as it stood.

use std::borrow::Cow;
use std::fmt;

use alhena_wire::{Raw, without_lone_surrogates};
use serde::ser::{Error, Serialize, Serializer};
use serde_json::value::RawValue;

/// A record as it stood (B-22).
///
/// Thousands of sessions are read for a word or a sum, and nobody looks at the records again; so text that has been read once
/// is not checked a second time until it is written.
#[derive(Clone, PartialEq)]
pub struct Original<'a>(Cow<'a, str>);

impl<'a> Original<'a> {
    /// Takes the text of a record that has been read.
    pub fn of_text(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Stands in for a record that nobody wrote.
    pub(super) fn made(record: &serde_json::Value) -> Original<'static> {
        Original(Cow::Owned(record.to_string()))
    }

    /// Its JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }
}

impl<'a> From<Raw<'a>> for Original<'a> {
    fn from(raw: Raw<'a>) -> Self {
        Self(raw.into())
    }
}

impl fmt::Debug for Original<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Original<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Gemini CLI writes half of a surrogate pair where it cuts a command's output. Many JSON readers reject that, and so does
        // `serde_json::to_value`.
        let repaired = without_lone_surrogates(self.get());
        let text = repaired.as_deref().unwrap_or(self.get());
        serde_json::from_str::<&RawValue>(text).map_err(S::Error::custom)?.serialize(serializer)
    }
}
