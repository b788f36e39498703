//! Claude-shaped messages, and the hosts that are made of them.
//!
//! The session file has the whole conversation, so the messages of a run are those of its session: the same that anybody
//! gets who reads the session later. Without the file they are
//! what the run itself learned.

use std::io::{self, Write};
use std::path::PathBuf;

use alhena::hosts::agent_cli_sdk::{self, Data};
use alhena::model::{Conversation, Include};
use alhena::wire::session::Session;
use alhena::{Event, EventKind, Outcome};
use serde_json::Value;

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
    said: Conversation<'static>,
    began: Option<i64>,
}

impl Messages {
    pub fn new(target: Target, shape: Shape) -> Self {
        Self { target, shape, sessions: Vec::new(), said: Conversation::default(), began: None }
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
        Ok(serde_json::to_value(std::mem::take(&mut self.said).into_messages())?)
    }
}

impl View for Messages {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if matches!(event.kind, EventKind::Started { .. }) {
            self.began = Some(event.at.as_millis());
        }
        Ok(())
    }

    fn conversation(&mut self, said: Conversation<'static>) {
        self.said = said;
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
