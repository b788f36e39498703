//! The objects of a session: its metadata, its messages, their tool calls.
//!
//! Everything is optional here. The types upstream promise more, but a session file outlives the release that wrote it, and
//! one field of another type must not cost the message: it counts as absent then. Fields that nothing in Alhena reads are
//! skipped; the record's text has them.

use std::borrow::Cow;

use super::content::{Content, FunctionResponse, Piece};
use super::display::ResultDisplay;
use crate::object::{Decode, strict};
use crate::{Count, Raw};

wire_object! {
    /// What a session says about itself (`ConversationRecord` upstream, without its messages).
    #[derive(Default)]
    pub struct Metadata<'a> {
        /// Upstream: the session's id; a UUID unless the user chose one.
        "sessionId" session_id: Option<Cow<'a, str>>,
        /// Upstream: SHA-256 of the project's path, in hex.
        "projectHash" project_hash: Option<Cow<'a, str>>,
        /// Upstream: when it began, ISO-8601.
        "startTime" start_time: Option<Cow<'a, str>>,
        /// Upstream: when it was last written to, ISO-8601.
        "lastUpdated" last_updated: Option<Cow<'a, str>>,
        /// Upstream: whether a person or a sub-agent leads it (since 0.31).
        "kind" kind: Option<SessionKind<'a>>,
        /// Upstream: one line about it, written by a model (since 0.21).
        "summary" summary: Option<Cow<'a, str>>,
    }
}

wire_word! {
    /// Who leads a session.
    pub enum SessionKind<'a> {
        /// A person or a driver.
        Main = "main",
        /// An agent that another session started.
        Subagent = "subagent",
    }
}

wire_object! {
    /// One message (`MessageRecord` upstream).
    #[derive(Default)]
    pub struct MessageRecord<'a> {
        /// Upstream: its id; always there in a log.
        "id" id: Option<Cow<'a, str>>,
        /// Upstream: when it was first written, ISO-8601.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: what kind of message it is.
        "type" kind: Option<MessageType<'a>>,
        /// Upstream: what it says; a string or parts.
        "content" content: Option<Content<'a>>,
        /// Upstream: the tools that the model called, with their results.
        "toolCalls" tool_calls: Option<Vec<ToolCallRecord<'a>>>,
        /// Upstream: what the model thought.
        "thoughts" thoughts: Option<Vec<Thought<'a>>>,
        /// Upstream: what the answer cost; `null` until it is known.
        "tokens" tokens: Option<Tokens>,
        /// Upstream: the model that answered.
        "model" model: Option<Cow<'a, str>>,
    }
}

wire_word! {
    /// What kind of message a record is.
    pub enum MessageType<'a> {
        /// The prompt; also tool responses and context that the CLI adds in the user's name.
        User = "user",
        /// The model.
        Gemini = "gemini",
        /// A notice of the CLI.
        Info = "info",
        /// An error of the CLI.
        Error = "error",
        /// A warning of the CLI.
        Warning = "warning",
    }
}

wire_object! {
    /// One thought of the model.
    #[derive(Default)]
    pub struct Thought<'a> {
        /// Upstream: its heading.
        "subject" subject: Option<Cow<'a, str>>,
        /// Upstream: the rest.
        "description" description: Option<Cow<'a, str>>,
        /// Upstream: when it was thought, ISO-8601.
        "timestamp" timestamp: Option<Cow<'a, str>>,
    }
}

wire_object! {
    /// The tokens of one answer.
    #[derive(Default)]
    pub struct Tokens {
        /// Upstream: the prompt, cached tokens included.
        "input" input: Option<Count>,
        /// Upstream: the answer, without thoughts.
        "output" output: Option<Count>,
        /// Upstream: the part of the prompt that came from the cache.
        "cached" cached: Option<Count>,
        /// Upstream: thoughts.
        "thoughts" thoughts: Option<Count>,
        /// Upstream: tool use prompts.
        "tool" tool: Option<Count>,
        /// Upstream: all of them.
        "total" total: Option<Count>,
    }
}

wire_object! {
    /// One call of a tool, with its result once there is one.
    #[derive(Default)]
    pub struct ToolCallRecord<'a> {
        /// Upstream: the same id as `tool_id` in the stream.
        "id" id: Option<Cow<'a, str>>,
        /// Upstream: the tool's name as the model wrote it.
        "name" name: Option<Cow<'a, str>>,
        /// Upstream: the model's arguments; not decoded until asked.
        "args" args: Option<Raw<'a>>,
        /// Upstream: what the model was told: parts, with media beside the response; or `null`.
        "result" result: Option<Content<'a>>,
        /// Upstream: how it ended. A shell command that failed is a `success`.
        "status" status: Option<CallStatus<'a>>,
        /// Upstream: the sub-agent that this call started.
        "agentId" agent_id: Option<Cow<'a, str>>,
        /// Upstream: what the terminal shows; the only place of diffs.
        "resultDisplay" result_display: Option<ResultDisplay<'a>>,
    }
}

wire_word! {
    /// How far a tool call has come. Only the first three are written in practice.
    pub enum CallStatus<'a> {
        /// It ran.
        Success = "success",
        /// It failed, or was refused.
        Error = "error",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Its arguments are being checked.
        Validating = "validating",
        /// It waits for its turn.
        Scheduled = "scheduled",
        /// It runs.
        Executing = "executing",
        /// It waits for a person.
        AwaitingApproval = "awaiting_approval",
    }
}

impl<'a> MessageRecord<'a> {
    /// Reads a message from its JSON text. What does not fit its field is left out; only text that is not a JSON
    /// object gives nothing.
    pub fn from_text(text: &'a str) -> Option<Self> {
        strict(text).ok().or_else(|| Self::lenient(text))
    }
}

impl<'a> ToolCallRecord<'a> {
    /// The part of `result` that belongs to this call: its response, and the media behind it.
    ///
    /// When a session is resumed, the CLI (0.44 to 0.61) gives every call of a message the results of all of them, so the
    /// first one is often another call's. A result without a response of this id is returned whole.
    pub fn own_result(&self) -> &[Piece<'a>] {
        let pieces = self.result.as_ref().map(Content::pieces).unwrap_or_default();
        pieces.get(self.own_range(pieces)).unwrap_or(pieces)
    }

    /// Takes that part, and leaves no result.
    pub fn take_own_result(&mut self) -> Vec<Piece<'a>> {
        let mut pieces = match self.result.take() {
            Some(Content::Many(pieces)) => pieces,
            Some(Content::One(piece)) => vec![piece],
            None => Vec::new(),
        };
        let own = self.own_range(&pieces);
        pieces.truncate(own.end);
        pieces.drain(..own.start.min(own.end));
        pieces
    }

    fn own_range(&self, pieces: &[Piece<'a>]) -> std::ops::Range<usize> {
        let response = |piece: &Piece<'a>| piece.part().is_some_and(|part| part.function_response.is_some());
        let Some(start) = pieces.iter().position(|piece| self.is_answered_by(piece)) else {
            return 0..pieces.len();
        };
        let behind = pieces.iter().skip(start + 1).take_while(|piece| !response(piece)).count();
        start..start + 1 + behind
    }

    /// What the model was told about this call.
    pub fn response(&self) -> Option<&FunctionResponse<'a>> {
        self.own_result().iter().filter_map(Piece::part).find_map(|part| part.function_response.as_deref())
    }

    fn is_answered_by(&self, piece: &Piece<'_>) -> bool {
        let response = piece.part().and_then(|part| part.function_response.as_deref());
        self.id.is_some() && response.is_some_and(|response| response.id == self.id)
    }
}
