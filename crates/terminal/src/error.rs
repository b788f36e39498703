//! What can go wrong with a terminal, told apart by kind, each with what to do about it.

use std::borrow::Cow;
use std::fmt;

use alhena_model::{FailureKind, Hint};
use serde::Serialize;

/// The exit code of `alhena` when an agent waits for somebody to answer: not done, and nothing that went wrong.
pub const WAITING: u8 = 10;

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TerminalErrorKind {
    /// The request makes no sense.
    Usage,
    /// There is no such terminal.
    NotFound,
    /// tmux is missing or too old.
    NoTmux,
    /// tmux refused something.
    Tmux,
    /// There is no Gemini CLI.
    NotInstalled,
    /// The CLI asks for a login.
    Auth,
    /// The CLI asks whether the folder is to be trusted.
    Untrusted,
    /// The shell in the pane does not answer.
    Shell,
    /// The CLI ended when it should not have.
    Crashed,
    /// The CLI has ended before.
    Exited,
    /// The agent is busy, or waits for somebody.
    NotReady,
    /// The approval mode, or what an answer allows, is above the limit of whoever uses the terminal.
    AboveLimit,
    /// What was sent did not arrive.
    NotTaken,
    /// There is no answer to read.
    NoAnswer,
    /// The time was up.
    Timeout,
    /// A file could not be read or written.
    Io,
}

impl TerminalErrorKind {
    /// The exit code of `alhena` for it.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Usage | Self::NotFound => 2,
            Self::NotInstalled => FailureKind::NotInstalled.exit_status(),
            Self::Auth => FailureKind::Auth.exit_status(),
            Self::Untrusted => FailureKind::Untrusted.exit_status(),
            Self::Timeout => FailureKind::Timeout.exit_status(),
            Self::NoTmux
            | Self::Tmux
            | Self::Shell
            | Self::Crashed
            | Self::Exited
            | Self::NotReady
            | Self::AboveLimit
            | Self::NotTaken
            | Self::NoAnswer
            | Self::Io => 1,
        }
    }
}

/// Why something could not be done with a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TerminalError {
    /// Which kind of trouble it is.
    pub kind: TerminalErrorKind,
    /// What happened.
    pub message: String,
    /// What to do. May be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The last lines of the screen, where they explain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<String>,
    /// What was changed in a message that was sent before it went wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl TerminalError {
    /// A trouble without a hint.
    #[must_use]
    pub fn new(kind: TerminalErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: String::new(), screen: None, notices: Vec::new() }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds the last lines of a screen that say something.
    #[must_use]
    pub(crate) fn screen(mut self, screen: &str) -> Self {
        const LINES: usize = 15;
        let lines: Vec<&str> = screen.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let tail = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        self.screen = Some(tail.join("\n")).filter(|text| !text.is_empty());
        self
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(TerminalErrorKind::Usage, message).with_hint(hint)
    }

    pub(crate) fn tmux(message: impl fmt::Display) -> Self {
        Self::new(TerminalErrorKind::Tmux, format!("tmux: {message}"))
    }

    pub(crate) fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(TerminalErrorKind::Io, format!("{what}: {error}"))
    }

    /// The exit code of `alhena` for it.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.kind.exit_status()
    }
}

impl fmt::Display for TerminalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.screen {
            Some(screen) => write!(f, "\nThe screen says:\n{screen}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TerminalError {}

impl Hint for TerminalError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(self.hint.as_str().into()).filter(|hint: &Cow<'_, str>| !hint.is_empty())
    }
}

impl From<alhena_agent::RunError> for TerminalError {
    fn from(error: alhena_agent::RunError) -> Self {
        let kind = match &error {
            alhena_agent::RunError::Usage { .. } => TerminalErrorKind::Usage,
            alhena_agent::RunError::Failed(failure) => kind_of(failure.kind),
            _ => TerminalErrorKind::Crashed,
        };
        let hint = error.hint().unwrap_or_default().into_owned();
        Self::new(kind, error.to_string()).with_hint(hint)
    }
}

pub(crate) fn kind_of(kind: FailureKind) -> TerminalErrorKind {
    match kind {
        FailureKind::NotInstalled => TerminalErrorKind::NotInstalled,
        FailureKind::Auth => TerminalErrorKind::Auth,
        FailureKind::Untrusted => TerminalErrorKind::Untrusted,
        FailureKind::Input => TerminalErrorKind::Usage,
        FailureKind::Timeout | FailureKind::Stalled => TerminalErrorKind::Timeout,
        _ => TerminalErrorKind::Crashed,
    }
}
