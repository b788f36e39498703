//! Messages in Claude's shape, for those who already know how to show Claude's.
//!
//! Gemini CLI keeps a tool's result inside the call, thoughts in a list of their own, and much in the user's name that no
//! person wrote: context, hooks, tool responses (0.61.0). A [`Message`] is made from one record, which stays in `_original`. Its
//! blocks are in the order of agent-cli-sdk: `thinking`, then each `tool_use` followed by its `tool_result`, then `text`.
//! [`in_claude_order`] gives the order in which they happened, with tool results in user messages.

use std::borrow::Cow;

use alhena_wire::session::{Log, MessageRecord, MessageType};
use serde::Serialize;
use serde_json::Value;

pub use crate::conversation::Original;
use crate::conversation::{Conversation, entry};

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message<'a> {
    /// The record's id.
    pub id: Cow<'a, str>,
    /// Who speaks (B-16).
    pub role: Role,
    /// What is said.
    pub content: Content<'a>,
    /// When, in milliseconds since 1970 (B-18); null when the record does not say it.
    pub timestamp: Option<i64>,
    /// Always `gemini` (B-19).
    pub tool: ToolName,
    /// The model that answered (B-20).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    /// What the answer cost (B-21).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<MessageUsage>,
    /// The record as it stood (B-22); null for a message of tool results, which are in the record of their calls.
    #[serde(rename = "_original")]
    #[cfg_attr(feature = "schema", schemars(with = "Value"))]
    pub original: Original<'a>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person.
    User,
    /// The model, or the CLI itself.
    Assistant,
}

/// The program that wrote the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Gemini CLI.
    #[default]
    Gemini,
}

/// What a message says: blocks, or a bare string when there are none (B-17).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Content<'a> {
    /// The original string; empty, or white space only.
    Text(Cow<'a, str>),
    /// In the order in which they happened; for agent-cli-sdk thinking, tools, images, text (B-15).
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    /// The blocks; none for a bare string.
    pub fn blocks(&self) -> &[Block<'a>] {
        match self {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        match self {
            Content::Text(text) => text.trim().is_empty(),
            Content::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// A block of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// A thought (B-08).
    Thinking {
        /// `subject: description`.
        thinking: Cow<'a, str>,
    },
    /// A call of a tool (B-09).
    ToolUse {
        /// Ties the result to it.
        id: Cow<'a, str>,
        /// Claude's name of the tool (B-23 to B-29).
        name: Cow<'a, str>,
        /// The arguments as Claude's tool takes them (B-30 to B-36).
        input: Value,
    },
    /// What a tool gave back (B-10).
    ToolResult(ToolResult<'a>),
    /// An image, from a prompt or from a tool.
    Image {
        /// The image itself.
        source: ImageSource<'a>,
    },
    /// Text (B-14).
    Text {
        /// As it was written.
        text: Cow<'a, str>,
    },
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult<'a> {
    /// The call's id.
    pub tool_use_id: Cow<'a, str>,
    /// Its output, or its error, or nothing (B-11).
    pub content: Cow<'a, str>,
    /// Whether it failed: false exactly where the event of the result says `ok`.
    pub is_error: bool,
    /// Whether the CLI itself calls it an error (B-12); a command that failed is none to the CLI. Not in the JSON.
    #[serde(skip)]
    pub reported_error: bool,
    /// The change of a file as a unified diff; with `is_error` or `cancelled` it is what was proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Cow<'a, str>>,
    /// The exit code of a shell command, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True when it was cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub cancelled: bool,
}

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource<'a> {
    /// In the message.
    Base64 {
        /// Such as `image/png`.
        media_type: Cow<'a, str>,
        /// Its bytes.
        data: Cow<'a, str>,
    },
    /// Elsewhere.
    Url {
        /// The address.
        url: Cow<'a, str>,
    },
}

/// What one answer cost (B-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageUsage {
    /// The prompt, cached tokens included.
    pub input_tokens: u64,
    /// The answer, without thoughts.
    pub output_tokens: u64,
    /// All together.
    pub total_tokens: u64,
    /// The part of the prompt that came from the cache, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Thoughts, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
}

/// Puts messages into Claude's own order: thoughts, text and tool calls of an answer, then the results of its calls as a user
/// message. Messages without content are left out.
pub fn in_claude_order(messages: Vec<Message<'_>>) -> Vec<Message<'_>> {
    messages
        .into_iter()
        .flat_map(split_results)
        .flatten()
        .filter(|message| !message.content.is_empty())
        .collect()
}

/// An answer, and the results of its calls.
fn split_results(mut message: Message<'_>) -> [Option<Message<'_>>; 2] {
    let Content::Blocks(blocks) = &mut message.content else { return [Some(message), None] };
    let (mut said, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for block in std::mem::take(blocks) {
        match block {
            Block::ToolUse { .. } => calls.push(block),
            Block::ToolResult(_) => results.push(block),
            // Images of a result follow it.
            Block::Image { .. } if !results.is_empty() => results.push(block),
            Block::Thinking { .. } | Block::Image { .. } | Block::Text { .. } => said.push(block),
        }
    }
    said.append(&mut calls);
    *blocks = said;
    let results = (!results.is_empty()).then(|| Message {
        id: format!("{}-results", message.id).into(),
        role: Role::User,
        content: Content::Blocks(results),
        timestamp: message.timestamp,
        tool: message.tool,
        model: None,
        usage: None,
        original: Original::of_text("null"),
    });
    [Some(message), results]
}

/// Which records become messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// What people and the model said.
    #[default]
    Said,
    /// Every record: context, tool responses in the user's name, notices and errors of the CLI too.
    Everything,
}

/// Whether a record is something that a person or the model said.
pub fn is_said(record: &MessageRecord<'_>) -> bool {
    match &record.kind {
        Some(MessageType::Info | MessageType::Warning | MessageType::Error) => false,
        Some(MessageType::User) => record
            .content
            .as_ref()
            .is_none_or(|content| !content.is_function_response_only() && !content.is_context()),
        Some(MessageType::Gemini | MessageType::Other(_)) | None => true,
    }
}

/// One record as a message, on its own (B-08 to B-36).
pub fn message<'a>(record: MessageRecord<'a>, original: impl Into<Original<'a>>) -> Message<'a> {
    entry(record, original).into()
}

/// A conversation as messages (B-43).
pub fn messages<'a>(log: &'a Log<'_>, include: Include) -> Vec<Message<'a>> {
    Conversation::of_log(log, include).into_messages()
}
