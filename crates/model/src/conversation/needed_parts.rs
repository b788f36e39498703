//! Reading only those parts of a record that an entry is made of.
//!
//! Most of a record's bytes are none of them: Gemini CLI keeps a file's contents before and after beside each diff, what the
//! terminal showed, and each tool's description (0.61.0). They are skipped here without being decoded. Whatever does not
//! have the usual form (a value of another type, a key twice) is read the thorough way instead, so both ways give the same
//! messages and events.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use alhena_wire::Raw;
use alhena_wire::session::{
    CallStatus, Content, FileDiff, MessageRecord, MessageType, Part, Piece, ResultDisplay, Thought, Tokens,
    ToolCallRecord,
};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The parts of a record that a conversation needs. What is left out of it is empty.
pub fn record(json: &str) -> Option<MessageRecord<'_>> {
    match serde_json::from_str::<Lean<MessageRecord<'_>>>(json) {
        Ok(Lean(record)) => Some(record),
        Err(_) => MessageRecord::from_text(json),
    }
}

/// The record that a text begins with, in the usual form, and the rest of the text. `None` says nothing about the text.
pub fn first_record(json: &str) -> Option<(MessageRecord<'_>, &str)> {
    let mut records = serde_json::Deserializer::from_str(json).into_iter::<Lean<MessageRecord<'_>>>();
    let Lean(record) = records.next()?.ok()?;
    Some((record, json.get(records.byte_offset()..)?))
}

/// Makes a type of the wire readable in this way.
struct Lean<T>(T);

/// What of an object is read, key by key. Each key that is known has a bit.
trait Fields<'de>: Default {
    fn field<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<u8, A::Error>;
}

/// Fills a field, and gives its bit.
fn put<T>(field: &mut T, value: T, bit: u8) -> u8 {
    *field = value;
    bit
}

fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<u8, A::Error> {
    map.next_value::<IgnoredAny>().map(|_| 0)
}

struct FieldsVisitor<T>(PhantomData<T>);

impl<'de, T: Fields<'de>> Visitor<'de> for FieldsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let (mut made, mut known) = (T::default(), 0);
        while let Some(Lean(key)) = map.next_key::<Lean<Cow<'de, str>>>()? {
            let bit = made.field(&key, &mut map)?;
            if known & bit != 0 {
                return Err(de::Error::custom("a key twice"));
            }
            known |= bit;
        }
        Ok(made)
    }
}

macro_rules! by_fields {
    ($($type:ident),*) => { $(impl<'de> Deserialize<'de> for Lean<$type<'de>> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(FieldsVisitor(PhantomData)).map(Lean)
        }
    })* };
}
by_fields!(MessageRecord, ToolCallRecord, Thought);

/// The next value, or none when it is null.
fn next<'de, T, A: MapAccess<'de>>(map: &mut A) -> Result<Option<T>, A::Error>
where
    Lean<T>: Deserialize<'de>,
{
    Ok(map.next_value::<Option<Lean<T>>>()?.map(|Lean(value)| value))
}

fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    next::<Cow<'de, str>, A>(map)
}

