//! The one set of events that every transport gives.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::outcome::{Change, Outcome};
use crate::time::Timestamp;
use crate::tool::Class;
use crate::usage::Usage;

/// One thing that happened in a run, in the order in which it became known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// From 0, without gaps.
    pub seq: u64,
    /// When: the CLI's own time where it gave one, otherwise when Alhena saw it.
    pub at: Timestamp,
    /// Who says so.
    pub source: Source,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// The CLI's output stream said it.
    Stream,
    /// The CLI's session file says it.
    Session,
    /// The CLI's telemetry says it.
    Telemetry,
    /// Alhena worked it out.
    Derived,
}

/// What can happen in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The CLI began its session; once, from the stream's `init`.
    Started {
        /// The session's id.
        session_id: String,
        /// The model asked for: often the alias `auto`, and not the model that answers.
        model: String,
    },
    /// The prompt as the CLI sent it, from the stream's user message.
    Prompt {
        /// All of it, standard input and hook context included.
        text: String,
    },
    /// A piece of the model's answer, from the stream, as it arrives.
    Text {
        /// The piece.
        delta: String,
    },
    /// A thought of the model; only the session file has them.
    Thinking {
        /// Its heading.
        subject: String,
        /// What it says.
        text: String,
    },
    /// The model asked for a tool; before it runs.
    ToolCall {
        /// Ties the result to the call. Opaque.
        id: String,
        /// The CLI's name of the tool.
        name: String,
        /// What kind of tool it is.
        class: Class,
        /// What Claude calls it, or the same name where it has no such tool.
        claude_name: String,
        /// The arguments as the model gave them.
        input: Box<Value>,
    },
    /// A tool ended; the stream gives all of one turn together.
    ToolResult {
        /// The call's id.
        id: String,
        /// The tool's name; empty when the call was never seen.
        name: String,
        /// False when the CLI says error, and when a command is known to have failed or been cancelled.
        ok: bool,
        /// What it printed: from the stream only what the CLI displays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<ToolError>>,
        /// The exit code of a shell command, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Whether it was cancelled, where known; the stream calls that a success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cancelled: Option<bool>,
    },
    /// A file changed; derived from a tool's result or from the disk.
    FileChange(FileChange),
    /// A shell command ended; derived from its tool result.
    Command {
        /// The call's id.
        call_id: String,
        /// The command line.
        command: String,
        /// What it printed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Its exit code, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// Tokens that one call of a model used. All of these together are the usage of the outcome.
    Usage(CallUsage),
    /// Something to know that is no failure: from the CLI, or derived.
    Warning {
        /// For people.
        message: String,
    },
    /// The CLI reported an error; the run cannot be a success any more.
    Error {
        /// For people.
        message: String,
    },
    /// A line that is no JSON object of the stream; kept out, and counted.
    Malformed {
        /// Its beginning, safe to print.
        sample: String,
        /// Its size.
        bytes: u64,
    },
    /// A line of a kind that Alhena does not know; nothing of it is lost.
    Unknown {
        /// The line.
        raw: Value,
    },
    /// The run is over; the last event, once.
    Finished {
        /// How it ended.
        outcome: Arc<Outcome>,
    },
    /// The agent asks for a permission, and its turn waits for the answer. Only a server emits it.
    Permission {
        /// The question.
        permission: Box<PermissionRequest>,
    },
    /// A permission was decided, or its question was withdrawn. Only a server emits it.
    PermissionResolved {
        /// The id of the question.
        id: String,
        /// The decision.
        decision: Resolution,
        /// The reason, where one was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A turn of a conversation ended. Only a server emits it.
    TurnFinished {
        /// How the turn ended.
        outcome: Arc<Outcome>,
    },
    /// A conversation ended; its last event. Only a server emits it.
    Closed {
        /// Things to know that are no failure.
        #[serde(default)]
        warnings: Vec<String>,
        /// Why it ended, unless somebody closed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Box<Failure>>,
    },
}

/// A question of an agent that waits for a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Permission"))]
pub struct PermissionRequest {
    /// Its id in the conversation.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The agent's own title of the call, for people.
    pub title: String,
    /// The command that would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// True if the command would run in the background.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// The other folder in which the command would run, in the agent's own words; "always" is then not remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// The change that would be made, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The file that would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The arguments of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// When the agent asked.
    pub asked_at: Timestamp,
}

/// How a question of an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resolution {
    /// Allowed once.
    Allow,
    /// Allowed, and the same again in this conversation.
    Always,
    /// Rejected.
    Reject,
    /// Not answered: its time, its turn, or its conversation was over.
    Withdrawn,
}

/// Tokens of one call of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallUsage {
    /// The number of the call in the run, from 1. Absent from one last event with the tokens that no source attributes to a
    /// single call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// What it used.
    #[serde(flatten)]
    pub usage: Usage,
}

/// One change of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// As the tool or the scan named it.
    pub path: String,
    /// What became of it.
    pub change: Change,
    /// The tool that says so; none when only the disk does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The call that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The change as a unified diff, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Whether the disk agrees.
    pub verified: bool,
}

/// Why a tool failed, in the CLI's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolError {
    /// The CLI's name of the failure, such as `tool_not_registered`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub message: String,
}
