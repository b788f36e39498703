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
//! | finish reasons | recorded responses: the API's own word | telemetry: one word for all filters |
//! | tokens of one call | session; of calls beside the conversation telemetry or recorded responses | none |

use std::borrow::Cow;
use std::collections::HashSet;

use alhena_wire::acp::gemini::is_loop_feedback;
use alhena_wire::session::{CallStatus, MessageRecord, MessageType, Record, ToolCallRecord, parse_record};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::{EntryTokens, ToolEnd, answers, ended};
use crate::time::Timestamp;
use crate::usage::Tokens;

/// What the session file says of one tool call that has ended.
pub type ToolFact = ToolEnd<'static>;

/// Larger files are not carried along.
const LARGEST_STATE: usize = 256 << 10;

/// One thing that the session file says and the stream does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Most fields say all.
pub enum Fact {
    /// The model thought something.
    Thought {
        #[serde(default)]
        message: String,
        at: Option<Timestamp>,
        subject: String,
        text: String,
    },
    /// A tool call ended.
    Tool {
        #[serde(default)]
        message: String,
        id: String,
        fact: Box<ToolFact>,
        /// Which call it was, where the stream does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<Box<Called>>,
    },
    /// The model asked for a tool call: its complete arguments, from the recorded answer. Over ACP it comes before the call begins.
    Call { id: String, call: Box<Called> },
    /// An answer took these tokens.
    Usage { message: String, model: String, tokens: Tokens },
    /// An answer beside the conversation took these tokens: in a sub-agent's own, or one that the CLI asked for itself, as its
    /// router does.
    #[serde(alias = "sub_agent_usage")]
    UsageAside { model: String, tokens: Tokens },
    /// The text of an answer, whole.
    Text { message: String, text: String },
    /// The CLI tells the model that it repeats itself.
    Loop,
}

/// A call as the session file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The tool.
    pub name: String,
    /// Its arguments; none for a call that was turned away.
    pub input: Option<Value>,
}

/// Takes the records of a session file one by one and says what each adds. A record is written again and again as its
/// message grows, and all of them again after a resume; every fact is given once.
#[derive(Debug, Default)]
pub struct SessionFacts {
    since: Timestamp,
    seen: HashSet<String>,
    with_calls: bool,
}

impl SessionFacts {
    /// Facts of messages from this time on: a resumed session begins with old ones.
    pub fn since(since: Timestamp) -> Self {
        Self { since, ..Self::default() }
    }

    /// The same, and which calls they were: of what only the session file says over ACP.
    pub fn with_calls(mut self) -> Self {
        self.with_calls = true;
        self
    }

    /// One line of the log, without its end. What is no record says nothing.
    pub fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        match parse_record(line) {
            Ok(Record::Message(stored)) => self.message(stored.decode(), facts),
            Ok(Record::Set(update) | Record::Header(update)) => {
                for stored in update.messages.iter().flatten() {
                    self.message(stored.decode(), facts);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// One message, as far as it has been written.
    pub fn message(&mut self, message: MessageRecord<'_>, facts: &mut Vec<Fact>) {
        let at = message.timestamp.as_deref().and_then(Timestamp::parse);
        if at.is_some_and(|at| at < self.since) {
            return;
        }
        if self.with_calls && message.kind == Some(MessageType::User) {
            return self.told(message, facts);
        }
        if message.kind != Some(MessageType::Gemini) {
            return;
        }
        let id = message.id.as_deref().unwrap_or("").to_owned();
        let id = id.as_str();
        for (index, thought) in message.thoughts.iter().flatten().enumerate() {
            if self.seen.insert(format!("{id} thought {index}")) {
                let at = thought.timestamp.as_deref().and_then(Timestamp::parse);
                let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or("").to_owned();
                facts.push(Fact::Thought {
                    message: id.to_owned(),
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
            facts.push(Fact::Usage {
                message: id.to_owned(),
                model,
                tokens: EntryTokens::from(tokens).count,
            });
        }
        for mut call in message.tool_calls.into_iter().flatten() {
            let Some(call_id) = call.id.as_deref().map(str::to_owned) else { continue };
            if has_ended(&call) && self.seen.insert(format!("{call_id} call")) {
                let called = self.with_calls.then(|| Box::new(Called::of(&call)));
                let fact = ended(&mut call).into_fact();
                let message = id.to_owned();
                facts.push(Fact::Tool { message, id: call_id, fact: Box::new(fact), call: called });
            }
        }
    }

    /// What the model was told of calls that have no record of their own: unknown tools, and those that were rejected.
    fn told(&mut self, message: MessageRecord<'_>, facts: &mut Vec<Fact>) {
        let id = message.id.as_deref().unwrap_or("").to_owned();
        let text = message.content.as_ref().map(|content| content.text());
        if text.is_some_and(|text| is_loop_feedback(&text)) && self.seen.insert(format!("{id} loop")) {
            facts.push(Fact::Loop);
        }
        for (call_id, name, end) in answers(message) {
            if self.seen.insert(format!("{call_id} call")) {
                let fact = Box::new(end.into_fact());
                let call = Some(Box::new(Called { name, input: None }));
                facts.push(Fact::Tool { message: id.clone(), id: call_id, fact, call });
            }
        }
    }
}

impl Called {
    fn of(call: &ToolCallRecord<'_>) -> Self {
        let name = call.name.as_deref().unwrap_or("").to_owned();
        Self { name, input: call.args.as_ref().and_then(|args| args.decode().ok()) }
    }
}

fn has_ended(call: &ToolCallRecord<'_>) -> bool {
    matches!(call.status, Some(CallStatus::Success | CallStatus::Error | CallStatus::Cancelled))
}

impl ToolEnd<'_> {
    /// As a fact that travels on its own.
    fn into_fact(self) -> ToolFact {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        let state = |text: Option<Cow<'_, str>>| owned(text.filter(|text| text.len() <= LARGEST_STATE));
        ToolEnd {
            output: owned(self.output),
            shown: owned(self.shown),
            error: owned(self.error),
            error_type: owned(self.error_type),
            diff: owned(self.diff),
            before: state(self.before),
            after: state(self.after),
            images: Vec::new(),
            failed: self.failed,
            refused: self.refused,
            cancelled: self.cancelled,
            exit_code: self.exit_code,
            killed: self.killed,
            created: self.created,
        }
    }
}
