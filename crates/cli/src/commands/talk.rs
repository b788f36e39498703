//! The conversation itself, and how it goes on as another: with another session, or after its agent has ended.

use std::path::{Path, PathBuf};

use alhena::agent::env::Environment;
use alhena::agent::{AcpAgent, Opened};
use alhena::{Approval, Conversation, Gemini, Request, Resume, RunError, Turn};

use crate::output::say;
use crate::style::one_line;

/// Whom it is with.
pub enum Who {
    Gemini(Gemini),
    Other(AcpAgent),
}

impl Who {
    fn converse(&self, request: Request, environment: &Environment) -> Result<Conversation, RunError> {
        match self {
            Who::Gemini(gemini) => gemini.converse_in(request, environment),
            Who::Other(agent) => agent.converse_in(request, environment),
        }
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Who::Gemini(gemini) => write!(f, "Gemini CLI {}", gemini.version),
            Who::Other(agent) => f.write_str(agent.name()),
        }
    }
}

/// A conversation that can begin again.
pub struct Talk {
    who: Who,
    environment: Environment,
    /// What it began with, and what was chosen since.
    request: Request,
    conversation: Conversation,
    dir: PathBuf,
}

impl Talk {
    pub fn begin(who: Who, request: Request, environment: Environment) -> Result<Self, RunError> {
        let dir = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let dir = dir.canonicalize().unwrap_or(dir);
        let conversation = who.converse(request.clone(), &environment)?;
        Ok(Self { who, environment, request, conversation, dir })
    }

    /// Where it works.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn who(&self) -> &Who {
        &self.who
    }

    pub fn model(&self) -> Option<String> {
        self.request.model.clone()
    }

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

    pub fn set_model(&mut self, model: String) -> Result<(), RunError> {
        self.request.model = Some(model.clone());
        self.conversation.set_model(model)
    }

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
        warn(before);
        Ok(())
    }

    /// Ends it, says what is only known then, and gives its session's id.
    pub fn close(self) -> Option<String> {
        let session = self.conversation.session_id();
        warn(self.conversation);
        session
    }
}

/// Ends a conversation, and says what is only known then.
fn warn(conversation: Conversation) {
    for warning in conversation.close_blocking().warnings {
        say(format_args!("warning: {}", one_line(&warning, 2000)));
    }
}
