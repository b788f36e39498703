//! Claude-shaped messages, and the hosts that are made of them.
//!
//! The session file has the whole conversation, so the messages of a run are those of its session: the same that anybody
//! gets who reads the session later. Without the file they are
//! what the run itself learned.

use std::io::{self, Write};
use std::path::PathBuf;

use alhena::hosts::agent_cli_sdk::{self, Data, unified};
use alhena::model::message::{Message, in_claude_order};
use alhena::model::{Conversation, Include};
use alhena::wire::session::Session;
use alhena::{Event, EventKind, Outcome};
use serde_json::Value;

use super::{Target, View};
use crate::command_error::complain_of;

/// What the messages are printed as.
pub enum Shape {
    /// A JSON array.
    Array,
    /// The result of agent-cli-sdk's `execute`.
    ExecuteResult,
}

/// The conversation of a run, however it was learned.
#[derive(Default)]
pub struct RunConversation {
    sessions: Vec<PathBuf>,
    said: Conversation<'static>,
    began: Option<i64>,
}

impl RunConversation {
    pub fn event(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::Started { .. }) {
            self.began = Some(event.at.as_millis());
        }
    }

    pub fn conversation(&mut self, said: Conversation<'static>) {
        self.said = said;
    }

    pub fn sessions(&mut self, paths: &[PathBuf]) {
        self.sessions = paths.to_vec();
    }

    /// The messages, when the run is over.
    pub fn with_messages<R>(
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
        self.said.conversation(said);
    }

    fn sessions(&mut self, paths: &[PathBuf]) {
        self.said.sessions(paths);
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        match self.shape {
            Shape::Array => {
                let messages = self.said.with_messages(|all| serde_json::to_value(in_claude_order(all)))?;
                serde_json::to_writer_pretty(&mut self.target.out, &messages)?;
            }
            Shape::ExecuteResult => {
                let messages = self.said.with_messages(|all| all.iter().map(unified).collect())?;
                let result = agent_cli_sdk::view(outcome, Value::Array(messages), Data::Text);
                serde_json::to_writer(&mut self.target.out, &result)?;
            }
        }
        self.target.out.write_all(b"\n")?;
        self.target.out.flush()?;
        // An array of messages has no place for the failure.
        if let (Shape::Array, Some(failure)) = (&self.shape, &outcome.failure) {
            complain_of(failure);
        }
        Ok(())
    }
}
