//! One record, as far as a list looks into it.

use alhena_model::{Timestamp, Tokens};

use crate::scan::{Cursor, count, inside, text};

/// The longest title that is kept, in bytes.
const TITLE: usize = 400;

/// Who speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Speaker {
    Person,
    Model,
    /// The CLI: context, tool results, notices.
    #[default]
    Machine,
}

/// A message record.
#[derive(Clone, Debug, Default)]
pub(super) struct SurveyedMessage<'a> {
    /// The whole record.
    pub(super) record: &'a [u8],
    pub(super) id: &'a [u8],
    pub(super) speaker: Speaker,
    pub(super) has_text: bool,
    pub(super) has_calls: bool,
    pub(super) tokens: Option<Tokens>,
    pub(super) model: Option<&'a [u8]>,
    /// When, as it is written.
    pub(super) time: Option<&'a [u8]>,
    /// What a person typed, still as JSON.
    pub(super) said: Option<&'a [u8]>,
    /// Whether something is written in a way in which who speaks cannot be told for sure without decoding it.
    pub(super) odd: bool,
}

/// A header, or what a `$set` changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Header<'a> {
    pub(super) session_id: Option<&'a [u8]>,
    pub(super) project_hash: Option<&'a [u8]>,
    pub(super) start_time: Option<&'a [u8]>,
    pub(super) last_updated: Option<&'a [u8]>,
    pub(super) kind: Option<&'a [u8]>,
    pub(super) summary: Option<&'a [u8]>,
    pub(super) messages: Option<&'a [u8]>,
    /// Whether a key is written in an unusual way, or says nothing where something is needed.
    pub(super) odd: bool,
}

/// What a line is, in the order in which the CLI (0.61.0) asks.
pub(super) enum Record<'a> {
    /// To this message. The flag is as in [`SurveyedMessage`].
    Rewind(&'a [u8], bool),
    Message(SurveyedMessage<'a>),
    Set(Header<'a>),
    Header(Header<'a>),
}

/// Reads a line. `None` when it is no record, or is broken before what is needed of it.
pub(super) fn read(line: &[u8]) -> Option<Record<'_>> {
    let mut keys = Cursor::new(line);
    keys.enter(b'{')?;
    let first = keys.key()?;
    match first {
        b"$rewindTo" => {
            let id = inside(keys.value()?)?;
            return Some(Record::Rewind(id, is_escaped(id) || keys.peek() != Some(b'}')));
        }
        b"$set" => {
            let set = header(keys.value()?, skip)?;
            let odd = set.odd || keys.peek() != Some(b'}');
            return Some(Record::Set(Header { odd, ..set }));
        }
        b"id" => {}
        // An unusual order of keys: look at all of them.
        _ => return read_any(line),
    }
    message(line).map(Record::Message)
}

/// Goes past a list of messages.
fn skip(keys: &mut Cursor<'_>) -> Option<()> {
    keys.value().map(drop)
}

fn read_any(line: &[u8]) -> Option<Record<'_>> {
    let mut keys = Cursor::new(line);
    keys.enter(b'{')?;
    let (mut is_message, mut set) = (false, None);
    while let Some(key) = keys.key() {
        let value = keys.value()?;
        match key {
            b"$rewindTo" if inside(value).is_some() => {
                return inside(value).map(|id| Record::Rewind(id, true));
            }
            b"id" => is_message = inside(value).is_some(),
            b"$set" if value.starts_with(b"{") => set = Some(value),
            _ => {}
        }
    }
    match set {
        _ if is_message => message(line).map(Record::Message),
        Some(set) => header(set, skip).map(Record::Set),
        None => header(line, skip)
            .filter(|header| header.session_id.is_some() && header.project_hash.is_some())
            .map(Record::Header),
    }
}

/// The fields of a header or of a whole session; an object that breaks off gives what came before.
///
/// `each` is shown the list of messages and has to go past it; `None` ends the reading.
pub(super) fn header<'a>(
    object: &'a [u8],
    mut each: impl FnMut(&mut Cursor<'a>) -> Option<()>,
) -> Option<Header<'a>> {
    let mut keys = Cursor::new(object);
    keys.enter(b'{')?;
    let mut header = Header::default();
    while let Some(key) = keys.key() {
        header.odd |= is_escaped(key);
        if key == b"messages" && keys.peek() == Some(b'[') {
            header.odd |= header.messages.is_some();
            header.messages = Some(keys.rest());
            if each(&mut keys).is_none() {
                break;
            }
            continue;
        }
        let Some(value) = keys.value() else { break };
        match key {
            b"sessionId" => header.session_id = header.named(value),
            b"projectHash" => header.project_hash = header.named(value),
            b"startTime" => header.start_time = inside(value),
            b"lastUpdated" => header.last_updated = inside(value),
            b"kind" => header.kind = inside(value),
            b"summary" => header.summary = Some(value),
            _ => {}
        }
    }
    Some(header)
}

