//! The lines, type by type: what each one carries, and which requirement asks for it.
//!
//! The description of every field begins with its layer (C-17): `Upstream:` is the CLI's own word, from its stream or its
//! session file, `Derived:` was worked out by Alhena, and `Form:` belongs to the format of the lines. A test compares these
//! words with `derived_fields` of the lines that are written.

use std::collections::BTreeMap;

use alhena_model::tool::Class;
use alhena_model::{Change, FailureKind, Reported, Timestamp, ToolError};
use serde::Serialize;
use serde_json::Value;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Line {
    /// What.
    #[serde(flatten)]
    pub kind: LineKind,
    /// Upstream: when; the time of arrival where the CLI does not say it.
    pub at: Timestamp,
    /// Form: whether Alhena worked out that it happened; absent when the CLI said it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
    /// Form: the fields that Alhena worked out; absent when it is none, or all of them because the whole line is derived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub derived_fields: Vec<&'static str>,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum LineKind {
    /// The session's id, to anchor a conversation to and to resume it by.
    #[serde(rename = "session_anchor")]
    SessionAnchor {
        /// Upstream: the session.
        session_id: String,
        /// Upstream: the model that was asked for.
        model: String,
    },
    /// The prompt as the CLI sent it; a trace, not part of the transcript.
    #[serde(rename = "user_message")]
    UserMessage {
        /// Upstream: all of it.
        text: String,
    },
    /// Text for the transcript: the model's, or what a command printed.
    OutputProduced(Output),
    /// A thought of the model; the stream drops them, the session file has them.
    #[serde(rename = "thinking")]
    Thinking {
        /// Upstream: its heading.
        subject: String,
        /// Upstream: its text.
        text: String,
    },
    /// The model asked for a tool.
    ToolCallRequested {
        /// Upstream: ties the result to the call.
        tool_id: String,
        /// Upstream: the tool.
        tool_name: String,
        /// Derived: the kind of tool, by an exact list of names.
        class: Class,
        /// Derived: the command line, when it is a shell command.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// Upstream: its arguments.
        arguments: Value,
    },
    /// A tool ended.
    #[serde(rename = "tool_result")]
    ToolResult(ToolResult),
    /// A file changed.
    #[serde(rename = "file_mutation")]
    FileMutation {
        /// Derived: the file.
        path: String,
        /// Derived: the change.
        change: Change,
        /// Derived: the call that did it; absent when only the disk says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
        /// Derived: its tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
        /// Derived: whether the disk agrees.
        verified: bool,
    },
    /// A unified diff: the change of a file by a tool, or printed by any tool. Always derived.
    TurnDiffUpdated {
        /// Derived: the file, as the diff or the tool names it.
        path: String,
        /// Derived: the diff of this file.
        diff: String,
        /// Derived: the call that made or printed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
    },
    /// Something to know that ends nothing.
    #[serde(rename = "trace")]
    Trace {
        /// Upstream: how bad it is.
        severity: Severity,
        /// Upstream: a text for people.
        message: String,
    },
    /// What the turn used, once, before it ends.
    TokenUsageUpdated(TokenUsage),
    /// The turn succeeded; the last line. Derived when the CLI itself did not say so, or did not exit with 0. An `error` event
    /// alone does not end a turn (C-09): `failure` says where Alhena counts such a run as failed.
    TurnCompleted {
        /// Upstream: the session, to resume by.
        session_id: Option<String>,
        /// Derived: all text of the model, joined.
        text: String,
        /// Derived: its text after the last tool result.
        final_text: String,
        /// Derived: the answer, where it had to fit a schema.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// Derived: how long it took.
        duration_ms: u64,
        /// Derived: how many tools were called.
        tool_calls: u64,
        /// Upstream: the CLI's own verdict; absent when it gave none.
        #[serde(skip_serializing_if = "Option::is_none")]
        cli_status: Option<Reported>,
        /// Upstream: the CLI's exit code; absent when it was stopped after its verdict, or when it is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Derived: why Alhena counts the run as failed, although the CLI reported success after an `error` event; absent
        /// when both agree.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Verdict>,
    },
    /// The turn did not succeed; the last line. Derived when the CLI itself said something else or nothing.
    TurnFailed {
        /// Upstream: the session, to resume by.
        session_id: Option<String>,
        /// Derived: the kind of failure.
        kind: FailureKind,
        /// Derived: what happened.
        message: String,
        /// Derived: what to do.
        hint: String,
        /// Upstream: the CLI's own verdict; absent when it gave none.
        #[serde(skip_serializing_if = "Option::is_none")]
        cli_status: Option<Reported>,
        /// Upstream: the error that the CLI itself named, word for word.
        #[serde(skip_serializing_if = "Option::is_none")]
        cli_error: Option<ToolError>,
        /// Upstream: the CLI's exit code.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Derived: the status of the API's answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        http_status: Option<u16>,
        /// Derived: how long the API asked to wait.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// Derived: the text of the model until then, joined.
        text: String,
        /// Derived: how long it took.
        duration_ms: u64,
    },
}

