//! From one line to one event.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::text::with_short_escapes;
use super::{ErrorEvent, Init, Message, ResultEvent, Role, StreamEvent, ToolResult, ToolUse, Unknown};
use crate::Raw;
use crate::object::{Object, Via};
use crate::raw::without_lone_surrogates;

/// Why a line is not a stream event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The text is not JSON; stray text on stdout looks like this.
    NotJson,
    /// It is JSON, but not an object.
    NotAnObject,
    /// It is one of the six events, but a field is missing or has another type.
    WrongShape {
        /// What is wrong, for people.
        reason: String,
    },
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NotUtf8 => f.write_str("the line is not UTF-8"),
            LineError::NotJson => f.write_str("the line is not JSON"),
            LineError::NotAnObject => f.write_str("the line is JSON, but not an object"),
            LineError::WrongShape { reason } => write!(f, "the event has an unexpected shape: {reason}"),
        }
    }
}

impl std::error::Error for LineError {}

/// Reads one line, without its newline.
pub fn parse_line(line: &[u8]) -> Result<StreamEvent<'_>, LineError> {
    let text = simdutf8::basic::from_utf8(line).map_err(|_| LineError::NotUtf8)?;
    parse_text(text).or_else(|error| {
        let repaired = without_lone_surrogates(text);
        match repaired.as_deref().map(parse_text) {
            Some(Ok(event)) => Ok(event.into_owned()),
            Some(Err(error)) => Err(line_error(text, &error)),
            None => Err(line_error(text, &error)),
        }
    })
}

/// What is wrong with a line that serde could not read. It gives up at the first wrong type, so whether the rest is JSON at
/// all has to be looked at: `[STARTUP] ...` begins like an array.
fn line_error(text: &str, error: &serde_json::Error) -> LineError {
    if !error.is_data() || serde_json::from_str::<IgnoredAny>(text).is_err() {
        LineError::NotJson
    } else if text.trim_start().starts_with('{') {
        LineError::WrongShape { reason: error.to_string() }
    } else {
        LineError::NotAnObject
    }
}

#[derive(Clone, Copy)]
enum EventType {
    Init,
    Message,
    ToolUse,
    ToolResult,
    Error,
    Result,
}

impl EventType {
    fn of(word: &str) -> Option<EventType> {
        Some(match word {
            "init" => EventType::Init,
            "message" => EventType::Message,
            "tool_use" => EventType::ToolUse,
            "tool_result" => EventType::ToolResult,
            "error" => EventType::Error,
            "result" => EventType::Result,
            _ => return None,
        })
    }

    fn read<'de, A: MapAccess<'de>>(self, map: A) -> Result<StreamEvent<'de>, A::Error> {
        Ok(match self {
            EventType::Init => StreamEvent::Init(Init::read(map)?),
            EventType::Message => StreamEvent::Message(Message::read(map)?),
            EventType::ToolUse => StreamEvent::ToolUse(ToolUse::read(map)?),
            EventType::ToolResult => StreamEvent::ToolResult(ToolResult::read(map)?),
            EventType::Error => StreamEvent::Error(ErrorEvent::read(map)?),
            EventType::Result => StreamEvent::Result(ResultEvent::read(map)?),
        })
    }
}

enum Pass<'a> {
    Event(StreamEvent<'a>),
    /// The object was skipped; this is its type, if that is a string.
    Skipped(Option<Cow<'a, str>>),
}

/// A chunk of the model's answer, which is what most lines are, byte for byte as every release since 0.11 writes it. Only its
/// two values need looking at, and only the content needs decoding. Anything else, even a space, is not for this shortcut.
fn parse_chunk(text: &str) -> Option<StreamEvent<'_>> {
    let rest = text.strip_prefix(r#"{"type":"message","timestamp":""#)?;
    let (timestamp, rest) = rest.split_at_checked(memchr::memchr(b'"', rest.as_bytes())?)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'.' | b'-');
    // All of them, whatever the first says: that is done many at a time.
    if !timestamp.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
        return None;
    }
    let quoted =
        rest.strip_prefix(r#"","role":"assistant","content":"#)?.strip_suffix(r#","delta":true}"#)?;
    let content = with_short_escapes(quoted)
        .or_else(|| serde_json::from_str(quoted).ok().map(|Via(content): Via<Cow<'_, str>>| content))?;
    Some(StreamEvent::Message(Message {
        timestamp: Some(Cow::Borrowed(timestamp)),
        role: Role::Assistant,
        content,
        delta: Some(true),
    }))
}

fn parse_text(text: &str) -> Result<StreamEvent<'_>, serde_json::Error> {
    if let Some(chunk) = parse_chunk(text) {
        return Ok(chunk);
    }
    let kind = match pass(text, None)? {
        Pass::Event(event) => return Ok(event),
        Pass::Skipped(kind) => kind,
    };
    let known = kind.as_deref().and_then(EventType::of);
    match known.map(|known| pass(text, Some(known))).transpose()? {
        Some(Pass::Event(event)) => Ok(event),
        _ => Ok(StreamEvent::Unknown(Unknown { kind, raw: serde_json::from_str(text)? })),
    }
}

fn pass(text: &str, kind: Option<EventType>) -> Result<Pass<'_>, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_str(text);
    let pass = json.deserialize_map(PassVisitor { kind })?;
    json.end().map(|()| pass)
}

/// Reads an object as the event it says it is, if it says so with its first key; or as `kind`.
struct PassVisitor {
    kind: Option<EventType>,
}

impl<'de> Visitor<'de> for PassVisitor {
    type Value = Pass<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pass<'de>, A::Error> {
        if let Some(kind) = self.kind {
            return kind.read(map).map(Pass::Event);
        }
        let mut name = None;
        let mut first = true;
        while let Some(Via(key)) = map.next_key::<Via<Cow<'de, str>>>()? {
            if key == "type" {
                name = type_name(map.next_value()?);
                if let Some(kind) = name.as_deref().and_then(EventType::of).filter(|_| first) {
                    return kind.read(map).map(Pass::Event);
                }
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            first = false;
        }
        Ok(Pass::Skipped(name))
    }
}

/// A `type` may be of any JSON type; only a string says something.
fn type_name(raw: &RawValue) -> Option<Cow<'_, str>> {
    let word = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if word.contains('\\') {
        Raw::from(raw).decode::<String>().ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(word))
    }
}
