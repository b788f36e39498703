//! The Agent Client Protocol, version 1: JSON-RPC on lines, in both directions.
//!
//! The types are those of the protocol's own crate. What they cannot take is kept as it came: an update of a kind that nobody
//! knows yet is [`Update::Unknown`]. What Gemini CLI does in its own way is in [`gemini`].

pub mod gemini;
pub mod say;

use agent_client_protocol_schema::v1::{
    ContentBlock, RequestPermissionRequest, SessionUpdate, ToolCallContent, ToolCallLocation,
    ToolCallStatus as CallStatus,
};
pub use agent_client_protocol_schema::v1::{PermissionOptionKind, ToolKind};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::rpc::{Id, Message};

/// What an agent says, by what has to be done about it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // Most fields say all.
pub enum AgentMessage {
    /// Something happened in a session.
    Update {
        session: String,
        update: Update,
        /// The tokens of the answer that ends with it, where the agent tells them on the way.
        spent: Option<Spent>,
    },
    /// It wants to be allowed something, and waits.
    Asks {
        id: Id,
        session: String,
        call: Box<Call>,
        /// The answers that it takes.
        options: Vec<Choice>,
    },
    /// It wants something else that a client may offer, a file for example.
    Wants { id: Id, method: String },
    /// The answer to a request of ours.
    Answer { id: Id, outcome: Result<Value, Refusal> },
    /// A message that is none of these.
    Other(Value),
}

/// What happened in a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The model says something.
    Text(String),
    /// The model thinks something.
    Thought(String),
    /// A tool call, or what became of it.
    Call(Box<Call>),
    /// Something that the protocol knows and that is no part of a conversation: commands, modes, what the user said.
    Aside,
    /// What nobody knows, whole.
    Unknown(Value),
}

/// What is told of a tool call at one time. The first word of it may be any: an announcement, a question, its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The name of the tool, where the agent gives it.
    pub name: Option<String>,
    /// What people are shown.
    pub title: Option<String>,
    /// The kind of tool.
    pub kind: Option<ToolKind>,
    /// How far it is.
    pub status: Status,
    /// Texts that came with it.
    pub texts: Vec<String>,
    /// The change that it makes.
    pub diffs: Vec<FileDiff>,
    /// Files that it is about.
    pub paths: Vec<String>,
    /// Its arguments, where the agent gives them.
    pub input: Option<Value>,
    /// What came of it, where the agent gives it.
    pub output: Option<Value>,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// It has not ended.
    #[default]
    Open,
    /// It did what it should.
    Completed,
    /// It did not.
    Failed,
}

/// The tokens of one answer of the model. The protocol has no place for them; agents put them beside a piece of text
/// (Qwen Code 0.24.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spent {
    /// Of the prompt.
    pub input_tokens: u64,
    /// Of the answer.
    pub output_tokens: u64,
    /// Of the prompt, from a cache.
    pub cached_read_tokens: u64,
    /// Of thoughts.
    pub thought_tokens: u64,
    /// All of them.
    pub total_tokens: u64,
}

/// How a command ended, as some agents tell it beside its text (Qwen Code 0.24.4).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ran {
    /// What it printed.
    pub output: String,
    /// Its exit code; none when a signal ended it.
    pub exit_code: Option<i32>,
}

/// A file before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The file.
    pub path: String,
    /// What it held; nothing when it is new.
    pub before: String,
    /// What it is to hold.
    pub after: String,
}

/// An answer to a question that the agent takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its id.
    pub id: String,
    /// What it means.
    pub kind: PermissionOptionKind,
}

/// An error that answers a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// Its number: of JSON-RPC, or what the agent puts there.
    pub code: i64,
    /// In words.
    pub message: String,
    /// More about it.
    pub data: Value,
}

impl AgentMessage {
    /// What a message says. None is refused: what cannot be read is [`AgentMessage::Other`].
    pub fn of(message: &Message) -> Self {
        match message {
            Message::Notification { method, params } if method == "session/update" => update(params),
            Message::Request { id, method, params } if method == "session/request_permission" => {
                asks(id, params).unwrap_or_else(|| wants(id, method))
            }
            Message::Request { id, method, .. } => wants(id, method),
            Message::Notification { method, params } => {
                Self::Other(serde_json::json!({"method": method, "params": params}))
            }
            Message::Answer { id, outcome } => {
                let outcome = outcome.clone().map_err(|error| Refusal::read(&error));
                Self::Answer { id: id.clone(), outcome }
            }
        }
    }
}

impl Refusal {
    fn read(error: &Value) -> Self {
        Self::deserialize(error).unwrap_or_else(|_| Self { message: error.to_string(), ..Self::default() })
    }
}

fn wants(id: &Id, method: &str) -> AgentMessage {
    AgentMessage::Wants { id: id.clone(), method: method.to_owned() }
}