/// Alhena's own verdict on a turn that the CLI calls a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Derived: the kind of failure.
    pub kind: FailureKind,
    /// Derived: what happened.
    pub message: String,
    /// Derived: what to do.
    pub hint: String,
}

/// Text for the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Output {
    /// Form: whose.
    pub stream: OutputStream,
    /// Upstream: the text.
    pub text: String,
    /// Form: whether the text is all of it (a command's output) or a piece that follows the one before (the model's).
    pub snapshot: bool,
    /// Upstream: the call, for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// Upstream: the command line, for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Upstream: the command's exit code, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// Whose output it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// The model's text.
    Assistant,
    /// What a shell command printed.
    Command,
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// Upstream: the call.
    pub tool_id: String,
    /// Derived: the tool, by the id of its call; empty when the call was never seen.
    pub tool_name: String,
    /// Derived: the kind of tool, by an exact list of names.
    pub class: Class,
    /// Upstream: how it ended. Derived, and then among `derived_fields`, where the stream calls it a success although the session
    /// file has a failed command or a cancelled call.
    pub status: ToolStatus,
    /// Upstream: its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Upstream: why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Derived: the exit code of a shell command, where its output tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// How a tool ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It worked. The stream says so of cancelled tools too, and only the session file knows better.
    Success,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
}

/// How bad a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The run goes on.
    Warning,
    /// Something went wrong; the run may go on.
    Error,
}

/// Tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// All models together.
    #[serde(flatten)]
    pub total: TokenCounts,
    /// Upstream: by model.
    pub models: BTreeMap<String, TokenCounts>,
}

/// The figures of one model or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenCounts {
    /// Upstream: tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Upstream: those that came from the cache.
    pub cached_input_tokens: u64,
    /// Upstream: tokens of the answer.
    pub output_tokens: u64,
    /// Derived: tokens of thoughts, which is the part of the total that is neither sent nor answer.
    pub reasoning_tokens: u64,
    /// Upstream: all together.
    pub total_tokens: u64,
}

impl LineKind {
    /// The fields that Alhena worked out, of a line that also has others.
    pub(super) fn derived_fields(&self) -> Vec<&'static str> {
        match self {
            LineKind::ToolCallRequested { command, .. } => {
                present([("class", true), ("command", command.is_some())])
            }
            LineKind::ToolResult(result) => {
                let corrected = result.status == ToolStatus::Cancelled
                    || result.error.is_none() && result.status == ToolStatus::Error;
                present([
                    ("tool_name", true),
                    ("class", true),
                    ("status", corrected),
                    ("exit_code", result.exit_code.is_some()),
                ])
            }
            LineKind::TokenUsageUpdated(_) => vec!["reasoning_tokens"],
            LineKind::TurnCompleted { data, failure, .. } => present([
                ("text", true),
                ("final_text", true),
                ("data", data.is_some()),
                ("duration_ms", true),
                ("tool_calls", true),
                ("failure", failure.is_some()),
            ]),
            LineKind::TurnFailed { http_status, retry_after_ms, .. } => present([
                ("kind", true),
                ("message", true),
                ("hint", true),
                ("http_status", http_status.is_some()),
                ("retry_after_ms", retry_after_ms.is_some()),
                ("text", true),
                ("duration_ms", true),
            ]),
            LineKind::SessionAnchor { .. }
            | LineKind::UserMessage { .. }
            | LineKind::OutputProduced(_)
            | LineKind::Thinking { .. }
            | LineKind::FileMutation { .. }
            | LineKind::TurnDiffUpdated { .. }
            | LineKind::Trace { .. } => Vec::new(),
        }
    }

    /// Whether it is the last line, whose `derived` concerns the verdict only.
    fn is_last(&self) -> bool {
        matches!(self, LineKind::TurnCompleted { .. } | LineKind::TurnFailed { .. })
    }
}

fn present<const N: usize>(fields: [(&'static str, bool); N]) -> Vec<&'static str> {
    fields.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

impl Line {
    pub(super) fn new(at: Timestamp, kind: LineKind, derived: bool) -> Self {
        let mixed = !derived || kind.is_last();
        let derived_fields = if mixed { kind.derived_fields() } else { Vec::new() };
        Line { kind, at, derived, derived_fields }
    }

    /// Whether a ticket's run takes it.
    pub fn is_for_tickets(&self) -> bool {
        match self.kind {
            LineKind::OutputProduced(_)
            | LineKind::ToolCallRequested { .. }
            | LineKind::TurnDiffUpdated { .. }
            | LineKind::TokenUsageUpdated(_)
            | LineKind::TurnCompleted { .. }
            | LineKind::TurnFailed { .. } => true,
            LineKind::SessionAnchor { .. }
            | LineKind::UserMessage { .. }
            | LineKind::Thinking { .. }
            | LineKind::ToolResult(_)
            | LineKind::FileMutation { .. }
            | LineKind::Trace { .. } => false,
        }
    }
}
