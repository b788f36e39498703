//! What is said in a message: a string, a part, or a list of both (`PartListUnion` upstream).
//!
//! A prompt is a list of parts since 0.21; a model's text is a string, until a resume rewrites it as parts with thoughts
//! among them (0.61). Tool results come back in the user's name, with media beside the response instead of inside.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::payload::Payload;
use crate::Raw;
use crate::object::{Decode, IntoOwned, Object};

/// The content of a message, or the result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<'a> {
    /// A string or a part that stands alone.
    One(Piece<'a>),
    /// A list of strings and parts.
    Many(Vec<Piece<'a>>),
}

/// A string or a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// A string, which means a text part.
    Text(Cow<'a, str>),
    /// A part.
    Part(Box<Part<'a>>),
}

wire_object! {
    /// A part of the Gemini API. One of its fields says what it is.
    #[derive(Default)]
    pub struct Part<'a> {
        /// Upstream: text.
        "text" text: Option<Cow<'a, str>>,
        /// Upstream: whether the text is a thought.
        "thought" thought: Option<bool>,
        /// Upstream: a call that the model made.
        "functionCall" function_call: Option<Box<FunctionCall<'a>>>,
        /// Upstream: what the model was told about a call.
        "functionResponse" function_response: Option<Box<FunctionResponse<'a>>>,
        /// Upstream: media, in the record itself.
        "inlineData" inline_data: Option<Box<InlineData<'a>>>,
        /// Upstream: media, elsewhere.
        "fileData" file_data: Option<Box<FileData<'a>>>,
    }
}

wire_object! {
    /// A call that the model made.
    #[derive(Default)]
    pub struct FunctionCall<'a> {
        /// Upstream: its id.
        "id" id: Option<Cow<'a, str>>,
        /// Upstream: the tool's name.
        "name" name: Option<Cow<'a, str>>,
        /// Upstream: its arguments; not decoded until asked.
        "args" args: Option<Raw<'a>>,
    }
}

wire_object! {
    /// What the model was told about a call.
    #[derive(Default)]
    pub struct FunctionResponse<'a> {
        /// Upstream: the id of the call.
        "id" id: Option<Cow<'a, str>>,
        /// Upstream: the tool's name.
        "name" name: Option<Cow<'a, str>>,
        /// Upstream: the answer itself.
        "response" response: Option<Response<'a>>,
        /// Upstream: media inside the response, for models that take it there.
        "parts" parts: Option<Content<'a>>,
    }
}

wire_object! {
    /// The answer of a tool: `output` or `error`; both, when it was cancelled.
    #[derive(Default)]
    pub struct Response<'a> {
        /// Upstream: what it gave.
        "output" output: Option<Payload<'a>>,
        /// Upstream: why it failed.
        "error" error: Option<Payload<'a>>,
    }
}

wire_object! {
    /// Media in the record itself.
    #[derive(Default)]
    pub struct InlineData<'a> {
        /// Upstream: such as `image/png`.
        "mimeType" mime_type: Option<Cow<'a, str>>,
        /// Upstream: Base64.
        "data" data: Option<Cow<'a, str>>,
    }
}

wire_object! {
    /// Media elsewhere.
    #[derive(Default)]
    pub struct FileData<'a> {
        /// Upstream: such as `application/pdf`.
        "mimeType" mime_type: Option<Cow<'a, str>>,
        /// Upstream: where it is.
        "fileUri" file_uri: Option<Cow<'a, str>>,
    }
}

impl<'a> Content<'a> {
    /// The pieces, whatever the form.
    pub fn pieces(&self) -> &[Piece<'a>] {
        match self {
            Content::One(piece) => std::slice::from_ref(piece),
            Content::Many(pieces) => pieces,
        }
    }

