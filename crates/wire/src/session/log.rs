//! The fold: from records to the conversation as it stands.
//!
//! It does what `loadConversationRecord` does (0.61), record by record, so that a follower can push lines as they appear and
//! learn what each of them changed. Messages stay raw; a version that was superseded is never decoded.

use std::borrow::Cow;
use std::collections::HashMap;

use super::message::{MessageRecord, Metadata};
use super::record::{Record, Update, leading_id, parse_record};
use crate::object::{Decode, IntoOwned, Object, strict};
use crate::{Named, Raw};

/// A message as it stands: its last version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    id: Option<Cow<'a, str>>,
    raw: Raw<'a>,
    state: Soundness<'a>,
}

/// What is known about the text of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Soundness<'a> {
    /// It is JSON.
    Sound,
    /// It looks like a message. If it is not JSON, the version before it stands.
    Unchecked { before: Option<Raw<'a>> },
    /// It was not JSON, and there was none before it.
    Gone,
}

impl<'a> Stored<'a> {
    pub(super) fn new(id: Option<Cow<'a, str>>, raw: Raw<'a>) -> Self {
        Stored { id, raw, state: Soundness::Sound }
    }

    /// A message among others, from the text of an object.
    pub(super) fn from_text(text: &'a str) -> Self {
        let anywhere = || {
            strict::<Named<'a, Raw<'a>>>(text).ok()?.get("id").and_then(|id| Decode::lenient(id.borrowed()?))
        };
        Stored::new(leading_id(text).map(Cow::Borrowed).or_else(anywhere), Raw::trusted(text))
    }

    /// Upstream: its id. Empty only if a legacy file holds a message without one.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Upstream: the record as it was written.
    pub fn raw(&self) -> &Raw<'a> {
        &self.raw
    }

    /// Reads the message. What does not fit its field is left out.
    pub fn decode(&self) -> MessageRecord<'_> {
        MessageRecord::from_text(self.raw.get()).unwrap_or_default()
    }

    /// Cuts the tie to the text that this was parsed from.
    pub fn into_owned(self) -> Stored<'static> {
        let state = match self.state {
            Soundness::Sound => Soundness::Sound,
            Soundness::Unchecked { before } => Soundness::Unchecked { before: before.map(Raw::into_owned) },
            Soundness::Gone => Soundness::Gone,
        };
        Stored { id: IntoOwned::into_owned(self.id), raw: self.raw.into_owned(), state }
    }

    /// Finds out whether the text is JSON, and gives the text that is. Says whether it was.
    fn check(&mut self) -> bool {
        let Soundness::Unchecked { before } = &mut self.state else { return true };
        let before = before.take();
        let sound = Raw::from_text(self.raw.get()).is_some();
        self.state = if sound || before.is_some() { Soundness::Sound } else { Soundness::Gone };
        if let Some(before) = before.filter(|_| !sound) {
            self.raw = before;
        }
        sound
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
        Metadata::from_fields(self.metadata.iter().map(|(key, value)| (key, value.get()))).unwrap_or_default()
    }

    /// Whether the log says which session and project it belongs to; the CLI does not resume one that does not.
    pub fn has_header(&self) -> bool {
        let metadata = self.metadata();
        let said = |field: Option<Cow<'_, str>>| field.is_some_and(|text| !text.is_empty());
        said(metadata.session_id) && said(metadata.project_hash)
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
                    self.check_all();
                    self.messages.clear();
                    self.places.clear();
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

    fn rewind(&mut self, to: &str) -> Change {
        self.check_all();
        let from = self.position(to).unwrap_or(0);
        for gone in self.messages.drain(from..) {
            if let Some(id) = gone.id {
                self.places.remove(&id);
            }
        }
        Change::Removed(from)
    }

    fn upsert(&mut self, mut message: Stored<'a>) -> Change {
        let place = self.position(message.id());
        let Some((place, old)) = place.and_then(|place| Some((place, self.messages.get_mut(place)?))) else {
            return self.add(message);
        };
        self.unreadable += u64::from(!old.check());
        if old.state == Soundness::Gone {
            return self.add(message);
        }
        if let Soundness::Unchecked { before } = &mut message.state {
            *before = Some(old.raw.clone());
        }
        *old = message;
        Change::Replaced(place)
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
}

impl Log<'_> {
    /// A log that keeps its own copy of what this one holds, as if each message had been a line: one without an id is left out.
    pub fn to_lines(&self) -> Log<'static> {
        let mut log = Log { metadata: IntoOwned::into_owned(self.metadata.clone()), ..Log::default() };
        for stored in &self.messages {
            log.push_copy(stored.raw.get().as_bytes());
        }
        log
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

/// Reading a whole file, where each line should be looked at once: a message is taken on trust, and checked for being JSON when
/// another supersedes it or at the end.
impl<'a> Log<'a> {
    /// Like [`Log::push_line`], on trust. Before the messages are looked at, [`Log::check_all`] is due.
    pub(super) fn push_trusting(&mut self, line: &'a [u8]) {
        let line = line.trim_ascii();
        let text = std::str::from_utf8(line).ok().filter(|text| text.ends_with('}'));
        match text.and_then(|text| Some((text, leading_id(text)?))) {
            Some((text, id)) => {
                let state = Soundness::Unchecked { before: None };
                self.upsert(Stored { id: Some(id.into()), raw: Raw::trusted(text), state });
            }
            None => _ = self.push_line(line),
        }
    }

    /// Takes a whole legacy session: its messages are kept as they stand, even two with one id.
    pub(super) fn adopt(&mut self, mut legacy: Update<'a>) {
        for message in legacy.messages.take().unwrap_or_default() {
            self.add(message);
        }
        self.update(legacy);
    }

    /// Checks every message that was taken on trust.
    pub(super) fn check_all(&mut self) {
        let unsound = self.messages.iter_mut().map(|message| u64::from(!message.check())).sum::<u64>();
        self.unreadable += unsound;
        if self.messages.iter().any(|message| message.state == Soundness::Gone) {
            self.messages.retain(|message| message.state != Soundness::Gone);
            let places = self.messages.iter().enumerate();
            self.places = places.filter_map(|(place, message)| Some((message.id.clone()?, place))).collect();
        }
    }
}
