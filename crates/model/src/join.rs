//! What the CLI wrote beside its stream, and how both are joined.
//!
//! The stream of 0.61.0 drops thoughts, diffs, exit codes, full tool results and thought tokens; the session file, which the
//! CLI writes while it runs, has them all. This table says which source wins:
//!
//! | Field | Source | Otherwise |
//! |---|---|---|
//! | text while it streams | stream | |
//! | text of the outcome after a mid-stream retry | session: the stream repeats what it had said | stream |
//! | thoughts | session | none |
//! | a tool's `output`, `error`, `cancelled` | session: what the model was told | stream: what a person is shown |
//! | a command's `exit_code` | session | stream, when the command printed nothing |
//! | a file's `diff`, created or modified | session | stream (only the experimental loop), the disk |
//! | tokens of the whole run | stream: it counts routers and sub-agents too | session |
//! | thought and tool tokens | session | derived: what the total has left over |
//! | finish reasons | telemetry | none |

use std::collections::HashSet;

use alhena_wire::Count;
use alhena_wire::session::{
    CallStatus, MessageRecord, MessageType, Record, ResultDisplay, ToolCallRecord, parse_record, shell_end,
    shell_output,
};

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::tool::{self, Class};
use crate::usage::Tokens;

/// What the session file says of one tool call that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFact {
    /// All that the model was told.
    pub output: Option<String>,
    /// The error that the model was told.
    pub error: Option<String>,
    /// The exit code of a shell command.
    pub exit_code: Option<i32>,
    /// It was cancelled; the stream calls that a success.
    pub cancelled: bool,
    /// The change of a file, as a unified diff.
    pub diff: Option<String>,
    /// Whether the file is new.
    pub created: Option<bool>,
    /// The whole file before the edit, unless it is large; empty when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The whole file after it, unless it is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Larger files are not carried along.
const LARGEST_STATE: usize = 256 << 10;

/// One thing that the session file says and the stream does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The model thought something.
    Thought {
        /// When.
        at: Option<Timestamp>,
        /// Its heading.
        subject: String,
        /// What it says.
        text: String,
    },
    /// A tool call ended.
    Tool {
        /// Its id.
        id: String,
        /// What is known of it.
        fact: ToolFact,
    },
    /// An answer took these tokens.
    Usage {
        /// The model's message.
        message: String,
        /// The model.
        model: String,
        /// The tokens.
        tokens: Tokens,
    },
    /// The text of an answer, whole.
    Text {
        /// The model's message.
        message: String,
        /// The text.
        text: String,
    },
}

/// Takes the records of a session file one by one and says what each adds. A record is written again and again as its
/// message grows, and all of them again after a resume; every fact is given once.
#[derive(Debug, Default)]
pub struct SessionFacts {
    since: Timestamp,
    seen: HashSet<String>,
}

impl SessionFacts {
    /// Facts of messages from this time on: a resumed session begins with old ones.
    pub fn since(since: Timestamp) -> Self {
        Self { since, seen: HashSet::new() }
    }

    /// One line of the log, without its end. What is no record says nothing.
    pub fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        match parse_record(line) {
            Ok(Record::Message(stored)) => self.message(&stored.decode(), facts),
            Ok(Record::Set(update) | Record::Header(update)) => {
                for stored in update.messages.iter().flatten() {
                    self.message(&stored.decode(), facts);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// One message, as far as it has been written.
    pub fn message(&mut self, message: &MessageRecord<'_>, facts: &mut Vec<Fact>) {
        let at = message.timestamp.as_deref().and_then(Timestamp::parse);
        if message.kind != Some(MessageType::Gemini) || at.is_some_and(|at| at < self.since) {
            return;
        }
        let id = message.id.as_deref().unwrap_or("");
        for (index, thought) in message.thoughts.iter().flatten().enumerate() {
            if self.seen.insert(format!("{id} thought {index}")) {
                let at = thought.timestamp.as_deref().and_then(Timestamp::parse);
                let text =
                    |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().unwrap_or("").to_owned();
                facts.push(Fact::Thought {
                    at,
                    subject: text(&thought.subject),
                    text: text(&thought.description),
                });
            }
        }
        let content = message.content.as_ref().map(|content| content.text().into_owned()).unwrap_or_default();
        if !content.is_empty() && self.seen.insert(format!("{id} text")) {
            facts.push(Fact::Text { message: id.to_owned(), text: content });
        }
        if let Some(tokens) = message.tokens.as_ref().filter(|_| self.seen.insert(format!("{id} tokens"))) {
            let model = message.model.as_deref().unwrap_or("").to_owned();
            facts.push(Fact::Usage { message: id.to_owned(), model, tokens: Tokens::from(tokens) });
        }
        for call in message.tool_calls.iter().flatten() {
            let Some(call_id) = call.id.as_deref() else { continue };
            if has_ended(call) && self.seen.insert(format!("{call_id} call")) {
                facts.push(Fact::Tool { id: call_id.to_owned(), fact: ToolFact::of(call) });
            }
        }
    }
}

fn has_ended(call: &ToolCallRecord<'_>) -> bool {
    matches!(call.status, Some(CallStatus::Success | CallStatus::Error | CallStatus::Cancelled))
}

impl ToolFact {
    /// What a record of a call says.
    pub fn of(call: &ToolCallRecord<'_>) -> Self {
        let response = call.response().and_then(|response| response.response.as_ref());
        let output =
            response.and_then(|response| response.output.as_ref()).map(|text| text.text().into_owned());
        let error =
            response.and_then(|response| response.error.as_ref()).map(|text| text.text().into_owned());
        let is_shell = call.name.as_deref().is_some_and(|name| tool::class(name) == Class::Command);
        let ended = output.as_deref().filter(|_| is_shell).and_then(shell_end);
        // The code is only written when it is not 0.
        let exit_code = ended.map(|end| end.exit_code.unwrap_or(if end.signal.is_some() { 128 } else { 0 }));
        let diff = match &call.result_display {
            Some(ResultDisplay::FileDiff(diff)) => Some(diff),
            _ => None,
        };
        let state = |text: &str| (text.len() <= LARGEST_STATE).then(|| text.to_owned());
        let before = diff.map(|diff| diff.original_content.as_deref().unwrap_or(""));
        // Without what is written around it for the model: the stream does not have that either.
        let output = output.map(|text| if is_shell { shell_output(&text).to_owned() } else { text });
        Self {
            output,
            error,
            exit_code,
            cancelled: call.status == Some(CallStatus::Cancelled),
            created: diff.map(|diff| diff.is_new_file.unwrap_or_else(|| before.unwrap_or("").is_empty())),
            before: before.and_then(state),
            after: diff.and_then(|diff| diff.new_content.as_deref()).and_then(state),
            diff: diff.and_then(|diff| diff.file_diff.as_deref()).map(str::to_owned),
        }
    }
}

impl From<&alhena_wire::session::Tokens> for Tokens {
    fn from(tokens: &alhena_wire::session::Tokens) -> Self {
        let count = |count: Option<Count>| count.map_or(0, Count::get);
        Self {
            prompt: count(tokens.input),
            cached: count(tokens.cached),
            output: count(tokens.output),
            thoughts: count(tokens.thoughts),
            tool: count(tokens.tool),
            total: count(tokens.total),
        }
    }
}
