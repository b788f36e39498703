//! One line of `--output-format stream-json` (since 0.11): the six event types, exactly.
//!
//! The CLI writes `type` as the first key of every line (0.11 to 0.61), so one pass is enough: look at the type, then
//! read the rest as that event, borrowing from the line. A line with its keys in another order is still read, in two
//! passes. The stream is poorer than what happened (C-08): `output` is a display text and is missing for most tools, a
//! cancelled tool and a shell command that failed both say `success`; nothing here pretends otherwise.

use std::borrow::Cow;

use crate::{Count, Named, Raw};

mod parse;
mod text;

pub use parse::{LineError, parse_line};

/// One line of stream-json, borrowed from that line where possible.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent<'a> {
    /// `init`: once, before anything else.
    Init(Init<'a>),
    /// `message`: the prompt once, then one per chunk of the model's text.
    Message(Message<'a>),
    /// `tool_use`: while the model streams, before the tool runs.
    ToolUse(ToolUse<'a>),
    /// `tool_result`: after the whole batch of the turn has finished; not in the order of the calls.
    ToolResult(ToolResult<'a>),
    /// `error`: not terminal.
    Error(ErrorEvent<'a>),
    /// `result`: terminal, at most once; absent when the CLI was stopped or failed before it began.
    Result(ResultEvent<'a>),
    /// An object whose `type` is another, or missing.
    Unknown(Unknown<'a>),
}

wire_object! {
    /// The `init` event.
    pub struct Init<'a> {
        /// Upstream: when the line was written, ISO-8601 in UTC with milliseconds.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: the session's id; on `--resume` that of the resumed session.
        "session_id" session_id: Cow<'a, str>,
        /// Upstream: the model that was asked for, which may be an alias such as `auto`; those really used are the keys of
        /// `result.stats.models`.
        "model" model: Cow<'a, str>,
    }
}

wire_object! {
    /// The `message` event.
    pub struct Message<'a> {
        /// Upstream: when the line was written, ISO-8601 in UTC with milliseconds.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: who speaks.
        "role" role: Role<'a>,
        /// Upstream: the whole prompt (with stdin and hook context), or one chunk of the answer.
        "content" content: Cow<'a, str>,
        /// Upstream: `true` on every chunk of the answer, absent on the prompt.
        "delta" delta: Option<bool>,
    }
}

wire_object! {
    /// The `tool_use` event.
    pub struct ToolUse<'a> {
        /// Upstream: when the line was written, ISO-8601 in UTC with milliseconds.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: the tool's name as the model wrote it; it need not exist.
        "tool_name" tool_name: Cow<'a, str>,
        /// Upstream: ties the call to its result. Its form changed with 0.29 and 0.43: opaque.
        "tool_id" tool_id: Cow<'a, str>,
        /// Upstream: the model's arguments, an object; not decoded until asked.
        "parameters" parameters: Raw<'a>,
    }
}

wire_object! {
    /// The `tool_result` event.
    pub struct ToolResult<'a> {
        /// Upstream: when the line was written, ISO-8601 in UTC with milliseconds.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: the id of the `tool_use` that this answers.
        "tool_id" tool_id: Cow<'a, str>,
        /// Upstream: `success` also for a cancelled tool and for a shell command that failed.
        "status" status: Status<'a>,
        /// Upstream: what the terminal would show, only if that is a text.
        "output" output: Option<Cow<'a, str>>,
        /// Upstream: why the tool failed.
        "error" error: Option<Box<ErrorInfo<'a>>>,
    }
}

wire_object! {
    /// The `error` event. Fatal errors emit none; they end up in `result`, or on stderr alone.
    pub struct ErrorEvent<'a> {
        /// Upstream: when the line was written, ISO-8601 in UTC with milliseconds.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: how bad it is.
        "severity" severity: Severity<'a>,
        /// Upstream: a text for people.
        "message" message: Cow<'a, str>,
    }
}

wire_object! {
    /// The `result` event.
    pub struct ResultEvent<'a> {
        /// Upstream: when the line was written, ISO-8601 in UTC with milliseconds.
        "timestamp" timestamp: Option<Cow<'a, str>>,
        /// Upstream: how the run ended, in the CLI's opinion.
        "status" status: Status<'a>,
        /// Upstream: absent after an invalid model stream although `status` is `error` (0.42 on).
        "error" error: Option<Box<ErrorInfo<'a>>>,
        /// Upstream: sums over this process, not over the session.
        "stats" stats: Option<Box<StreamStats<'a>>>,
    }
}

