//! Messages while the run goes on, one JSON object a line, for packages in other languages.
//!
//! Each event comes with the message that it added to, as far as that has grown. At the end come the messages that turned out
//! otherwise, and then the result, whose messages are the last ones of each `id`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use alhena_hosts::agent_cli_sdk::{self, Data, unified};
use alhena_hosts::streamed::Streamed;
use alhena_model::answer::last_structure;
use alhena_model::message::{Message, in_claude_order};
use alhena_model::{Conversation, Event, EventKind, Outcome};
use serde_json::{Value, json};

use super::messages::RunConversation;
use super::{Target, View};

/// Whose messages and result.
#[derive(Clone, Copy)]
pub enum Shape {
    /// Alhena's: messages in Claude's own order, and the outcome.
    Own,
    /// agent-cli-sdk's: its `UnifiedMessage` and `ExecuteResult`.
    AgentCliSdk,
}

impl Shape {
    fn messages(self, messages: Vec<Message<'_>>) -> serde_json::Result<Vec<Value>> {
        match self {
            Shape::Own => in_claude_order(messages).iter().map(serde_json::to_value).collect(),
            Shape::AgentCliSdk => messages.iter().map(unified).collect(),
        }
    }

    /// The message that an event added to: the results of an answer are a message of their own in Claude's order.
    fn changed(self, event: &EventKind, message: Message<'_>) -> serde_json::Result<Option<Value>> {
        let of_result = matches!(event, EventKind::ToolResult { .. } | EventKind::FileChange(_));
        let messages = self.messages(vec![message])?;
        Ok(if of_result { messages.into_iter().last() } else { messages.into_iter().next() })
    }
}

pub struct MessageLines {
    target: Target,
    shape: Shape,
    said: RunConversation,
    streamed: Streamed,
    /// What was told last of each message.
    told: HashMap<String, Value>,
}

impl MessageLines {
    pub fn new(target: Target, shape: Shape) -> Self {
        let (said, streamed) = (RunConversation::default(), Streamed::default());
        Self { target, shape, said, streamed, told: HashMap::new() }
    }

    fn line(&mut self, line: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.target.out, line)?;
        self.target.out.write_all(b"\n")
    }
}

impl View for MessageLines {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.said.event(event);
        // The result says it all.
        if matches!(event.kind, EventKind::Finished { .. }) {
            return Ok(());
        }
        let mut line = json!({ "type": "event", "event": event });
        let message = self.streamed.event(event).map(|message| self.shape.changed(&event.kind, message));
        if let Some(told) = message.transpose()?.flatten() {
            if let Some(line) = line.as_object_mut() {
                line.insert("message".to_owned(), told.clone());
            }
            let id = told.get("id").and_then(Value::as_str).unwrap_or_default();
            self.told.insert(id.to_owned(), told);
        }
        self.line(&line)
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.target.out.flush()
    }

    fn conversation(&mut self, said: Conversation<'static>) {
        self.said.conversation(said);
    }

    fn sessions(&mut self, paths: &[PathBuf]) {
        self.said.sessions(paths);
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        let (shape, streamed) = (self.shape, &self.streamed);
        let messages: Vec<Value> = self.said.with_messages(|mut messages| {
            streamed.name(&mut messages);
            shape.messages(messages)
        })?;
        for message in &messages {
            let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
            if self.told.get(id) != Some(message) {
                self.line(&json!({ "type": "message", "message": message }))?;
            }
        }
        let messages = Value::Array(messages);
        let result = match self.shape {
            Shape::Own => json!({ "type": "result", "outcome": outcome, "messages": messages }),
            Shape::AgentCliSdk => {
                let found = last_structure(outcome.text.last());
                let result = agent_cli_sdk::view(outcome, messages, Data::Text);
                json!({ "type": "result", "result": result, "json": found })
            }
        };
        self.line(&result)?;
        self.target.out.flush()
    }
}
