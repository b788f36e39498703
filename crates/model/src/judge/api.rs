//! Failures of the API, and of the way to it.
//!
//! Gemini CLI 0.61.0 wraps them in `[API Error: ...]`, often with the API's own JSON inside, loses the status of some
//! (a model that does not exist exits 1) and the delay of others (it stands only in the error that it logs).

use std::borrow::Cow;

use serde_json::Value;

use super::stderr::ApiError;
use crate::failure::{Failure, FailureKind};

/// All that is known of a failed call.
pub(super) struct Call<'a> {
    /// The status, if the exit code or the report has it.
    pub status: Option<u16>,
    /// What the CLI says.
    pub message: &'a str,
    /// What it logged.
    pub logged: Option<ApiError<'a>>,
}

impl Call<'_> {
    /// The texts that may hold facts, the most telling first.
    fn texts(&self) -> impl Iterator<Item = &str> {
        [Some(self.message), self.logged.map(|error| error.whole)].into_iter().flatten()
    }

    fn says(&self, words: &[&str]) -> bool {
        self.texts().any(|text| words.iter().any(|word| text.contains(word)))
    }

    fn status(&self) -> Option<u16> {
        self.status.or_else(|| self.texts().find_map(status_in)).or_else(|| self.named_status())
    }

    /// The classes of errors that carry no number.
    fn named_status(&self) -> Option<u16> {
        if self.says(&["ModelNotFoundError", "is not found for API version"]) {
            Some(404)
        } else if self.says(&["TerminalQuotaError", "exhausted your daily quota", "RetryableQuotaError"]) {
            Some(429)
        } else {
            None
        }
    }

    /// Whether a call failed at all, and not the CLI itself.
    fn is_call(&self) -> bool {
        self.message.contains(WRAPPER) || self.logged.is_some()
    }

    /// What went wrong, and what to do.
    pub(super) fn failure(&self) -> Failure {
        let status = self.status();
        let message = readable(self.message);
        let mut failure = match status {
            Some(status) => self.by_status(status, message),
            None if self.says(NETWORK) || is_cut_off(self.message) => self.lost(&message),
            // Over ACP it is a request that fails, and not the start (0.61.0).
            None if self.says(UNTRUSTED) && !self.is_call() => Failure::new(FailureKind::Untrusted, message),
            None if !self.is_call() => Failure::new(FailureKind::Crashed, message),
            None if is_bad_json(self.message) => Failure::new(FailureKind::InvalidResponse, message),
            None => Failure::new(FailureKind::Api, message),
        };
        failure.http_status = status;
        failure
    }

    fn lost(&self, message: &str) -> Failure {
        Failure::new(FailureKind::Api, format!("The connection to the API failed: {message}"))
            .with_hint("Check the network and the proxy (HTTPS_PROXY), then run again.")
    }

    fn by_status(&self, status: u16, message: String) -> Failure {
        let bad_key = self.says(&["API key not valid", "API_KEY_INVALID", "API key expired"]);
        match status {
            400 if bad_key => Failure::new(FailureKind::Auth, message).with_hint(
                "The API does not know this key: set GEMINI_API_KEY to a valid one; `alhena doctor` shows which sign-in is used.",
            ),
            400 if self.says(&[NOT_ON_THE_CASSETTE]) => Failure::new(FailureKind::Input, message).with_hint(
                "What is asked is not what was recorded: record it anew by `cassette_mode` record, or ask as it was asked then.",
            ),
            400 => Failure::new(FailureKind::Input, message).with_hint(
                "The API refused the request: check the prompt, the model (`model`) and the tools of MCP servers.",
            ),
            401 => Failure::new(FailureKind::Auth, message).with_hint(
                "The API does not accept the sign-in: set GEMINI_API_KEY to a valid key, or start Gemini CLI in a terminal and sign in again.",
            ),
            403 => Failure::new(FailureKind::Auth, message).with_hint(
                "This key or account may not do that: try another `model`, or another key in GEMINI_API_KEY.",
            ),
            404 => Failure::new(FailureKind::Api, message)
                .with_hint("Check the model's name (`model`): the API does not have it for this key."),
            429 => self.rate_limited(message),
            500..600 => Failure::new(FailureKind::Api, message).with_hint(
                "The API itself failed: run again in a while, or with more patience by `max_attempts` 10.",
            ),
            _ => Failure::new(FailureKind::Api, message),
        }
    }

    fn rate_limited(&self, message: String) -> Failure {
        let mut failure = Failure::new(FailureKind::RateLimited, message);
        failure.daily_quota = self.says(&["daily quota", "PerDay", "Daily"]);
        if failure.daily_quota {
            // The API names a delay of seconds here too, and it is of no use.
            return failure
                .with_hint("The daily quota is used up: wait until tomorrow, or use another model (`on_rate_limit` model=NAME) or key.");
        }
        after(failure, self.texts().find_map(delay_in))
    }
}

/// A rate limit that nobody has waited for to its end.
pub(super) fn limited(retry_after_ms: Option<u64>, attempt: Option<&str>) -> Failure {
    let said = attempt.map(|attempt| format!(" ({attempt})")).unwrap_or_default();
    let mut failure = Failure::new(FailureKind::RateLimited, format!("The API limits its requests{said}"));
    failure.http_status = Some(429);
    after(failure, retry_after_ms)
}