fn update(params: &Value) -> AgentMessage {
    let Some(raw) = params.get("update") else { return AgentMessage::Other(params.clone()) };
    let session = params.get("sessionId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let spent = raw.pointer("/_meta/usage").and_then(|usage| Spent::deserialize(usage).ok());
    let update = SessionUpdate::deserialize(raw).map_or_else(|_| Update::Unknown(raw.clone()), Update::from);
    AgentMessage::Update { session, update, spent }
}

impl From<SessionUpdate> for Update {
    fn from(update: SessionUpdate) -> Self {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => text(chunk.content).map_or(Self::Aside, Self::Text),
            SessionUpdate::AgentThoughtChunk(chunk) => text(chunk.content).map_or(Self::Aside, Self::Thought),
            SessionUpdate::ToolCall(call) => Self::Call(Box::new(
                Call {
                    id: call.tool_call_id.to_string(),
                    name: call.name.or_else(|| name(call.meta.as_ref())),
                    title: Some(call.title),
                    kind: Some(call.kind),
                    status: Status::from(Some(call.status)),
                    paths: paths(call.locations),
                    input: call.raw_input,
                    output: call.raw_output,
                    ..Call::default()
                }
                .with(call.content),
            )),
            SessionUpdate::ToolCallUpdate(update) => Self::Call(Box::new(Call::from(update))),
            _ => Self::Aside,
        }
    }
}

impl From<agent_client_protocol_schema::v1::ToolCallUpdate> for Call {
    fn from(update: agent_client_protocol_schema::v1::ToolCallUpdate) -> Self {
        let fields = update.fields;
        Self {
            id: update.tool_call_id.to_string(),
            name: fields.name.or_else(|| name(update.meta.as_ref())),
            title: fields.title,
            kind: fields.kind,
            status: Status::from(fields.status),
            paths: paths(fields.locations.unwrap_or_default()),
            input: fields.raw_input,
            output: fields.raw_output,
            ..Self::default()
        }
        .with(fields.content.unwrap_or_default())
    }
}

impl From<Option<CallStatus>> for Status {
    fn from(status: Option<CallStatus>) -> Self {
        match status {
            Some(CallStatus::Completed) => Self::Completed,
            Some(CallStatus::Failed) => Self::Failed,
            _ => Self::Open,
        }
    }
}

impl Call {
    fn with(mut self, content: Vec<ToolCallContent>) -> Self {
        for piece in content {
            match piece {
                ToolCallContent::Content(content) => self.texts.extend(text(content.content)),
                ToolCallContent::Diff(diff) => self.diffs.push(FileDiff {
                    path: diff.path.to_string_lossy().into_owned(),
                    before: diff.old_text.unwrap_or_default(),
                    after: diff.new_text,
                }),
                _ => {}
            }
        }
        self
    }

    /// How it ended, where it is a command and the agent tells that beside its text.
    pub fn ran(&self) -> Option<Ran> {
        Ran::deserialize(self.output.as_ref()?).ok()
    }

    /// Its texts as one; none when there are none.
    pub fn text(&self) -> Option<String> {
        (!self.texts.is_empty()).then(|| self.texts.join("\n"))
    }
}

/// The tool's name, from before the protocol had a place for it.
fn name(meta: Option<&Map<String, Value>>) -> Option<String> {
    Some(meta?.get("toolName")?.as_str()?.to_owned())
}

fn paths(locations: Vec<ToolCallLocation>) -> Vec<String> {
    locations.into_iter().map(|location| location.path.to_string_lossy().into_owned()).collect()
}

fn text(content: ContentBlock) -> Option<String> {
    match content {
        ContentBlock::Text(text) => Some(text.text),
        _ => None,
    }
}

fn asks(id: &Id, params: &Value) -> Option<AgentMessage> {
    let request = RequestPermissionRequest::deserialize(params).ok()?;
    let options = request.options.into_iter();
    Some(AgentMessage::Asks {
        id: id.clone(),
        session: request.session_id.to_string(),
        call: Box::new(Call::from(request.tool_call)),
        options: options
            .map(|option| Choice { id: option.option_id.to_string(), kind: option.kind })
            .collect(),
    })
}

/// How a turn ended, as the agent says it in its answer to the prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnEnd {
    /// `end_turn`, `max_tokens`, `max_turn_requests`, `refusal`, `cancelled`, or what a later version says.
    pub reason: String,
    /// What the agent adds in its own way.
    pub meta: Map<String, Value>,
}

impl TurnEnd {
    /// Reads the result of a prompt.
    pub fn read(result: &Value) -> Self {
        let reason = result.get("stopReason").and_then(Value::as_str).unwrap_or_default().to_owned();
        let meta = result.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
        Self { reason, meta }
    }
}
