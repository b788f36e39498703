//! Why a run failed: a kind, a message for people, a hint that says what to do, and the evidence.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::event::ToolError;
use crate::hint::Hint;

/// A failed run's reason. The only failure type that leaves the library for what an agent did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Failure {
    /// What kind of failure it is; the exit code follows from it.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// The CLI's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The status of the API's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// How long the API asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether it is a daily quota that ran out: waiting a minute does not help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub daily_quota: bool,
    /// What was wrong with the last answer that had to fit a schema, each with its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// That answer, cut at 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The last lines of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The error object of the CLI's own `result` or report, word for word, for hosts that quote it. Not in the JSON.
    #[serde(skip)]
    pub reported: Option<ToolError>,
    /// All of standard error as far as it was kept, byte for byte, for hosts that quote it. Not in the JSON.
    #[serde(skip)]
    pub quote: Option<String>,
    /// Whether an `error` event of the CLI is the only reason: without it the run would be a success. For hosts that take the
    /// CLI's own `result` for the verdict. Not in the JSON.
    #[serde(skip)]
    pub by_error_event: bool,
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// There is no Gemini CLI, or none that can be started.
    NotInstalled,
    /// Exit code 41, or the API said 401 or 403, or the key is bad.
    Auth,
    /// Exit code 55: the folder is not trusted.
    Untrusted,
    /// Exit code 42, wrong arguments, or the API said 400.
    Input,
    /// Exit code 52: the settings cannot be used.
    Config,
    /// Exit code 44.
    Sandbox,
    /// Exit code 53: the limit of turns is reached.
    TurnLimit,
    /// Exit code 54: no space left.
    DiskFull,
    /// The API said 429.
    RateLimited,
    /// The tokens, the money or the model calls that it may take are used up.
    Budget,
    /// Any other status of the API, or no connection to it.
    Api,
    /// The model's answer could not be used: empty, blocked, cut off.
    InvalidResponse,
    /// The time was up.
    Timeout,
    /// It fell silent.
    Stalled,
    /// Somebody stopped it.
    Cancelled,
    /// The CLI died, or ended without a result.
    Crashed,
    /// What the CLI wrote makes no sense.
    Protocol,
    /// There is no answer that fits the schema.
    Schema,
}

/// One row of the table of kinds: the exit code of `alhena`, and what to do.
struct Row {
    kind: FailureKind,
    exit: u8,
    hint: &'static str,
}

const TABLE: &[Row] = &[
    row(FailureKind::NotInstalled, 3, "Install it with `alhena install`, or say where it is with `gemini`."),
    row(
        FailureKind::Auth,
        4,
        "Set GEMINI_API_KEY, or sign in once by starting Gemini CLI in a terminal; `alhena doctor` shows what is found.",
    ),
    row(
        FailureKind::Untrusted,
        5,
        "Run with `trust` to run here without the folder's own settings, or `trust`=settings to load them too.",
    ),
    row(FailureKind::Input, 1, "Check the prompt and the options; the message above is the CLI's own."),
    row(FailureKind::Config, 1, "Mend the settings file that the message names; `alhena doctor` checks it."),
    row(
        FailureKind::Sandbox,
        1,
        "Check that the sandbox engine is installed and running, or run with `sandbox`=off.",
    ),
    row(FailureKind::TurnLimit, 7, "Give it more turns with `max_turns`."),
    row(FailureKind::DiskFull, 1, "Free some disk space and run again."),
    row(
        FailureKind::RateLimited,
        6,
        "Wait and run again, or use another model or key; `on_rate_limit` can do both.",
    ),
    row(FailureKind::Budget, 9, "Give it more with `max_tokens`, `max_cost` or `max_calls`."),
    row(FailureKind::Api, 1, "Run again; if it stays, check the network, the proxy and the model's name."),
    row(FailureKind::InvalidResponse, 1, "Run again, or say the prompt in another way."),
    row(FailureKind::Timeout, 124, "Give it more time with `timeout`."),
    row(
        FailureKind::Stalled,
        124,
        "Run again; `stall_timeout` and `first_event_timeout` say how long silence is borne.",
    ),
    row(FailureKind::Cancelled, 130, "It was stopped on purpose."),
    row(
        FailureKind::Crashed,
        1,
        "Run again with `record` to keep everything it wrote; `alhena doctor` may help.",
    ),
    row(
        FailureKind::Protocol,
        1,
        "Keep a recording with `record` and check the CLI's version with `alhena detect`.",
    ),
    row(
        FailureKind::Schema,
        8,
        "Say in the prompt what is wanted, make the schema simpler, or give it more tries with `schema_attempts`.",
    ),
];

const fn row(kind: FailureKind, exit: u8, hint: &'static str) -> Row {
    Row { kind, exit, hint }
}

impl FailureKind {
    /// All kinds, in the order of the table.
    pub fn all() -> impl Iterator<Item = FailureKind> {
        TABLE.iter().map(|row| row.kind)
    }

    /// The exit code of `alhena` for a run that failed in this way.
    pub fn exit_status(self) -> u8 {
        TABLE.iter().find(|row| row.kind == self).map_or(1, |row| row.exit)
    }

    /// What to do about a failure of this kind in general.
    pub fn hint(self) -> &'static str {
        TABLE.iter().find(|row| row.kind == self).map_or("", |row| row.hint)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Hint for Failure {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(self.hint.as_str().into()).filter(|hint: &Cow<'_, str>| !hint.is_empty())
    }
}

impl Failure {
    /// A failure with the general hint of its kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: kind.hint().to_owned(),
            exit_code: None,
            http_status: None,
            retry_after_ms: None,
            daily_quota: false,
            errors: Vec::new(),
            answer: None,
            stderr: None,
            reported: None,
            quote: None,
            by_error_event: false,
        }
    }

    /// The same with a hint of its own.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_hint_and_a_documented_exit_code() {
        let documented = [1, 3, 4, 5, 6, 7, 8, 9, 124, 130];
        for kind in FailureKind::all() {
            assert!(!kind.hint().is_empty(), "{kind:?}");
            assert!(documented.contains(&kind.exit_status()), "{kind:?}");
        }
        assert_eq!(FailureKind::all().count(), 18);
    }
}
