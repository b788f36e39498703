//! What was said and done: the one form that everything else is made of.
//!
//! The reader of session files fills it from records, and the interpreter from the stream and what it learns beside it. An
//! [`Event`](crate::Event) is it as it grows, a [`Message`](crate::Message) is it as Claude would write it: the two are
//! projections, and neither is made from the other. So a scenario comes out the same whichever way it was learned, but for
//! what only one source has (0.61.0):
//!
//! | What | Only in | Elsewhere |
//! |---|---|---|
//! | `started`, warnings, errors of the CLI, `finished` | the stream, or derived from the run | absent |
//! | usage of the whole run | the stream's `result` | per answer in all |
//! | the order among kinds of events: each comes when it becomes known | the run | thoughts, text, each call with its result, usage |
//! | letters without a width, such as those that join emoji | the stream | left out |
//! | the pieces of a text, white space at its end, and what a retry said before | the stream | each answer once |
//! | `type` of a tool's error | the stream | `error`, or `cancelled` |
//! | `verified`, and changes that no tool claims | the disk | `false`, absent |
//! | what an answer cost | the run, which has prices | absent |
//! | files that a prompt names with `@` | the session | the prompt as it was typed |
//! | output of a command that was too long for the model | the stream | its beginning and end |
//! | ids of answers, thoughts, models and tokens per answer, diffs, contents, exit codes | the session, also while it is followed | absent, or derived |
//! | ids of prompts, and images in them | the session | a number |
//! | the record itself, `_original` | the session | a record as the CLI would have written it |

mod bunch;
mod events;
mod growing;
mod messages;
mod needed_parts;
mod original;
mod record;
mod shown;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::events::events;
pub(crate) use self::events::{EndedCall, call, usage_of};
pub(crate) use self::growing::Growing;
pub use self::growing::as_record;
pub use self::needed_parts::{first_record, record as needed_parts_of};
pub use self::original::Original;
pub use self::record::{Conversation, entry};
pub(crate) use self::record::{answers, ended};
pub(crate) use self::shown::{REJECTED, needs_somebody};
use crate::message::{ImageSource, Role};
use crate::time::Timestamp;
use crate::usage::Tokens;

/// What somebody said in one go, with the tools that ran for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The record's id.
    pub id: Cow<'a, str>,
    /// Who speaks.
    pub role: Role,
    /// When.
    pub at: Option<Timestamp>,
    /// The model that answered.
    pub model: Option<Cow<'a, str>>,
    /// What the answer cost.
    pub tokens: Option<EntryTokens>,
    /// What the model thought before.
    pub thoughts: Vec<Thought<'a>>,
    /// What is said.
    pub text: Cow<'a, str>,
    /// The tools that it asks for.
    pub runs: Vec<ToolRun<'a>>,
    /// Images beside the text.
    pub images: Vec<ImageSource<'a>>,
    /// The record as it stood.
    pub original: Original<'a>,
}

/// A thought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thought<'a> {
    /// Its heading; none where thoughts are written as parts of the answer.
    pub subject: Option<Cow<'a, str>>,
    /// What it says.
    pub text: Cow<'a, str>,
}

/// The tokens of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryTokens {
    /// As far as they were told; 0 where not.
    pub count: Tokens,
    /// Whether the cached ones were told.
    pub knows_cached: bool,
    /// Whether the thoughts were told.
    pub knows_thoughts: bool,
}

/// A tool's run: what was asked, and how it ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRun<'a> {
    /// Ties everything about it together.
    pub id: Cow<'a, str>,
    /// The CLI's name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments as the model gave them.
    pub input: Value,
    /// The sub-agent that it started.
    pub agent: Option<Cow<'a, str>>,
    /// How it ended; none while it has not.
    pub end: Option<Box<ToolEnd<'a>>>,
}

/// How a tool's run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolEnd<'a> {
    /// All that the model was told.
    pub output: Option<Cow<'a, str>>,
    /// What a person is shown; only where it comes from the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<Cow<'a, str>>,
    /// The error that the model was told.
    pub error: Option<Cow<'a, str>>,
    /// The CLI's name of the failure; only the stream has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Cow<'a, str>>,
    /// The CLI calls it a failure, and tells no error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// It never ran; the stream calls that a success when the CLI found a command suspicious.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// It was cancelled; the stream calls that a success (C-44).
    pub cancelled: bool,
    /// The exit code of a shell command.
    pub exit_code: Option<i32>,
    /// A signal ended the command, so that it has no exit code.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    /// The change of a file, as a unified diff.
    pub diff: Option<Cow<'a, str>>,
    /// Whether the file is new.
    pub created: Option<bool>,
    /// The whole file before the edit; empty when there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Cow<'a, str>>,
    /// The whole file after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cow<'a, str>>,
    /// Images that came with it.
    #[serde(skip)]
    pub images: Vec<ImageSource<'a>>,
}

impl ToolEnd<'_> {
    /// Whether it did what was asked.
    pub fn is_ok(&self) -> bool {
        let stopped = self.refused || self.cancelled || self.killed;
        !(self.is_error() || stopped || self.exit_code.is_some_and(|code| code != 0))
    }

    /// Whether the CLI calls it an error (B-12); a command that failed is none.
    pub fn is_error(&self) -> bool {
        self.failed || self.error.is_some()
    }
}
