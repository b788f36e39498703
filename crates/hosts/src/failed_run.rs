//! A failed run as a host would have seen it that had started the CLI itself: an exit code, and words.
//!
//! The documents quote standard error. Gemini CLI 0.61.0 puts the reason elsewhere as often as not (in `result` on
//! standard output, or nowhere), and Alhena may have stopped the run before the CLI could say anything, so where the
//! quote would be empty the failure's own message stands in for it.

use alhena_model::judge::without_noise;
use alhena_model::{FailureKind, Outcome, Status};

/// How a failed run looked from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedRun<'a> {
    /// There was nothing to start.
    NotInstalled,
    /// The process ended by itself with this code; the words are its standard error, or what stands in for it.
    Exited { code: i32, said: &'a str },
    /// Alhena stopped it, or nobody knows how it ended; the code is `alhena`'s own.
    Stopped { code: u8, message: &'a str },
}

impl<'a> FailedRun<'a> {
    /// What is seen of a failed run, or nothing for a success. `stderr` is standard error where the caller knows better than the
    /// outcome.
    pub fn of(outcome: &'a Outcome, stderr: Option<&'a str>) -> Option<Self> {
        if outcome.is_success() {
            return None;
        }
        let failure = outcome.failure.as_ref();
        let message = failure.map_or("", |failure| failure.message.as_str());
        let stopped = Self::Stopped { code: outcome.exit_status(), message };
        let kind = failure.map(|failure| failure.kind);
        Some(match (outcome.status, outcome.exit_code) {
            (Status::Failed, Some(code)) => {
                // An outcome that was read from JSON has only the last lines.
                let kept = failure.and_then(|failure| failure.quote.as_deref().or(failure.stderr.as_deref()));
                let said = stderr.or(kept).unwrap_or("");
                // Where the CLI exits 0, standard error holds only noise, unless it just vanished and said all it could there. And
                // what it reported on standard output beats silence.
                let reported = failure.is_some_and(|failure| failure.reported.is_some());
                let vanished = kind == Some(FailureKind::Crashed) && !reported;
                let elsewhere = !vanished && (code == 0 || reported && said.trim().is_empty());
                Self::Exited { code, said: if elsewhere { message } else { said } }
            }
            (Status::Failed, None) if kind == Some(FailureKind::NotInstalled) => Self::NotInstalled,
            _ => stopped,
        })
    }
}

/// Standard error without the CLI's usual noise; where its reason stands somewhere inside, that comes first.
pub(crate) fn reason_first(stderr: &str, message: &str) -> String {
    let said = without_noise(stderr);
    match said.trim().is_empty() && !stderr.trim().is_empty() {
        true => message.to_owned(),
        false if !said.starts_with(message) && said.contains(message) => format!("{message}\n{said}"),
        false => said,
    }
}
