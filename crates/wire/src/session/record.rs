//! One record of a session log.
//!
//! Records have no tag; they are told by their keys, in the order of `loadConversationRecord` (0.61). Of a message only its
//! id is looked at. It is the first key in every release, so most lines are recognised by their first few bytes, and then
//! only checked for being JSON.

use std::borrow::Cow;

use super::log::Stored;
use super::walk::{Broken, Walk};
use crate::object::{Decode, IntoOwned};
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
    match simdutf8::basic::from_utf8(line) {
        Ok(text) => parse_text(text),
        Err(_) => parse_text(&String::from_utf8_lossy(line)).map(Record::into_owned),
    }
}

fn parse_text(text: &str) -> Result<Record<'_>, LineError> {
    let raw = || Raw::from_text(text).ok_or(LineError::NotJson);
    if let Some(id) = leading_id(text) {
        return Ok(Record::Message(Stored::new(Some(id.into()), raw()?)));
    }
    let mut object = Object::default();
    if object.read(text).is_err() {
        return raw().map(Record::Other);
    }
    Ok(if let Some(to) = object.text("$rewindTo") {
        Record::Rewind(to)
    } else if let Some(id) = object.text("id") {
        Record::Message(Stored::new(Some(id), raw()?))
    } else if let Some(set) = object.set.take() {
        Record::Set(*set)
    } else if object.text("sessionId").is_some() && object.text("projectHash").is_some() {
        Record::Header(object.update)
    } else {
        Record::Other(raw()?)
    })
}

/// The value of `id` if that is the object's first key and a plain string. Says nothing about the rest.
pub(super) fn leading_id(text: &str) -> Option<&str> {
    let after = text.strip_prefix('{')?.trim_start().strip_prefix("\"id\"")?;
    let value = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let (id, rest) = value.split_at_checked(memchr::memchr2(b'"', b'\\', value.as_bytes())?)?;
    rest.starts_with('"').then_some(id)
}

/// An object whose `messages` and `$set` are looked into on the way, so that a large one is read once.
#[derive(Default)]
pub(super) struct Object<'a> {
    pub(super) update: Update<'a>,
    set: Option<Box<Update<'a>>>,
}

impl<'a> Object<'a> {
    /// Reads an object, or as much of it as there is before the text ends or goes wrong.
    pub(super) fn read(&mut self, text: &'a str) -> Result<(), Broken> {
        let mut walk = Walk::new(text);
        walk.object(|walk, key| {
            if key != "$set" {
                return self.update.read_field(walk, key);
            }
            let set = self.set.insert(Box::default());
            match walk.peek() {
                Some('{') => walk.object(|walk, key| set.read_field(walk, key)),
                _ => walk.skip().map(|_| ()),
            }
        })?;
        if walk.is_at_end() { Ok(()) } else { Err(Broken) }
    }

    /// Whether this says that it is a session.
    pub(super) fn is_session(&self) -> bool {
        self.update.fields.get("sessionId").is_some()
    }

    /// A field that is a string. The last one of a name counts, as in JavaScript.
    fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let (_, raw) = self.update.fields.0.iter().rev().find(|(key, _)| key == name)?;
        Decode::lenient(raw.borrowed()?)
    }
}

impl<'a> Update<'a> {
    fn read_field(&mut self, walk: &mut Walk<'a>, key: Cow<'a, str>) -> Result<(), Broken> {
        if key == "messages" {
            return self.read_messages(walk);
        }
        self.fields.0.push((key, Raw::trusted(walk.skip()?)));
        Ok(())
    }

    fn read_messages(&mut self, walk: &mut Walk<'a>) -> Result<(), Broken> {
        if walk.peek() != Some('[') {
            return walk.skip().map(|_| ());
        }
        let messages = self.messages.insert(Vec::new());
        walk.array(|walk| {
            if walk.peek() != Some('{') {
                return walk.skip().map(|_| ());
            }
            messages.push(Stored::from_text(walk.skip()?));
            Ok(())
        })
    }

    /// Cuts the tie to the line.
    pub fn into_owned(self) -> Update<'static> {
        Update {
            fields: IntoOwned::into_owned(self.fields),
            messages: self.messages.map(|list| list.into_iter().map(Stored::into_owned).collect()),
        }
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
