//! Gemini CLI's own three output formats, made truthful.
//!
//! Hosts parse what the CLI writes, and Gemini CLI 0.61.0 does not always write it: no `result` after a signal, nothing on
//! standard output when a json run fails, exit 0 after an answer that was blocked. Lines that it did write are passed on as
//! they are, byte for byte; what is missing is added at the end, in the CLI's own shapes and with its own names.

mod json;
mod stream_json;
mod text;

use alhena_model::{Failure, FailureKind, Outcome, Status};

pub use json::JsonReport;
pub use stream_json::{StreamJson, line_for};
pub use text::TextOutput;

/// The three formats, as `--output-format` names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The model's text.
    #[default]
    Text,
    /// One object at the end.
    Json,
    /// One object per line, as it happens.
    StreamJson,
}

impl Format {
    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Format::Text),
            "json" => Some(Format::Json),
            "stream-json" => Some(Format::StreamJson),
            _ => None,
        }
    }
}

/// The exit code that the CLI should have ended with: its own where that tells the truth, otherwise the one it has for such
/// a failure. Whoever was told to stop by a signal ends with that signal's code instead.
pub fn exit_code(outcome: &Outcome) -> u8 {
    if outcome.is_success() {
        return 0;
    }
    match outcome.exit_code.and_then(|code| u8::try_from(code).ok()) {
        Some(code) if code != 0 && outcome.status == Status::Failed => code,
        _ => code_for(outcome),
    }
}

fn code_for(outcome: &Outcome) -> u8 {
    let Some(failure) = &outcome.failure else { return outcome.exit_status() };
    match failure.kind {
        FailureKind::NotInstalled => 127,
        FailureKind::Auth => 41,
        FailureKind::Untrusted => 55,
        FailureKind::Input => 42,
        FailureKind::Config => 52,
        FailureKind::Sandbox => 44,
        FailureKind::TurnLimit => 53,
        FailureKind::DiskFull => 54,
        // The CLI ends with the low eight bits of the status.
        FailureKind::RateLimited => http_code(failure.http_status.unwrap_or(429)),
        FailureKind::Api => failure.http_status.map_or(1, http_code),
        FailureKind::Timeout | FailureKind::Stalled => 124,
        FailureKind::Cancelled => 130,
        // An answer that is none, a crash, garbage: the CLI has no code of its own for them.
        _ => 1,
    }
}

fn http_code(status: u16) -> u8 {
    match u8::try_from(status & 0xff) {
        Ok(0) | Err(_) => 1,
        Ok(code) => code,
    }
}

/// The CLI's name for the error: its own where it gave one, otherwise its class for such a failure. What only Alhena can
/// know has a name of the same kind.
pub fn error_type(failure: &Failure) -> &str {
    if let Some(reported) = failure.reported.as_ref().filter(|reported| !reported.kind.is_empty()) {
        return &reported.kind;
    }
    match failure.kind {
        FailureKind::NotInstalled => "NotInstalledError",
        FailureKind::Auth => "FatalAuthenticationError",
        FailureKind::Untrusted => "FatalUntrustedWorkspaceError",
        FailureKind::Input => "FatalInputError",
        FailureKind::Config => "FatalConfigError",
        FailureKind::Sandbox => "FatalSandboxError",
        FailureKind::TurnLimit => "FatalTurnLimitedError",
        FailureKind::DiskFull => "FatalToolExecutionError",
        FailureKind::RateLimited => "RateLimitError",
        FailureKind::Api => "ApiError",
        FailureKind::InvalidResponse => "INVALID_STREAM",
        FailureKind::Timeout => "TimeoutError",
        FailureKind::Stalled => "StalledError",
        FailureKind::Cancelled => "FatalCancellationError",
        FailureKind::Crashed => "CrashedError",
        FailureKind::Protocol => "ProtocolError",
        FailureKind::Schema => "SchemaError",
        FailureKind::Budget => "BudgetError",
        _ => NAMELESS,
    }
}

/// For a kind of failure that this module has not heard of; a test sees to it that there is none.
const NAMELESS: &str = "Error";

/// The CLI's words for the error where it had any, otherwise the failure's.
pub fn error_message(failure: &Failure) -> &str {
    match &failure.reported {
        Some(reported) if !reported.message.is_empty() => &reported.message,
        _ => &failure.message,
    }
}

#[cfg(test)]
mod tests;
