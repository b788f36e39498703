//! The fold: from records to the conversation as it stands.
//!
//! It does what `loadConversationRecord` does (0.61), record by record, so that a follower can push lines as they appear and
//! learn what each of them changed. Messages stay raw; a version that was superseded is never decoded.

use std::borrow::Cow;
use std::collections::HashMap;

use super::message::{MessageRecord, Metadata};
use super::record::{Record, Update, parse_record};
use crate::object::{IntoOwned, Object};
use crate::{Named, Raw};

/// A message as it stands: its last version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    id: Option<Cow<'a, str>>,
    raw: Raw<'a>,
}

impl<'a> Stored<'a> {
    pub(super) fn new(id: Option<Cow<'a, str>>, raw: Raw<'a>) -> Self {
        Stored { id, raw }
    }

    /// Upstream: its id. Empty only if a legacy file holds a message without one.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Upstream: the record as it was written.
    pub fn raw(&self) -> &Raw<'a> {
        &self.raw
    }

    /// Reads the message. What does not fit its field ends up in `extra`.
    pub fn decode(&self) -> MessageRecord<'_> {
        MessageRecord::from_text(self.raw.get()).unwrap_or_default()
    }

    /// Cuts the tie to the text that this was parsed from.
    pub fn into_owned(self) -> Stored<'static> {
        Stored { id: IntoOwned::into_owned(self.id), raw: self.raw.into_owned() }
    }
}

/// What a record changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that is kept.
    Nothing,
    /// The metadata.
    Metadata,
    /// A message was added; its place.
    Added(usize),
    /// A message was replaced by a newer version; its place.
    Replaced(usize),
    /// The messages from this place on are gone.
    Removed(usize),
    /// Metadata and any of the messages.
    Everything,
    /// The line was not JSON.
    Unreadable,
}

/// A session log, folded as far as it was read.
#[derive(Clone, Debug, Default)]
pub struct Log<'a> {
    metadata: Named<'a, Raw<'a>>,
    messages: Vec<Stored<'a>>,
    /// The place of each id.
    places: HashMap<Cow<'a, str>, usize>,
    unreadable: u64,
    ignored: u64,
}

impl<'a> Log<'a> {
    /// An empty log.
    pub fn new() -> Self {
        Log::default()
    }

    /// What the session says about itself, all records merged.
    pub fn metadata(&self) -> Metadata<'_> {
        let fields = self.metadata.iter().map(|(key, value)| (key, value.as_raw_value()));
        Metadata::from_fields(fields).unwrap_or_default()
    }

    /// Whether the log says which session and project it belongs to; the CLI does not resume one that does not.
    pub fn has_header(&self) -> bool {
        let metadata = self.metadata();
        [metadata.session_id, metadata.project_hash]
            .iter()
            .all(|field| field.as_ref().is_some_and(|text| !text.is_empty()))
    }

    /// The messages, in the order of their first appearance.
    pub fn messages(&self) -> &[Stored<'a>] {
        &self.messages
    }

    /// The place of the message with an id.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// How many lines were not JSON.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// How many records were JSON but nothing that the CLI reads.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Takes the next line, without its newline, and keeps references into it. A blank line is nothing.
    pub fn push_line(&mut self, line: &'a [u8]) -> Change {
        if line.trim_ascii().is_empty() {
            return Change::Nothing;
        }
        match parse_record(line) {
            Ok(record) => self.push(record),
            Err(_) => self.push_unreadable(),
        }
    }

    /// Takes the next record.
    pub fn push(&mut self, record: Record<'a>) -> Change {
        match record {
            Record::Rewind(to) => self.rewind(&to),
            Record::Message(message) => self.upsert(message),
            Record::Set(update) => {
                if update.messages.is_some() {
                    self.clear();
                }
                self.update(update)
            }
            Record::Header(update) => self.update(update),
            Record::Other(_) => {
                self.ignored += 1;
                Change::Nothing
            }
        }
    }

    fn push_unreadable(&mut self) -> Change {
        self.unreadable += 1;
        Change::Unreadable
    }

    /// Takes a whole legacy session: its messages are kept as they stand, even two with one id.
    pub(super) fn adopt(&mut self, mut legacy: Update<'a>) {
        for message in legacy.messages.take().unwrap_or_default() {
            self.add(message);
        }
        self.update(legacy);
    }

    fn rewind(&mut self, to: &str) -> Change {
        let from = self.position(to).unwrap_or(0);
        for gone in self.messages.drain(from..) {
            if let Some(id) = gone.id {
                self.places.remove(&id);
            }
        }
        Change::Removed(from)
    }

    fn upsert(&mut self, message: Stored<'a>) -> Change {
        match self.position(message.id()).and_then(|place| Some((place, self.messages.get_mut(place)?))) {
            Some((place, old)) => {
                *old = message;
                Change::Replaced(place)
            }
            None => self.add(message),
        }
    }

    fn add(&mut self, message: Stored<'a>) -> Change {
        let place = self.messages.len();
        if let Some(id) = &message.id {
            self.places.insert(id.clone(), place);
        }
        self.messages.push(message);
        Change::Added(place)
    }

    fn update(&mut self, update: Update<'a>) -> Change {
        for (key, value) in update.fields.0 {
            match self.metadata.0.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) => *old = value,
                None => self.metadata.0.push((key, value)),
            }
        }
        let Some(messages) = update.messages else { return Change::Metadata };
        for message in messages.into_iter().filter(|message| message.id.is_some()) {
            self.upsert(message);
        }
        Change::Everything
    }

    fn clear(&mut self) {
        self.messages.clear();
        self.places.clear();
    }
}

impl Log<'static> {
    /// Takes the next line, without its newline, and keeps its own copy of what matters; for a follower, whose buffer is used
    /// again.
    pub fn push_copy(&mut self, line: &[u8]) -> Change {
        if line.trim_ascii().is_empty() {
            return Change::Nothing;
        }
        match parse_record(line) {
            Ok(record) => self.push(record.into_owned()),
            Err(_) => self.push_unreadable(),
        }
    }
}
