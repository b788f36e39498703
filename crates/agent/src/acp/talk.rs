//! The conversation itself, and how it goes on as another: with another session, or after its agent has ended.

use std::path::{Path, PathBuf};

use super::conversation::{Closed, Conversation, Opened, Turn};
use super::other::AcpAgent;
use crate::env::Environment;
use crate::find::Gemini;
use crate::prepare::RunError;
use crate::request::{Approval, ResolvedRequest, Resume};

/// Whom it is with.
#[derive(Clone, Debug)]
pub enum Whom {
    /// Gemini CLI.
    Gemini(Gemini),
    /// Another program that speaks the Agent Client Protocol.
    Other(AcpAgent),
}

impl Whom {
    fn converse(
        &self,
        request: ResolvedRequest,
        environment: &Environment,
    ) -> Result<Conversation, RunError> {
        match self {
            Whom::Gemini(gemini) => gemini.start_conversation(request, environment),
            Whom::Other(agent) => agent.start_conversation(request, environment),
        }
    }
}

impl std::fmt::Display for Whom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whom::Gemini(gemini) => write!(f, "Gemini CLI {}", gemini.version),
            Whom::Other(agent) => f.write_str(agent.name()),
        }
    }
}

/// A conversation that can begin again.
#[derive(Debug)]
pub struct Talk {
    who: Whom,
    environment: Environment,
    /// What it began with, and what was chosen since.
    request: ResolvedRequest,
    conversation: Conversation,
    dir: PathBuf,
    /// What was only known at the end of the conversations before.
    before: Closed,
}

impl Talk {
    /// Begins it; see [`Gemini::start_conversation`].
    pub fn begin(who: Whom, request: ResolvedRequest, environment: Environment) -> Result<Self, RunError> {
        let dir = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let dir = dir.canonicalize().unwrap_or(dir);
        let conversation = who.converse(request.clone(), &environment)?;
        Ok(Self { who, environment, request, conversation, dir, before: Closed::default() })
    }

    /// Where it works.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whom it is with.
    pub fn who(&self) -> &Whom {
        &self.who
    }

    /// The model that was chosen, if any.
    pub fn model(&self) -> Option<String> {
        self.request.model.clone()
    }

    /// What may be done without asking.
    pub fn approval(&self) -> Approval {
        self.request.approval
    }

    /// Waits for its session; see [`Conversation::open`].
    pub fn open(&mut self) -> Result<Turn, RunError> {
        self.conversation.open()
    }

    /// What the agent says of its session, once there is one.
    pub fn opened(&self) -> Option<Opened> {
        self.conversation.opened()
    }

    /// A prompt. An agent that has ended is started again, with the same session.
    pub fn prompt(&mut self, text: &str) -> Result<Turn, RunError> {
        if let Ok(turn) = self.conversation.prompt(text) {
            return Ok(turn);
        }
        // What it said is in the store before anybody looks for it there.
        self.conversation.end_blocking();
        let session = self.conversation.session_id().map(Resume::Id);
        self.begin_again(session.or_else(|| self.request.resume.clone()))?;
        self.conversation.prompt(text)
    }

    /// The model from the next prompt on; see [`Conversation::set_model`].
    pub fn set_model(&mut self, model: String) -> Result<(), RunError> {
        self.request.model = Some(model.clone());
        self.conversation.set_model(model)
    }

    /// What may be done without asking, from now on; see [`Conversation::set_mode`].
    pub fn set_mode(&mut self, mode: Approval) -> Result<(), RunError> {
        let changed = self.conversation.set_mode(mode);
        // An agent that has ended begins again with it; one that may not have it goes on as it was.
        if !matches!(changed, Err(RunError::Usage { .. })) {
            self.request.approval = mode;
        }
        changed
    }

    /// Goes on with another session. If that cannot be, the conversation stays as it is.
    pub fn resume(&mut self, session: Resume) -> Result<(), RunError> {
        let own = self.conversation.session_id();
        // What was said in it so far has to be in the store before it is gone on with.
        if matches!((&session, own), (Resume::Id(id), Some(own)) if own.starts_with(id.as_str())) {
            self.conversation.end_blocking();
        }
        self.begin_again(Some(session))
    }

    fn begin_again(&mut self, session: Option<Resume>) -> Result<(), RunError> {
        let mut request = self.request.clone();
        request.resume = session;
        let next = self.who.converse(request, &self.environment)?;
        let before = std::mem::replace(&mut self.conversation, next);
        self.before.add(before.close_blocking());
        Ok(())
    }

    /// Ends it, and gives its session's id and what is only known then.
    pub fn close(self) -> (Option<String>, Closed) {
        let Self { conversation, mut before, .. } = self;
        let session = conversation.session_id();
        before.add(conversation.close_blocking());
        (session, before)
    }
}