impl<'a> Header<'a> {
    /// A name without which the CLI does not load a session.
    fn named(&mut self, value: &'a [u8]) -> Option<&'a [u8]> {
        let name = inside(value);
        self.odd |= name.is_none_or(<[u8]>::is_empty);
        name
    }
}

fn is_escaped(text: &[u8]) -> bool {
    text.contains(&b'\\')
}

/// The message records of a list, each as far as it is whole. Every byte is looked at once.
pub(super) fn messages(list: &[u8]) -> impl Iterator<Item = SurveyedMessage<'_>> {
    let mut items = Cursor::new(list);
    let entered = items.enter(b'[');
    std::iter::from_fn(move || {
        entered?;
        loop {
            items.item()?;
            if items.peek() == Some(b'{') {
                return message_at(&mut items, Look::AtAll);
            }
            items.value()?;
        }
    })
}

/// How far a record is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// As far as it is needed.
    AtFirstKeys,
    /// To its end.
    AtAll,
}

fn message(record: &[u8]) -> Option<SurveyedMessage<'_>> {
    let seen = message_at(&mut Cursor::new(record), Look::AtFirstKeys)?;
    Some(SurveyedMessage { record, ..seen }).filter(|seen| !seen.id.is_empty())
}

pub(super) fn message_at<'a>(keys: &mut Cursor<'a>, look: Look) -> Option<SurveyedMessage<'a>> {
    keys.peek()?;
    let start = keys.rest();
    keys.enter(b'{')?;
    let mut seen = SurveyedMessage::default();
    let (mut id, mut kind, mut content, mut shown) = (None, None, None, None);
    let mut cut_short = false;
    let mut named = [false; 3];
    while let Some(key) = keys.key() {
        seen.odd |= is_escaped(key);
        let enough = seen.tokens.is_some() && seen.model.is_some() && kind.is_some();
        if key == b"toolCalls" && enough && look == Look::AtFirstKeys {
            // All that follows is tool calls, in every release that writes them last.
            seen.has_calls = has_items(*keys);
            cut_short = true;
            break;
        }
        let printed = if key == b"toolCalls" { keys.printed_array() } else { None };
        let value = match printed {
            Some(array) => array,
            None => keys.value()?,
        };
        if let Some(place) = [&b"id"[..], b"type", b"content"].iter().position(|name| *name == key) {
            seen.odd |= named.get_mut(place).is_some_and(|named| std::mem::replace(named, true));
        }
        match key {
            b"id" => id = inside(value),
            b"type" => kind = inside(value),
            b"timestamp" => seen.time = inside(value),
            b"content" => content = Some(value),
            b"displayContent" => shown = Some(value),
            b"tokens" => seen.tokens = tokens(value),
            b"model" => seen.model = inside(value),
            b"toolCalls" => seen.has_calls = has_items(Cursor::new(value)),
            _ => {}
        }
    }
    if !cut_short {
        keys.take(b'}')?;
        seen.record = start.get(..start.len() - keys.rest().len())?;
    }
    seen.id = id.unwrap_or_default();
    let parts = content.map(Parts::of).unwrap_or_default();
    seen.has_text = parts.has_text;
    let names = [Some(seen.id), kind];
    seen.odd |= parts.odd || names.into_iter().flatten().any(is_escaped);
    match kind {
        Some(b"user") if parts.is_by_a_person() => {
            seen.speaker = Speaker::Person;
            seen.said = shown.or(content);
        }
        // A later key could still change who speaks.
        Some(b"user" | b"info" | b"warning" | b"error") => seen.odd |= cut_short,
        // What no known release writes is taken for an answer, as a message is.
        _ => {
            seen.speaker = Speaker::Model;
            seen.has_calls |= parts.has_calls;
        }
    }
    Some(seen)
}

fn has_items(mut list: Cursor<'_>) -> bool {
    list.enter(b'[').and_then(|()| list.item()).is_some()
}

fn tokens(object: &[u8]) -> Option<Tokens> {
    let mut keys = Cursor::new(object);
    keys.enter(b'{')?;
    let mut tokens = Tokens::default();
    while let Some(key) = keys.key() {
        let value = count(keys.value()?);
        match key {
            b"input" => tokens.prompt = value,
            b"output" => tokens.output = value,
            b"cached" => tokens.cached = value,
            b"thoughts" => tokens.thoughts = value,
            b"tool" => tokens.tool = value,
            b"total" => tokens.total = value,
            _ => {}
        }
    }
    Some(tokens)
}

