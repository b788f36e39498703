//! The one error of all commands: what is wrong, what to do about it, and the exit code that follows.
//!
//! Commands return it; `main` alone says it and exits.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use alhena_agent::NotFound;
use alhena_agent::RunError;
use alhena_agent::install::InstallError;
use alhena_agent::prices::NoPrices;
use alhena_model::{Failure, FailureKind, Hint};
use alhena_session::{FindError, Scope};
use alhena_terminal::TerminalError;
use serde_json::{Value, json};

use crate::output::{Stream, say, write_json};
use crate::style::{Colours, Harmless, Paint, with_flags};

/// How a command ended.
pub type Done = Result<ExitCode, CommandError>;

/// Why a command could not do what it was asked.
#[derive(Debug)]
pub struct CommandError {
    error: Box<dyn Error + Send + Sync>,
    hint: String,
    exit: u8,
    /// Whether the message stays as it is: it quotes others, or names settings as they stand in a file.
    quotes: bool,
    /// What a program is told that asked for JSON, where that is more than a message and a hint.
    told: Option<Value>,
}

impl CommandError {
    /// What was asked makes no sense: 2.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: hint.into(), exit: 2, quotes: false, told: None }
    }

    /// It could not be done: 1.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>, hint: impl Into<String>) -> Self {
        Self { exit: 1, ..Self::usage(error, hint) }
    }

    /// The session store could not be read.
    pub fn of_store(error: std::io::Error) -> Self {
        FindError::from(error).into()
    }

    /// The same, with its message as it is.
    pub fn quoting(self) -> Self {
        Self { quotes: true, ..self }
    }

    /// The same with another exit code.
    pub fn exit(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    fn of(error: impl Hint + Send + Sync + 'static, exit: u8) -> Self {
        let hint = error.hint().unwrap_or_default().into_owned();
        Self { error: Box::new(error), hint, exit, quotes: false, told: None }
    }

    /// Says it, and gives its exit code.
    pub fn report(self) -> ExitCode {
        let message = self.error.to_string();
        let words = if self.quotes { message.clone() } else { with_flags(&message) };
        let told = self.told.unwrap_or_else(|| json!({ "message": message, "hint": self.hint }));
        tell(told, &words, &self.hint);
        ExitCode::from(self.exit)
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let exit = error.exit_status();
        let quotes = matches!(&error, RunError::Failed(failure) if quotes(failure));
        Self { quotes, ..Self::of(error, exit) }
    }
}

impl From<NoPrices> for CommandError {
    fn from(error: NoPrices) -> Self {
        Self::of(error, 2)
    }
}

impl From<NotFound> for CommandError {
    fn from(error: NotFound) -> Self {
        Self::of(error, FailureKind::NotInstalled.exit_status())
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
        let hint = match &error {
            FindError::NoneIn(Scope::Folder(_)) => {
                "`alhena sessions list --all` shows those of other folders."
            }
            FindError::Unknown(_) => "`alhena sessions list --all` shows the ids.",
            _ => return Self::of(error, exit),
        };
        Self { hint: hint.to_owned(), ..Self::of(error, exit) }
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
/// have been. JSON names settings by their fields.
pub fn complain(message: &dyn fmt::Display, hint: &str) {
    let message = message.to_string();
    tell(json!({ "message": message, "hint": hint }), &with_flags(&message), hint);
}

/// Says why a run failed.
pub fn complain_of(failure: &Failure) {
    let Failure { message, hint, .. } = failure;
    tell(json!({ "message": message, "hint": hint }), &words_of(failure), hint);
}

/// Says why a run could not be started.
pub fn complain_of_start(error: &RunError) {
    match error {
        RunError::Failed(failure) => complain_of(failure),
        error => complain(&error.to_string(), &error.hint().unwrap_or_default()),
    }
}

/// The message of a failure for a terminal.
pub fn words_of(failure: &Failure) -> String {
    let message = Harmless::default().clean(&failure.message);
    if quotes(failure) { message } else { with_flags(&message) }
}

/// Whether the message is that of the CLI or of the API; only a budget is Alhena's own affair.
fn quotes(failure: &Failure) -> bool {
    failure.kind != FailureKind::Budget
}

fn tell(error: Value, words: &str, hint: &str) {
    // Where stdout is what is wrong, words are better than nothing.
    let told =
        complains_in_json() && write_json(|out| writeln!(out, "{:#}", json!({ "error": error }))).is_ok();
    if !told {
        let colours = Colours::of(Stream::Err);
        say(format_args!("{} {words}", colours.paint(Paint::Red, "error:")));
        if !hint.is_empty() {
            say(format_args!("{} {}", colours.paint(Paint::Cyan, "hint:"), with_flags(hint)));
        }
    }
}
