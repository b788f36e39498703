//! `resultDisplay`: what the terminal shows of a tool's result, and the only place where diffs are kept.
//!
//! It has no tag and many forms: a text, the screen of a pseudo-terminal, a list of things to do, the progress of a sub-agent,
//! matches and files. Only the form with a `fileDiff` says something that no other field says, so only that one is decoded.

use std::borrow::Cow;

use serde::de::Deserializer;
use serde_json::value::RawValue;

use crate::object::{Decode, IntoOwned, Object, strict};
use crate::{Named, Raw};

/// What the terminal shows of a tool's result.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultDisplay<'a> {
    /// A file that was written or edited.
    FileDiff(Box<FileDiff<'a>>),
    /// Any other form.
    Other(Raw<'a>),
}

wire_object! {
    /// A file that was written or edited.
    #[derive(Default)]
    pub struct FileDiff<'a> {
        /// Upstream: a unified diff, or why there is none.
        "fileDiff" file_diff: Option<Cow<'a, str>>,
        /// Upstream: the file before; `null` when it did not exist.
        "originalContent" original_content: Option<Cow<'a, str>>,
        /// Upstream: the file after.
        "newContent" new_content: Option<Cow<'a, str>>,
        /// Upstream: whether the file is new.
        "isNewFile" is_new_file: Option<bool>,
    }
}

fn diff(text: &str) -> Option<FileDiff<'_>> {
    let fields: Named<'_, &RawValue> = strict(text).ok()?;
    fields.get("fileDiff")?;
    Object::from_fields(fields.iter().map(|(key, value)| (key, value.get())))
}

impl<'de: 'a, 'a> Decode<'de> for ResultDisplay<'a> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: Raw<'a> = Decode::decode(deserializer)?;
        let diff = raw.borrowed().and_then(diff);
        Ok(diff.map_or(Self::Other(raw), |diff| Self::FileDiff(Box::new(diff))))
    }
}

impl IntoOwned for ResultDisplay<'_> {
    type Owned = ResultDisplay<'static>;
    fn into_owned(self) -> ResultDisplay<'static> {
        match self {
            ResultDisplay::FileDiff(diff) => ResultDisplay::FileDiff(IntoOwned::into_owned(diff)),
            ResultDisplay::Other(raw) => ResultDisplay::Other(raw.into_owned()),
        }
    }
}
