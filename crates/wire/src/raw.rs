//! JSON that is kept as it was written: raw values, and the lone surrogates that JavaScript writes.
//!
//! `JSON.stringify` escapes half of a surrogate pair as `\ud83d` since Node 12. That is legal JSON and no Rust string can hold
//! it, so such a line takes a slower path instead of being lost.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::object::{Decode, IntoOwned};

/// A JSON value that was recognised as JSON but not decoded.
///
/// Two raw values are equal when their texts are.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw<'a>(Cow<'a, str>);

impl<'a> Raw<'a> {
    /// The JSON text as it was written.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Takes JSON text as it is; `None` when it is not JSON.
    pub fn from_text(text: &'a str) -> Option<Self> {
        serde_json::from_str::<&'a RawValue>(text).ok().map(Raw::from)
    }

    /// The JSON text, if it lies where it was parsed.
    pub(crate) fn borrowed(&self) -> Option<&'a str> {
        match self.0 {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// Takes text that is known to be JSON, or will be looked at before anybody sees it.
    pub(crate) fn trusted(text: &'a str) -> Self {
        Raw(Cow::Borrowed(text))
    }

    /// Decodes the value. A lone surrogate (`\ud800`), which JavaScript writes and Rust strings cannot hold, becomes
    /// U+FFFD.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get()).or_else(|error| match without_lone_surrogates(self.get()) {
            Some(text) => serde_json::from_str(&text),
            None => Err(error),
        })
    }

    /// Cuts the tie to the text that was parsed.
    pub fn into_owned(self) -> Raw<'static> {
        Raw(Cow::Owned(self.0.into_owned()))
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Raw(Cow::Borrowed(raw.get()))
    }
}

impl<'a> From<Raw<'a>> for Cow<'a, str> {
    fn from(raw: Raw<'a>) -> Self {
        raw.0
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // serde_json writes raw text only for its own type, which has no way around looking at the text.
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(deserializer).map(Raw::from)
    }
}

impl<'de: 'a, 'a> Decode<'de> for Raw<'a> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer)
    }
}

impl<'de> Decode<'de> for &'de RawValue {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer)
    }
}

impl IntoOwned for Raw<'_> {
    type Owned = Raw<'static>;
    fn into_owned(self) -> Self::Owned {
        Raw::into_owned(self)
    }
}

/// Decodes JSON of Gemini CLI or of a JavaScript program. A lone surrogate becomes U+FFFD instead of failing the whole value.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(json).or_else(|error| {
        let repaired = std::str::from_utf8(json).ok().and_then(without_lone_surrogates);
        repaired.map_or(Err(error), |text| serde_json::from_str(&text))
    })
}

/// The text with every lone surrogate escape (`\ud800` without its partner) replaced by `\ufffd`, or `None` when there is
/// none.
pub fn without_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut repaired: Option<Vec<u8>> = None;
    let mut from = 0;
    while let Some(step) = bytes.get(from..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let at = from + step;
        from = at
            + match (unit(bytes, at), unit(bytes, at + 6)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                (Some(0xd800..=0xdfff), _) => {
                    let copy = repaired.get_or_insert_with(|| bytes.to_vec());
                    if let Some(escape) = copy.get_mut(at..at + 6) {
                        escape.copy_from_slice(b"\\ufffd");
                    }
                    6
                }
                (Some(_), _) => 6,
                (None, _) => 2,
            };
    }
    repaired.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The UTF-16 unit of the escape `\uXXXX` at a place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}