fn after(mut failure: Failure, delay: Option<u64>) -> Failure {
    failure.retry_after_ms = delay;
    match delay {
        Some(delay) => {
            let wait = in_words(delay);
            let hint = format!(
                "Wait {wait} and run again, or use another model or key; `on_rate_limit` can do both."
            );
            failure.with_hint(hint)
        }
        None => failure,
    }
}

/// What is answered in the place of the API where a cassette is played back that has no such request.
const NOT_ON_THE_CASSETTE: &str = "This request is not on the cassette";

/// What the CLI puts around every error of a call.
const WRAPPER: &str = "[API Error: ";

/// What the CLI says of a mode in a folder that is not trusted.
const UNTRUSTED: &[&str] = &["in an untrusted folder"];

const NETWORK: &[&str] = &[
    "fetch failed",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENOTFOUND",
    "EAI_AGAIN",
    "EPIPE",
    "UND_ERR_",
    "socket hang up",
    "other side closed",
    "TypeError: terminated",
    "Premature close",
];

/// Node's word for a stream that broke off.
fn is_cut_off(message: &str) -> bool {
    unwrapped(message) == "terminated"
}

fn is_bad_json(text: &str) -> bool {
    text.contains("JSON") || text.contains("Unexpected token") || text.contains("exception parsing")
}

/// `"code":403` of an error object, or `status: 403` of a printed error.
fn status_in(text: &str) -> Option<u16> {
    ["\"code\":", "\\\"code\\\":", "\n  status: ", "\n  code: ", "{ code: ", "\n    code: "].iter().find_map(
        |label| {
            text.rmatch_indices(label).find_map(|(at, _)| {
                let after = text.get(at + label.len()..)?.trim_start();
                let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
                after.get(..end)?.parse().ok().filter(|status| (400..600).contains(status))
            })
        },
    )
}

/// How long the API asks to wait, in milliseconds: `"retryDelay":"2s"` of its details, the CLI's words for it, or the property
/// of the error that it logged.
pub fn delay_in(text: &str) -> Option<u64> {
    const LABELS: &[&str] = &[
        "retryDelay\":\"",
        "retryDelay\": \"",
        "retryDelay\\\":\\\"",
        "retry in ",
        "retry after ",
        "reset after ",
    ];
    let worded =
        LABELS.iter().find_map(|label| text.rfind(label).and_then(|at| text.get(at + label.len()..)));
    if let Some(delay) = worded.and_then(duration_ms) {
        return Some(delay);
    }
    let label = "retryDelayMs: ";
    let after = text.rfind(label).and_then(|at| text.get(at + label.len()..))?;
    let (number, _) = leading_number(after)?;
    whole_ms(number)
}

/// `2s`, `0.5s`, `350ms`, `8h44m7s`; a number alone is seconds.
fn duration_ms(text: &str) -> Option<u64> {
    let (mut total, mut rest, mut found) = (0.0, text, false);
    while let Some((number, after)) = leading_number(rest) {
        let (unit, after) = match after.as_bytes() {
            [b'm', b's', ..] => (1.0, after.get(2..)?),
            [b'h', ..] => (3_600_000.0, after.get(1..)?),
            [b'm', ..] => (60_000.0, after.get(1..)?),
            [b's', ..] => (1000.0, after.get(1..)?),
            _ => (1000.0, ""),
        };
        (total, rest, found) = (total + number * unit, after, true);
    }
    found.then(|| whole_ms(total)).flatten()
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    // A full stop ends the sentence, not the number.
    let number = text.get(..end)?;
    Some((number.trim_end_matches('.').parse().ok()?, text.get(end..)?))
}

fn whole_ms(millis: f64) -> Option<u64> {
    // Longer than a year is no delay.
    (0.0..3.2e10).contains(&millis).then_some(millis.round() as u64)
}

fn in_words(millis: u64) -> String {
    let seconds = millis.div_ceil(1000);
    match seconds {
        0..=120 => format!("{seconds} s"),
        121..=7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// The API's own message out of `[API Error: {"error":{"message":...}}]`.
pub(super) fn readable(message: &str) -> String {
    let message = unwrapped(message);
    let nested = message.find("{\"error\"").and_then(|start| inner(message.get(start..)?));
    nested.unwrap_or_else(|| message.into_owned()).trim().to_owned()
}

/// Without the wrapper, and without the advice that the CLI puts behind it: `/auth` is for people at its prompt.
fn unwrapped(message: &str) -> Cow<'_, str> {
    let Some((before, rest)) = message.split_once(WRAPPER) else { return Cow::Borrowed(message) };
    let inside = match rest.strip_suffix(']') {
        Some(inside) => inside,
        None => rest.rsplit_once("]\n").map_or(rest, |(inside, _)| inside),
    };
    Cow::Owned(format!("{before}{inside}"))
}

/// The message of an error object; the CLI nests one as text inside another.
fn inner(text: &str) -> Option<String> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let object = objects.next()?.ok()?;
    let message = object.get("error")?.get("message")?.as_str()?;
    match message.find("{\"error\"").and_then(|start| inner(message.get(start..)?)) {
        Some(nested) => Some(nested),
        None => Some(message.to_owned()),
    }
}
