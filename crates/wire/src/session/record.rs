//! One record of a session log.
//!
//! Records have no tag; they are told by their keys, in the order of `loadConversationRecord` (0.61). Of a message only its
//! id is looked at. It is the first key in every release, so most lines are recognised by their first few bytes, and then
//! only checked for being JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::log::Stored;
use crate::object::{Decode, IntoOwned, Via, strict};
use crate::stream::LineError;
use crate::{Named, Raw};

/// One record of a session log.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    /// `$rewindTo`: this message and all after it are gone.
    Rewind(Cow<'a, str>),
    /// A message, new or again.
    Message(Stored<'a>),
    /// `$set`: a change of the metadata; with messages, these replace all.
    Set(Update<'a>),
    /// `sessionId` and `projectHash`: the beginning of a log; with messages, these are added.
    Header(Update<'a>),
    /// JSON, but nothing that the CLI reads.
    Other(Raw<'a>),
}

/// Metadata, and messages if there are any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update<'a> {
    /// Upstream: the fields to merge, without `messages`.
    pub fields: Named<'a, Raw<'a>>,
    /// Upstream: `messages`, if that is an array; what is not an object is left out.
    pub messages: Option<Vec<Stored<'a>>>,
}

/// Reads one line of a log, without its newline. Bytes that are not UTF-8 are replaced, as the CLI's own reader does.
pub fn parse_record(line: &[u8]) -> Result<Record<'_>, LineError> {
    match String::from_utf8_lossy(line) {
        Cow::Borrowed(text) => parse_text(text),
        Cow::Owned(text) => parse_text(&text).map(Record::into_owned),
    }
}

fn parse_text(text: &str) -> Result<Record<'_>, LineError> {
    let raw = || serde_json::from_str::<&RawValue>(text).map_err(|_| LineError::NotJson);
    if let Some(id) = leading_id(text) {
        return Ok(Record::Message(Stored::new(Some(id.into()), raw()?.into())));
    }
    let mut object = Object::default();
    if object.read(text).is_err() {
        return raw().map(|raw| Record::Other(raw.into()));
    }
    Ok(if let Some(to) = object.text("$rewindTo") {
        Record::Rewind(to)
    } else if let Some(id) = object.text("id") {
        Record::Message(Stored::new(Some(id), raw()?.into()))
    } else if let Some(set) = object.set.take() {
        Record::Set(set.into_update())
    } else if object.text("sessionId").is_some() && object.text("projectHash").is_some() {
        Record::Header(object.into_update())
    } else {
        Record::Other(raw()?.into())
    })
}

/// The value of `id` if that is the object's first key and a plain string. Says nothing about the rest.
fn leading_id(text: &str) -> Option<&str> {
    let after = text.strip_prefix('{')?.trim_start().strip_prefix("\"id\"")?;
    let value = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let (id, _) = value.split_at_checked(memchr::memchr2(b'"', b'\\', value.as_bytes())?)?;
    value.get(id.len()..)?.starts_with('"').then_some(id)
}

impl<'a> Stored<'a> {
    /// A message among others; `None` when it is not an object.
    fn from_list(raw: &'a RawValue) -> Option<Self> {
        let text = raw.get();
        let slow = || {
            strict::<Named<'a, &'a RawValue>>(text).ok()?.get("id").and_then(|id| Decode::lenient(id.get()))
        };
        text.starts_with('{')
            .then(|| Stored::new(leading_id(text).map(Cow::Borrowed).or_else(slow), raw.into()))
    }
}

/// An object whose `messages` and `$set` are looked into on the way, so that a large one is read once.
#[derive(Default)]
pub(super) struct Object<'a> {
    fields: Named<'a, &'a RawValue>,
    messages: Option<Vec<&'a RawValue>>,
    set: Option<Box<Object<'a>>>,
}

impl<'a> Object<'a> {
    /// Reads an object, or as much of it as there is before the text ends or goes wrong.
    pub(super) fn read(&mut self, text: &'a str) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(text);
        if !text.trim_start().starts_with('{') {
            return Err(de::Error::custom("not an object"));
        }
        Seek { object: self, what: What::Fields }.deserialize(&mut json)?;
        json.end()
    }

    /// A field that is a string.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        // The last one counts, as in JavaScript.
        let (_, raw) = self.fields.0.iter().rev().find(|(key, _)| key == name)?;
        Decode::lenient(raw.get())
    }

    pub(super) fn into_update(self) -> Update<'a> {
        Update {
            fields: Named(self.fields.0.into_iter().map(|(key, raw)| (key, raw.into())).collect()),
            messages: self.messages.map(|list| list.into_iter().filter_map(Stored::from_list).collect()),
        }
    }
}

/// What to take from a value, if it has that form.
enum What {
    /// The fields of an object.
    Fields,
    /// The elements of an array.
    Messages,
}

struct Seek<'s, 'a> {
    object: &'s mut Object<'a>,
    what: What,
}

impl<'de> DeserializeSeed<'de> for Seek<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let What::Messages = self.what {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        while let Some(Via(key)) = map.next_key::<Via<Cow<'de, str>>>()? {
            match &*key {
                "messages" => map.next_value_seed(Seek { object: self.object, what: What::Messages })?,
                "$set" => {
                    let set = self.object.set.insert(Box::default());
                    map.next_value_seed(Seek { object: set, what: What::Fields })?;
                }
                _ => self.object.fields.0.push((key, map.next_value()?)),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let What::Fields = self.what {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let messages = self.object.messages.insert(Vec::new());
        while let Some(message) = seq.next_element()? {
            messages.push(message);
        }
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Record<'_> {
    /// Cuts the tie to the line.
    pub fn into_owned(self) -> Record<'static> {
        match self {
            Record::Rewind(to) => Record::Rewind(IntoOwned::into_owned(to)),
            Record::Message(message) => Record::Message(message.into_owned()),
            Record::Set(update) => Record::Set(update.into_owned()),
            Record::Header(update) => Record::Header(update.into_owned()),
            Record::Other(raw) => Record::Other(raw.into_owned()),
        }
    }
}

impl Update<'_> {
    /// Cuts the tie to the line.
    pub fn into_owned(self) -> Update<'static> {
        Update {
            fields: IntoOwned::into_owned(self.fields),
            messages: self.messages.map(|list| list.into_iter().map(Stored::into_owned).collect()),
        }
    }
}
