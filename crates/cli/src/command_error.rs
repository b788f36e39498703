//! The one error of all commands: what is wrong, what to do about it, and the exit code that follows.
//!
//! Commands return it; `main` alone says it and exits.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use alhena_agent::install::InstallError;
use alhena_agent::prices::NoPrices;
use alhena_agent::{NotFound, RunError};
use alhena_model::Hint;
use alhena_session::FindError;
use alhena_terminal::TerminalError;
use serde_json::{Value, json};

use crate::output::{Stream, say, write_json};
use crate::style::{Colours, Paint};

/// How a command ended.
pub type Done = Result<ExitCode, CommandError>;

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub struct CommandError {
    error: Box<dyn Error + Send + Sync>,
    hint: String,
    exit: u8,
    /// What a program is told that asked for JSON, where that is more than a message and a hint.
    told: Option<Value>,
}

impl CommandError {
    /// What was asked makes no sense: 2.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: hint.into(), exit: 2, told: None }
    }

    /// It could not be done: 1.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { exit: 1, ..Self::usage(error, hint) }
    }

    /// The session store could not be read.
    pub fn of_store(error: std::io::Error) -> Self {
        FindError::from(error).into()
    }

    /// The same with another exit code.
    pub fn exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    fn of(error: impl Hint + Send + Sync + 'static, exit: u8) -> Self {
        let hint = error.hint().unwrap_or_default().into_owned();
        Self { error: Box::new(error), hint, exit, told: None }
    }

    /// Says it, and gives its exit code.
    pub fn report(self) -> ExitCode {
        match self.told {
            Some(told) if complains_in_json() => tell(&json!({ "error": told }), &self.error, &self.hint),
            _ => complain(&self.error, &self.hint),
        }
        ExitCode::from(self.exit)
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let exit = error.exit_status();
        Self::of(error, exit)
    }
}

impl From<NoPrices> for CommandError {
    fn from(error: NoPrices) -> Self {
        Self::of(error, 2)
    }
}

impl From<NotFound> for CommandError {
    fn from(error: NotFound) -> Self {
        Self::of(error, alhena_model::FailureKind::NotInstalled.exit_status())
    }
}

impl From<InstallError> for CommandError {
    fn from(error: InstallError) -> Self {
        Self::of(error, 1)
    }
}

impl From<FindError> for CommandError {
    fn from(error: FindError) -> Self {
        let exit = if matches!(error, FindError::Ambiguous(..)) { 2 } else { 1 };
        Self::of(error, exit)
    }
}

impl From<TerminalError> for CommandError {
    fn from(error: TerminalError) -> Self {
        let (exit, told) = (error.exit_status(), json!(error));
        Self { told: Some(told), ..Self::of(error, exit) }
    }
}

/// Whether what goes wrong is said as JSON: for whoever asked for JSON.
static IN_JSON: AtomicBool = AtomicBool::new(false);

/// From now on [`complain`] says everything as JSON.
pub fn complain_in_json() {
    IN_JSON.store(true, Ordering::Relaxed);
}

pub fn complains_in_json() -> bool {
    IN_JSON.load(Ordering::Relaxed)
}

/// Says what went wrong and what to do: as words on stderr, or to whoever asked for JSON on stdout, where the data would
/// have been.
pub fn complain(message: &dyn fmt::Display, hint: &str) {
    match complains_in_json() {
        true => {
            tell(&json!({ "error": { "message": message.to_string(), "hint": hint } }), message, hint);
        }
        false => in_words(message, hint),
    }
}

fn tell(error: &Value, message: &dyn fmt::Display, hint: &str) {
    // Where stdout is what is wrong, words are better than nothing.
    if write_json(|out| writeln!(out, "{error:#}")).is_err() {
        in_words(message, hint);
    }
}

fn in_words(message: &dyn fmt::Display, hint: &str) {
    let colours = Colours::of(Stream::Err);
    say(format_args!("{} {message}", colours.paint(Paint::Red, "error:")));
    if !hint.is_empty() {
        say(format_args!("{} {hint}", colours.paint(Paint::Cyan, "hint:")));
    }
}
