//! Claude-shaped messages, and the hosts that are made of them: when the run is over, or while it goes on.
//!
//! The session file has the whole conversation, so the messages of a run are those of its session: the same that anybody
//! gets who reads the session later. Without the file they are what the run itself learned.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use alhena_hosts::agent_cli_sdk::{self, unified};
use alhena_hosts::streamed::Streamed;
use alhena_model::answer::last_structure;
use alhena_model::message::{Message, in_claude_order};
use alhena_model::options::Transport;
use alhena_model::{Conversation, Include};
use alhena_model::{Event, EventKind, Outcome};
use alhena_wire::session::Session;
use serde_json::{Value, json};

use super::{Target, View};
use crate::command_error::complain_of;

/// Whose messages and result.
#[derive(Clone, Copy)]
pub enum Shape {
    /// Messages in Claude's own order, and the outcome.
    Claude,
    /// agent-cli-sdk's: its `UnifiedMessage` and `ExecuteResult`.
    AgentCliSdk,
}

impl Shape {
    fn messages(self, messages: Vec<Message<'_>>) -> serde_json::Result<Vec<Value>> {
        match self {
            Shape::Claude => in_claude_order(messages).iter().map(serde_json::to_value).collect(),
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

/// The conversation of a run, however it was learned.
#[derive(Default)]
struct RunConversation {
    sessions: Vec<PathBuf>,
    said: Conversation<'static>,
    began: Option<i64>,
}

impl RunConversation {
    fn event(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::Started { .. }) {
            self.began = Some(event.at.as_millis());
        }
    }

    /// The messages, when the run is over.
    fn with_messages<R>(
        &mut self,
        take: impl FnOnce(Vec<Message<'_>>) -> serde_json::Result<R>,
    ) -> io::Result<R> {
        let since = self.began.unwrap_or(0) - 2000;
        for path in &self.sessions {
            let bytes = std::fs::read(path)?;
            let session = Session::read(&bytes);
            let mut said = Conversation::of_log(&session.log, Include::Said);
            said.complete_calls(&self.said);
            let mut messages = said.into_messages();
            // A resumed session begins with what was said before.
            messages.retain(|message| message.timestamp.is_none_or(|at| at >= since));
            if !messages.is_empty() {
                return Ok(take(messages)?);
            }
        }
        Ok(take(std::mem::take(&mut self.said).into_messages())?)
    }
}

/// All of them, when the run is over.
pub struct Messages {
    target: Target,
    shape: Shape,
    said: RunConversation,
}

impl Messages {
    pub fn new(target: Target, shape: Shape) -> Self {
        Self { target, shape, said: RunConversation::default() }
    }
}

impl View for Messages {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.said.event(event);
        Ok(())
    }

    fn conversation(&mut self, said: Conversation<'static>) {
        self.said.said = said;
    }

    fn sessions(&mut self, paths: &[PathBuf]) {
        self.said.sessions = paths.to_vec();
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        match self.shape {
            Shape::Claude => {
                let messages = self.said.with_messages(|all| serde_json::to_value(in_claude_order(all)))?;
                self.target.pretty(&messages)?;
            }
            Shape::AgentCliSdk => {
                let messages = self.said.with_messages(|all| self.shape.messages(all))?;
                self.target.line(&agent_cli_sdk::view(outcome, Value::Array(messages)))?;
            }
        }
        self.target.out.flush()?;
        // An array of messages has no place for the failure.
        if let (Shape::Claude, Some(failure)) = (self.shape, &outcome.failure) {
            complain_of(failure);
        }
        Ok(())
    }
}

/// One JSON object a line while the run goes on, for packages in other languages.
///
/// Each event comes with the message that it added to, as far as that has grown. At the end come the messages that turned out
/// otherwise, and then the result, whose messages are the last ones of each `id`.
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
}

impl View for MessageLines {
    fn transport(&mut self, transport: Transport) {
        self.streamed.transport(transport);
    }

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
        self.target.line(&line)
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.target.out.flush()
    }

    fn conversation(&mut self, said: Conversation<'static>) {
        self.said.said = said;
    }

    fn sessions(&mut self, paths: &[PathBuf]) {
        self.said.sessions = paths.to_vec();
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
                self.target.line(&json!({ "type": "message", "message": message }))?;
            }
        }
        let messages = Value::Array(messages);
        let result = match self.shape {
            Shape::Claude => json!({ "type": "result", "outcome": outcome, "messages": messages }),
            Shape::AgentCliSdk => {
                let found = last_structure(outcome.text.last());
                let result = agent_cli_sdk::view(outcome, messages);
                json!({ "type": "result", "result": result, "json": found })
            }
        };
        self.target.line(&result)?;
        self.target.out.flush()
    }
}