wire_object! {
    /// The `error` of a `tool_result` or a `result`.
    pub struct ErrorInfo<'a> {
        /// Upstream: a tool error type such as `file_not_found`, a class name such as `FatalTurnLimitedError`, or `unknown`
        /// for every error of the API.
        "type" kind: Option<Cow<'a, str>>,
        /// Upstream: a text for people, often with raw JSON of the API inside.
        "message" message: Cow<'a, str>,
    }
}

wire_object! {
    /// The `stats` of a `result`.
    #[derive(Default)]
    pub struct StreamStats<'a> {
        /// Upstream: all tokens, thoughts included.
        "total_tokens" total_tokens: Option<Count>,
        /// Upstream: tokens of the prompts, cached ones included.
        "input_tokens" input_tokens: Option<Count>,
        /// Upstream: tokens of the answers, without thoughts.
        "output_tokens" output_tokens: Option<Count>,
        /// Upstream: tokens of the prompts that came from the cache (since 0.22).
        "cached" cached: Option<Count>,
        /// Upstream: `input_tokens` minus `cached` (since 0.22).
        "input" input: Option<Count>,
        /// Upstream: wall time of the run; 0 on most failures.
        "duration_ms" duration_ms: Option<Count>,
        /// Upstream: how many tools were called, failed ones included.
        "tool_calls" tool_calls: Option<Count>,
        /// Upstream: the same per model that was really used (since 0.34).
        "models" models: Option<Named<'a, ModelStats>>,
    }
}

wire_object! {
    /// One entry of `stats.models`.
    #[derive(Default)]
    pub struct ModelStats {
        /// Upstream: all tokens, thoughts included.
        "total_tokens" total_tokens: Option<Count>,
        /// Upstream: tokens of the prompts, cached ones included.
        "input_tokens" input_tokens: Option<Count>,
        /// Upstream: tokens of the answers, without thoughts.
        "output_tokens" output_tokens: Option<Count>,
        /// Upstream: tokens of the prompts that came from the cache.
        "cached" cached: Option<Count>,
        /// Upstream: `input_tokens` minus `cached`.
        "input" input: Option<Count>,
    }
}

wire_word! {
    /// Who speaks in a `message`.
    pub enum Role<'a> {
        /// The prompt.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

wire_word! {
    /// How a tool or a run ended.
    pub enum Status<'a> {
        /// In the CLI's opinion it worked.
        Success = "success",
        /// It failed.
        Error = "error",
    }
}

wire_word! {
    /// How bad an `error` event is.
    pub enum Severity<'a> {
        /// The run goes on, or ends as if nothing were wrong.
        Warning = "warning",
        /// The turn is lost.
        Error = "error",
    }
}

/// An object that is none of the six events.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown<'a> {
    /// Upstream: its `type`, if that is a string.
    pub kind: Option<Cow<'a, str>>,
    /// Upstream: the whole object.
    pub raw: Raw<'a>,
}

impl StreamEvent<'_> {
    /// The event's `type`, if it has one.
    pub fn kind(&self) -> Option<&str> {
        Some(match self {
            StreamEvent::Init(_) => "init",
            StreamEvent::Message(_) => "message",
            StreamEvent::ToolUse(_) => "tool_use",
            StreamEvent::ToolResult(_) => "tool_result",
            StreamEvent::Error(_) => "error",
            StreamEvent::Result(_) => "result",
            StreamEvent::Unknown(unknown) => return unknown.kind.as_deref(),
        })
    }

    /// When the line was written, if it says so.
    pub fn timestamp(&self) -> Option<&str> {
        let timestamp = match self {
            StreamEvent::Init(event) => &event.timestamp,
            StreamEvent::Message(event) => &event.timestamp,
            StreamEvent::ToolUse(event) => &event.timestamp,
            StreamEvent::ToolResult(event) => &event.timestamp,
            StreamEvent::Error(event) => &event.timestamp,
            StreamEvent::Result(event) => &event.timestamp,
            StreamEvent::Unknown(_) => return None,
        };
        timestamp.as_deref()
    }

    /// Cuts the tie to the line.
    pub fn into_owned(self) -> StreamEvent<'static> {
        match self {
            StreamEvent::Init(event) => StreamEvent::Init(event.into_owned()),
            StreamEvent::Message(event) => StreamEvent::Message(event.into_owned()),
            StreamEvent::ToolUse(event) => StreamEvent::ToolUse(event.into_owned()),
            StreamEvent::ToolResult(event) => StreamEvent::ToolResult(event.into_owned()),
            StreamEvent::Error(event) => StreamEvent::Error(event.into_owned()),
            StreamEvent::Result(event) => StreamEvent::Result(event.into_owned()),
            StreamEvent::Unknown(unknown) => StreamEvent::Unknown(Unknown {
                kind: unknown.kind.map(|kind| Cow::Owned(kind.into_owned())),
                raw: unknown.raw.into_owned(),
            }),
        }
    }
}
