//! The lines, type by type: what each one carries, and which requirement asks for it.

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
    /// When.
    pub at: Timestamp,
    /// Whether Alhena worked it out; absent when the CLI said it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum LineKind {
    /// The session's id, to anchor a conversation to and to resume it by.
    #[serde(rename = "session_anchor")]
    SessionAnchor {
        /// The session.
        session_id: String,
        /// The model that was asked for.
        model: String,
    },
    /// The prompt as the CLI sent it; a trace, not part of the transcript.
    #[serde(rename = "user_message")]
    UserMessage {
        /// All of it.
        text: String,
    },
    /// Text for the transcript: the model's, or what a command printed.
    OutputProduced(Output),
    /// A thought of the model; the stream drops them, the session file has them.
    #[serde(rename = "thinking")]
    Thinking {
        /// Its heading.
        subject: String,
        /// What it says.
        text: String,
    },
    /// The model asked for a tool.
    ToolCallRequested {
        /// Ties the result to the call.
        tool_id: String,
        /// The tool.
        tool_name: String,
        /// What kind of tool it is.
        class: Class,
        /// The command line, when it is a shell command.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// Its arguments.
        arguments: Value,
    },
    /// A tool ended.
    #[serde(rename = "tool_result")]
    ToolResult(ToolResult),
    /// A file changed.
    #[serde(rename = "file_mutation")]
    FileMutation {
        /// The file.
        path: String,
        /// What became of it.
        change: Change,
        /// The call that did it; absent when only the disk says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
        /// Its tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
        /// Whether the disk agrees.
        verified: bool,
    },
    /// A unified diff.
    TurnDiffUpdated {
        /// The file.
        path: String,
        /// The diff.
        diff: String,
        /// The call that did it.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_id: Option<String>,
    },
    /// Something to know that ends nothing.
    #[serde(rename = "trace")]
    Trace {
        /// How bad it is.
        severity: Severity,
        /// For people.
        message: String,
    },
    /// What the turn used, once, before it ends.
    TokenUsageUpdated(TokenUsage),
    /// The turn succeeded; the last line. Derived when the CLI itself did not say so, or did not exit with 0.
    TurnCompleted {
        /// The session, to resume by.
        session_id: Option<String>,
        /// All text of the model.
        text: String,
        /// What it said after its last tool result.
        final_text: String,
        /// The answer, where it had to fit a schema.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
        /// How long it took.
        duration_ms: u64,
        /// How many tools were called.
        tool_calls: u64,
        /// The CLI's own word; absent when it said none.
        #[serde(skip_serializing_if = "Option::is_none")]
        cli_status: Option<Reported>,
        /// The CLI's exit code; absent when it was stopped after its word, or when it is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// The turn did not succeed; the last line. Derived when the CLI itself said something else or nothing.
    TurnFailed {
        /// The session, to resume by.
        session_id: Option<String>,
        /// What kind of failure it is.
        kind: FailureKind,
        /// What happened.
        message: String,
        /// What to do.
        hint: String,
        /// The CLI's own word; absent when it said none.
        #[serde(skip_serializing_if = "Option::is_none")]
        cli_status: Option<Reported>,
        /// The error that the CLI itself named, word for word.
        #[serde(skip_serializing_if = "Option::is_none")]
        cli_error: Option<ToolError>,
        /// The CLI's exit code.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The status of the API's answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        http_status: Option<u16>,
        /// How long the API asked to wait.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// What the model had said until then.
        text: String,
        /// How long it took.
        duration_ms: u64,
    },
}

/// Text for the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Output {
    /// Whose.
    pub stream: OutputStream,
    /// The text.
    pub text: String,
    /// Whether the text is all of it (a command's output) or a piece that follows the one before (the model's).
    pub snapshot: bool,
    /// The call, for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// The command line, for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The command's exit code, where known.
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
    /// The call.
    pub tool_id: String,
    /// The tool; empty when the call was never seen.
    pub tool_name: String,
    /// What kind of tool it is.
    pub class: Class,
    /// How it ended.
    pub status: ToolStatus,
    /// What it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// The exit code of a shell command, where known.
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
    /// The run cannot succeed any more.
    Error,
}

/// Tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUsage {
    /// All models together.
    #[serde(flatten)]
    pub total: TokenCounts,
    /// By model.
    pub models: BTreeMap<String, TokenCounts>,
}

/// The figures of one model or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenCounts {
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Those that came from the cache.
    pub cached_input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of thoughts.
    pub reasoning_tokens: u64,
    /// All together.
    pub total_tokens: u64,
}

impl Line {
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