/// What a content consists of: a string, a part or parts.
#[derive(Default)]
struct Parts {
    has_text: bool,
    has_calls: bool,
    has_responses: bool,
    /// Something that is neither a response nor media beside one.
    has_others: bool,
    is_context: bool,
    /// Something that only decoding can tell.
    odd: bool,
}

impl Parts {
    fn of(content: &[u8]) -> Self {
        let mut parts = Self::default();
        match content.first() {
            Some(b'"') => parts.add_string(content),
            Some(b'{') => parts.add_part(content),
            Some(b'[') => {
                let mut items = Cursor::new(content);
                let _entered = items.enter(b'[');
                while items.item().is_some() {
                    match items.value() {
                        Some(text) if text.starts_with(b"\"") => parts.add_string(text),
                        Some(part) => {
                            parts.odd |= !part.starts_with(b"{");
                            parts.add_part(part);
                        }
                        None => break,
                    }
                }
            }
            _ => {}
        }
        parts
    }

    fn add_part(&mut self, part: &[u8]) {
        let mut keys = Cursor::new(part);
        let _entered = keys.enter(b'{');
        let (mut text, mut thought, mut belongs) = (None, false, false);
        while let Some(key) = keys.key() {
            let Some(value) = keys.value() else { break };
            self.odd |= is_escaped(key);
            match key {
                b"text" => {
                    self.odd |= text.is_some();
                    text = Some(value);
                }
                b"thought" => thought = value == b"true",
                b"functionCall" => self.has_calls = true,
                b"functionResponse" => {
                    self.has_responses = true;
                    belongs = true;
                    self.odd |= !value.starts_with(b"{");
                }
                b"inlineData" | b"fileData" => {
                    belongs = true;
                    self.odd |= !value.starts_with(b"{");
                }
                _ => {}
            }
        }
        self.has_others |= !belongs;
        if let Some(text) = text.filter(|_| !thought) {
            self.add_text(text);
        }
    }

    fn add_string(&mut self, text: &[u8]) {
        self.has_others |= inside(text).is_none_or(|inner| !inner.is_empty());
        self.add_text(text);
    }

    fn add_text(&mut self, text: &[u8]) {
        let start = trim_start(inside(text).unwrap_or_default());
        if !self.has_text && !start.is_empty() {
            self.has_text = true;
            self.is_context = CONTEXTS.iter().any(|context| start.starts_with(context));
        }
    }

    fn is_by_a_person(&self) -> bool {
        !self.is_context && (self.has_others || !self.has_responses)
    }
}

/// How records begin that the CLI puts there itself.
const CONTEXTS: [&[u8]; 2] = [b"<session_context>", b"<hook_context>"];

/// White space in front of escaped text.
fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        let rest = match text {
            [b' ', rest @ ..] | [b'\\', b'n' | b't' | b'r', rest @ ..] => rest,
            _ => return text,
        };
        text = rest;
    }
}

/// A title out of what a person typed: its first words.
pub(super) fn title(content: &[u8]) -> Option<String> {
    let mut words = String::new();
    let mut add = |text: Option<String>| words.push_str(text.as_deref().unwrap_or(""));
    match content.first()? {
        b'"' => add(text(content)),
        b'{' => add(part_text(content)),
        _ => {
            let mut items = Cursor::new(content);
            items.enter(b'[')?;
            while items.item().is_some() {
                let Some(part) = items.value() else { break };
                add(if part.starts_with(b"\"") { text(part) } else { part_text(part) });
            }
        }
    }
    shorten(words.trim())
}

/// The beginning of a text, if there is one.
pub(super) fn shorten(text: &str) -> Option<String> {
    let start = text.get(..text.floor_char_boundary(TITLE)).unwrap_or("");
    (!start.is_empty()).then(|| start.to_owned())
}

fn part_text(part: &[u8]) -> Option<String> {
    let mut keys = Cursor::new(part);
    keys.enter(b'{')?;
    while let Some(key) = keys.key() {
        let value = keys.value()?;
        if key == b"text" {
            return text(value);
        }
    }
    None
}

/// An ISO-8601 time in ms since 1970.
pub(super) fn millis(text: &[u8]) -> Option<i64> {
    Timestamp::parse(std::str::from_utf8(text).ok()?).map(Timestamp::as_millis)
}
