//! Why an answer of the model ended.
//!
//! Gemini CLI 0.61.0 reports success for an answer that was cut off or blocked after some text. The reason is only in the
//! answers that it records (`--record-responses`) and, with less detail, in its telemetry.

use crate::failure::{Failure, FailureKind};

/// The only reason of an answer that is complete.
const NORMAL: &str = "STOP";
/// The reason where only telemetry is known, which has one word for all filters.
pub const CONTENT_FILTER: &str = "CONTENT_FILTER";
/// The reason of an answer that reached the limit of output tokens.
pub const MAX_TOKENS: &str = "MAX_TOKENS";
/// The warning of a success whose last answer may not be complete.
pub const UNAVAILABLE: &str = "The finish reason is not known, so the answer may have been cut off. Gemini CLI reports it in time only with an API key, Vertex AI or a gateway, outside a sandbox, and since release 0.12";
const FILTERS: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    CONTENT_FILTER,
];

/// How the model's last answer ended, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Finish {
    /// No source said so.
    #[default]
    Unknown,
    /// The stream ended, and the API had given no reason. After a tool result the CLI accepts that (0.61.0).
    WithoutReason,
    /// For this reason, in the API's word.
    Reason(String),
}

impl Finish {
    pub(crate) fn given(reason: Option<String>) -> Self {
        reason.map_or(Self::WithoutReason, Self::Reason)
    }

    /// The API's word, where it gave one.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::Reason(reason) => Some(reason.clone()),
            Self::Unknown | Self::WithoutReason => None,
        }
    }

    /// Returns the failure of a run whose last answer is not complete.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let (problem, hint) = match self {
            Self::Unknown => return None,
            Self::WithoutReason => ("ended without a finish reason".to_owned(), "Run again."),
            Self::Reason(reason) => (problem(reason)?, hint(reason)),
        };
        let message = format!("The answer {problem}");
        Some(Failure::new(FailureKind::InvalidResponse, message).with_hint(hint))
    }
}

/// Whether the answer is complete.
pub fn is_normal(reason: &str) -> bool {
    reason == NORMAL
}

/// Whether a content filter ended the answer.
pub fn is_filter(reason: &str) -> bool {
    FILTERS.contains(&reason)
}

/// Returns the warning for an answer that ended early and was followed by others; none for a complete one, and none where
/// the CLI asked again instead of using the answer.
pub fn warning(reason: &str) -> Option<String> {
    let asked_again =
        ["OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "FINISH_REASON_UNSPECIFIED"];
    let problem = problem(reason).filter(|_| !asked_again.contains(&reason))?;
    Some(format!("An answer {problem}"))
}

fn problem(reason: &str) -> Option<String> {
    match reason {
        NORMAL => None,
        MAX_TOKENS => Some("was cut off at the limit of output tokens (MAX_TOKENS)".to_owned()),
        filter if is_filter(filter) => Some(format!("was cut off by a content filter ({filter})")),
        other => Some(format!("ended early ({other})")),
    }
}

fn hint(reason: &str) -> &'static str {
    match reason {
        MAX_TOKENS => {
            "Ask for less in one answer, or raise the model's maxOutputTokens in Gemini CLI's settings. The text so far is in the outcome."
        }
        filter if is_filter(filter) => {
            "Phrase the prompt differently: the same one is likely to be blocked again. The text so far is in the outcome."
        }
        _ => "Run again. The text so far is in the outcome.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stop_is_a_complete_answer() {
        let failure = |reason: Option<&str>| Finish::given(reason.map(str::to_owned)).failure();
        assert_eq!(failure(Some("STOP")), None);
        assert_eq!(Finish::Unknown.failure(), None);
        for reason in FILTERS.iter().chain(&[
            "MAX_TOKENS",
            "OTHER",
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "FINISH_REASON_UNSPECIFIED",
            "A_LATER_ONE",
        ]) {
            let failure = failure(Some(reason)).unwrap();
            assert_eq!(failure.kind, FailureKind::InvalidResponse, "{reason}");
            assert!(failure.message.contains(reason) && !failure.hint.is_empty(), "{failure:?}");
        }
        let without = failure(None).unwrap();
        assert_eq!(without.message, "The answer ended without a finish reason");
    }

    #[test]
    fn a_warning_and_a_failure_name_the_same_problem() {
        assert_eq!(warning("STOP"), None);
        assert_eq!(warning("RECITATION").unwrap(), "An answer was cut off by a content filter (RECITATION)");
        let failure = Finish::Reason("MAX_TOKENS".to_owned()).failure().unwrap();
        assert_eq!(failure.message, "The answer was cut off at the limit of output tokens (MAX_TOKENS)");
    }
}