impl<'de> Fields<'de> for MessageRecord<'de> {
    fn field<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<u8, A::Error> {
        Ok(match key {
            "id" => put(&mut self.id, text(map)?, 1),
            "timestamp" => put(&mut self.timestamp, text(map)?, 2),
            "type" => put(&mut self.kind, text(map)?.map(MessageType::from), 4),
            "content" => put(&mut self.content, next::<Content<'de>, A>(map)?, 8),
            "thoughts" => put(&mut self.thoughts, next::<Vec<Thought<'de>>, A>(map)?, 16),
            "tokens" => put(&mut self.tokens, map.next_value::<Option<Tokens>>()?, 32),
            "model" => put(&mut self.model, text(map)?, 64),
            "toolCalls" => put(&mut self.tool_calls, next::<Vec<ToolCallRecord<'de>>, A>(map)?, 128),
            _ => skip(map)?,
        })
    }
}

impl<'de> Fields<'de> for ToolCallRecord<'de> {
    fn field<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<u8, A::Error> {
        Ok(match key {
            "id" => put(&mut self.id, text(map)?, 1),
            "name" => put(&mut self.name, text(map)?, 2),
            "args" => {
                let raw = map.next_value::<&'de RawValue>()?;
                put(&mut self.args, (raw.get() != "null").then(|| Raw::from(raw)), 4)
            }
            "result" => put(&mut self.result, next::<Content<'de>, A>(map)?, 8),
            "status" => put(&mut self.status, text(map)?.map(CallStatus::from), 16),
            "resultDisplay" => {
                let Lean(OnlyDiff(diff)) = map.next_value::<Lean<OnlyDiff<'de>>>()?;
                put(&mut self.result_display, diff.map(ResultDisplay::FileDiff), 32)
            }
            "agentId" => put(&mut self.agent_id, text(map)?, 64),
            _ => skip(map)?,
        })
    }
}

impl<'de> Fields<'de> for Thought<'de> {
    fn field<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<u8, A::Error> {
        Ok(match key {
            "subject" => put(&mut self.subject, text(map)?, 1),
            "description" => put(&mut self.description, text(map)?, 2),
            _ => skip(map)?,
        })
    }
}

/// serde borrows a `Cow` only where it is told to.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Lean<Cow<'de, str>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(text)| Lean(text))
    }
}

impl<'de, T> Deserialize<'de> for Lean<Vec<T>>
where
    Lean<T>: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list: Vec<Lean<T>> = Deserialize::deserialize(deserializer)?;
        Ok(Lean(list.into_iter().map(|Lean(item)| item).collect()))
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a part or a list of them")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::One(Piece::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::One(Piece::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        part(map).map(Content::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Lean::<Vec<Piece<'de>>>::deserialize(SeqAccessDeserializer::new(seq))
            .map(|Lean(pieces)| Content::Many(pieces))
    }
}

fn part<'de, A: MapAccess<'de>>(map: A) -> Result<Piece<'de>, A::Error> {
    Part::deserialize(MapAccessDeserializer::new(map)).map(|part| Piece::Part(Box::new(part)))
}

impl<'de> Deserialize<'de> for Lean<Content<'de>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor).map(Lean)
    }
}

impl<'de> Deserialize<'de> for Lean<Piece<'de>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(ContentVisitor)? {
            Content::One(piece) => Ok(Lean(piece)),
            Content::Many(_) => Err(de::Error::custom("a list in a list")),
        }
    }
}

/// The diff in a `resultDisplay` of any form, without the contents.
struct OnlyDiff<'a>(Option<Box<FileDiff<'a>>>);

struct DiffVisitor;

impl<'de> Visitor<'de> for DiffVisitor {
    type Value = OnlyDiff<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut diff, mut known, mut was_empty) = (FileDiff::default(), 0, true);
        while let Some(Lean(key)) = map.next_key::<Lean<Cow<'de, str>>>()? {
            let bit = match &*key {
                "fileDiff" => put(&mut diff.file_diff, text(&mut map)?, 1),
                "isNewFile" => put(&mut diff.is_new_file, map.next_value::<Option<bool>>()?, 2),
                "originalContent" => {
                    let raw = map.next_value::<&'de RawValue>()?;
                    put(&mut was_empty, !raw.get().starts_with('"') || raw.get() == "\"\"", 4)
                }
                _ => skip(&mut map)?,
            };
            if known & bit != 0 {
                return Err(de::Error::custom("a key twice"));
            }
            known |= bit;
        }
        diff.is_new_file.get_or_insert(was_empty);
        Ok(OnlyDiff((known & 1 != 0).then(|| Box::new(diff))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(OnlyDiff(None))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(OnlyDiff(None))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(OnlyDiff(None))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(OnlyDiff(None))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(OnlyDiff(None))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(OnlyDiff(None))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(OnlyDiff(None))
    }
}

impl<'de> Deserialize<'de> for Lean<OnlyDiff<'de>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DiffVisitor).map(Lean)
    }
}