    /// The parts among the pieces.
    pub fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        self.pieces().iter().filter_map(Piece::part)
    }

    /// All text that is no thought, joined without a separator, as the CLI does.
    pub fn text(&self) -> Cow<'_, str> {
        joined(self.pieces().iter().filter_map(Piece::spoken))
    }

    /// Whether this is nothing but tool responses, which the CLI stores in the user's name. Media beside a response belongs
    /// to it.
    pub fn is_function_response_only(&self) -> bool {
        let belongs = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => text.is_empty(),
            Piece::Part(part) => part.function_response.is_some() || part.is_media(),
        };
        self.parts().any(|part| part.function_response.is_some()) && self.pieces().iter().all(belongs)
    }

    /// Whether the CLI added it in the user's name: `<session_context>` begins a session (date, system and directories), and
    /// `<hook_context>` is what a hook put in front of the prompt.
    pub fn is_context(&self) -> bool {
        let mut said = self.pieces().iter().filter_map(|piece| piece.spoken()).map(str::trim_start);
        let first = said.find(|text| !text.is_empty()).unwrap_or_default();
        ["<session_context>", "<hook_context>"].iter().any(|tag| first.starts_with(tag))
    }
}

impl<'a> Piece<'a> {
    /// The part, if this is one.
    pub fn part(&self) -> Option<&Part<'a>> {
        match self {
            Piece::Part(part) => Some(part),
            Piece::Text(_) => None,
        }
    }

    /// The text of a string or of a part that is no thought.
    fn spoken(&self) -> Option<&str> {
        match self {
            Piece::Text(text) => Some(text),
            Piece::Part(part) if part.is_thought() => None,
            Piece::Part(part) => part.text.as_deref(),
        }
    }
}

impl Part<'_> {
    /// Whether this is a thought.
    pub fn is_thought(&self) -> bool {
        self.thought == Some(true)
    }

    /// Whether this is an image, a document or the like.
    pub fn is_media(&self) -> bool {
        self.inline_data.is_some() || self.file_data.is_some()
    }
}

fn joined<'t>(mut texts: impl Iterator<Item = &'t str>) -> Cow<'t, str> {
    let mut all = Cow::Borrowed(texts.next().unwrap_or_default());
    for text in texts {
        all += text;
    }
    all
}

/// Reads a string as one thing and an object as another.
struct PieceVisitor;

impl<'de> Visitor<'de> for PieceVisitor {
    type Value = Piece<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a part")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Piece<'de>, E> {
        Ok(Piece::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Piece<'de>, E> {
        Ok(Piece::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Piece<'de>, A::Error> {
        Part::read(map).map(|part| Piece::Part(Box::new(part)))
    }
}

impl<'de: 'a, 'a> Decode<'de> for Piece<'a> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PieceVisitor)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        let word = || Decode::lenient(text).map(Piece::Text);
        Decode::lenient(text).map(|part| Piece::Part(Box::new(part))).or_else(word)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a part or a list of them")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Content<'de>, E> {
        PieceVisitor.visit_borrowed_str(text).map(Content::One)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<'de>, E> {
        PieceVisitor.visit_str(text).map(Content::One)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content<'de>, A::Error> {
        PieceVisitor.visit_map(map).map(Content::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Content<'de>, A::Error> {
        Decode::decode(SeqAccessDeserializer::new(seq)).map(Content::Many)
    }
}

impl<'de: 'a, 'a> Decode<'de> for Content<'a> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        let one = || Decode::lenient(text).map(Content::One);
        Decode::lenient(text).map(Content::Many).or_else(one)
    }
}

impl IntoOwned for Piece<'_> {
    type Owned = Piece<'static>;
    fn into_owned(self) -> Piece<'static> {
        match self {
            Piece::Text(text) => Piece::Text(IntoOwned::into_owned(text)),
            Piece::Part(part) => Piece::Part(IntoOwned::into_owned(part)),
        }
    }
}

impl IntoOwned for Content<'_> {
    type Owned = Content<'static>;
    fn into_owned(self) -> Content<'static> {
        match self {
            Content::One(piece) => Content::One(IntoOwned::into_owned(piece)),
            Content::Many(pieces) => Content::Many(IntoOwned::into_owned(pieces)),
        }
    }
}
