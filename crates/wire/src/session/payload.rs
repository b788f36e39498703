//! What a tool gave: a text, in all tools that the CLI brings along; any JSON, in those of MCP servers and extensions.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::Raw;
use crate::object::{Decode, IntoOwned};

/// A tool's output or error: a text in all tools of the CLI, anything in those of others.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Anything else.
    Value(serde_json::Value),
}

impl Payload<'_> {
    /// The text, or the JSON of anything else.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Payload::Text(text) => Cow::Borrowed(text),
            Payload::Value(value) => Cow::Owned(value.to_string()),
        }
    }
}

struct PayloadVisitor;

impl<'de> Visitor<'de> for PayloadVisitor {
    type Value = Payload<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Payload<'de>, E> {
        Ok(Payload::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Payload<'de>, E> {
        Ok(Payload::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Payload<'de>, E> {
        Ok(Payload::Value(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Payload<'de>, E> {
        Ok(Payload::Value(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Payload<'de>, E> {
        Ok(Payload::Value(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Payload<'de>, E> {
        Ok(Payload::Value(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Payload<'de>, A::Error> {
        Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Payload::Value)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Payload<'de>, A::Error> {
        Deserialize::deserialize(de::value::MapAccessDeserializer::new(map)).map(Payload::Value)
    }
}

impl<'de: 'a, 'a> Decode<'de> for Payload<'a> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PayloadVisitor)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        let value = || Raw::from_text(text)?.decode().ok().map(Payload::Value);
        Decode::lenient(text).map(Payload::Text).or_else(value)
    }
}

impl IntoOwned for Payload<'_> {
    type Owned = Payload<'static>;
    fn into_owned(self) -> Payload<'static> {
        match self {
            Payload::Text(text) => Payload::Text(IntoOwned::into_owned(text)),
            Payload::Value(value) => Payload::Value(value),
        }
    }
}
