//! Claude-shaped messages, and the hosts that are made of them.
//!
//! The session file has the whole conversation, so the messages of a run are those of its session: the same that anybody
//! gets who reads the session later. Without the file they are made from the events.

use std::io::{self, Write};
use std::path::PathBuf;

use alhena::hosts::agent_cli_sdk::{self, Data};
use alhena::model::{Conversation, Include};
use alhena::wire::Raw;
use alhena::wire::session::{MessageRecord, Session};
use alhena::{Event, EventKind, Outcome};
use serde_json::{Value, json};

use super::{Target, View};

/// What the messages are printed as.
pub enum Shape {
    /// A JSON array.
    Array,
    /// The result of agent-cli-sdk's `execute`.
    ExecuteResult,
}

pub struct Messages {
    target: Target,
    shape: Shape,
    sessions: Vec<PathBuf>,
    stream: FromEvents,
    began: Option<i64>,
}

impl Messages {
    pub fn new(target: Target, shape: Shape) -> Self {
        Self { target, shape, sessions: Vec::new(), stream: FromEvents::default(), began: None }
    }

    fn messages(&mut self) -> io::Result<Value> {
        let since = self.began.unwrap_or(0) - 2000;
        for path in &self.sessions {
            let bytes = std::fs::read(path)?;
            let session = Session::read(&bytes);
            let mut messages = Conversation::of_log(&session.log, Include::Said).into_messages();
            // A resumed session begins with what was said before.
            messages.retain(|message| message.timestamp.is_none_or(|at| at >= since));
            if !messages.is_empty() {
                return Ok(serde_json::to_value(messages)?);
            }
        }
        let records = std::mem::take(&mut self.stream).records();
        let texts: Vec<String> = records.iter().map(Value::to_string).collect();
        let mut conversation = Conversation::new(Include::Said);
        for text in &texts {
            if let (Some(record), Some(raw)) = (MessageRecord::from_text(text), Raw::from_text(text)) {
                conversation.push(record, raw);
            }
        }
        Ok(serde_json::to_value(conversation.into_messages())?)
    }
}

impl View for Messages {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if matches!(event.kind, EventKind::Started { .. }) {
            self.began = Some(event.at.as_millis());
        }
        self.stream.event(event);
        Ok(())
    }

    fn sessions(&mut self, paths: &[PathBuf]) {
        self.sessions = paths.to_vec();
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        let messages = self.messages()?;
        match self.shape {
            Shape::Array => serde_json::to_writer_pretty(&mut self.target.out, &messages)?,
            Shape::ExecuteResult => {
                let result = agent_cli_sdk::view(outcome, messages, Data::Text);
                serde_json::to_writer(&mut self.target.out, &result)?;
            }
        }
        self.target.out.write_all(b"\n")?;
        self.target.out.flush()
    }
}

/// Records as the CLI would have written them, from what the stream says.
#[derive(Default)]
struct FromEvents {
    records: Vec<Value>,
    text: String,
    thoughts: Vec<Value>,
    calls: Vec<Value>,
    at: String,
}

impl FromEvents {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Prompt { text } => {
                let id = format!("stream-{}", self.records.len());
                self.records
                    .push(json!({ "id": id, "timestamp": event.at, "type": "user", "content": text }));
            }
            EventKind::Text { delta } => {
                // Text after results is the next answer.
                if self.calls.iter().any(|call| call.get("status").is_some()) {
                    self.answer();
                }
                self.text.push_str(delta);
                self.at = event.at.to_string();
            }
            EventKind::Thinking { subject, text } => {
                self.thoughts.push(json!({ "subject": subject, "description": text, "timestamp": event.at }));
            }
            EventKind::ToolCall { id, name, input, .. } => {
                if self.calls.iter().any(|call| call.get("status").is_some()) {
                    self.answer();
                }
                self.calls.push(json!({ "id": id, "name": name, "args": input }));
                self.at = event.at.to_string();
            }
            EventKind::ToolResult { id, name, ok, output, error, cancelled, .. } => {
                let Some(call) =
                    self.calls.iter_mut().find(|call| call.get("id").and_then(Value::as_str) == Some(id))
                else {
                    return;
                };
                let status = if *cancelled == Some(true) {
                    "cancelled"
                } else if *ok || error.is_none() {
                    "success"
                } else {
                    "error"
                };
                let response = match error {
                    Some(error) => json!({ "error": error.message }),
                    None => json!({ "output": output.clone().unwrap_or_default() }),
                };
                let result =
                    json!([{ "functionResponse": { "id": id, "name": name, "response": response } }]);
                if let Some(call) = call.as_object_mut() {
                    call.insert("status".to_owned(), json!(status));
                    call.insert("result".to_owned(), result);
                }
            }
            _ => {}
        }
    }

    fn answer(&mut self) {
        if self.text.is_empty() && self.calls.is_empty() && self.thoughts.is_empty() {
            return;
        }
        let mut record = json!({
            "id": format!("stream-{}", self.records.len()),
            "timestamp": std::mem::take(&mut self.at),
            "type": "gemini",
            "content": std::mem::take(&mut self.text),
            "thoughts": std::mem::take(&mut self.thoughts),
        });
        let calls = std::mem::take(&mut self.calls);
        if let (false, Some(record)) = (calls.is_empty(), record.as_object_mut()) {
            record.insert("toolCalls".to_owned(), Value::Array(calls));
        }
        self.records.push(record);
    }

    fn records(mut self) -> Vec<Value> {
        self.answer();
        self.records
    }
}
