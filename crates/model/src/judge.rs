//! The verdict: success or not, and why not.
//!
//! Gemini CLI 0.61.0 exits 0 after being killed, after invalid answers and after prompts it never sent, so its exit
//! code alone says nothing. Success takes all of: exit 0, a last `result` of success, an answer of the model, no
//! `error` event of severity error, and nobody who stopped it before the `result`.

use std::time::Duration;

use alhena_wire::exit;
use serde::{Deserialize, Serialize};

use crate::event::ToolError;
use crate::failure::{Failure, FailureKind};
use crate::outcome::Status;

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Not known: a recording without its exit code. The recording alone decides.
    Unknown,
}

/// Why Alhena stopped the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The whole run took too long.
    Timeout(Duration),
    /// Nothing came at all.
    NoFirstEvent(Duration),
    /// It fell silent.
    Silence(Duration),
    /// Somebody asked for it.
    Cancelled,
    /// It wrote more than is borne.
    TooMuchOutput(u64),
    /// Its `result` had come, but it did not exit.
    NoExit,
}

/// What is known when the process is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub exit: Exit,
    /// The last part of its standard error.
    pub stderr: String,
    /// How long it took, if somebody measured it.
    pub duration_ms: Option<u64>,
}

/// What the stream said, as far as the verdict needs it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The first `result`.
    pub result: Option<ResultFacts>,
    /// Messages of `error` events of severity error.
    pub errors: Vec<String>,
    /// The model said something, or a tool came back.
    pub answered: bool,
    /// Tokens were counted: the API was reached.
    pub called: bool,
    /// Alhena stopped it, and whether the `result` was there before.
    pub stop: Option<(Stop, AfterResult)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterResult {
    Yes,
    No,
}

#[derive(Clone, Debug)]
pub(crate) struct ResultFacts {
    pub success: bool,
    pub error: Option<(String, String)>,
}

/// Status and failure of a run.
pub(crate) fn verdict(facts: &Facts, end: &End) -> (Status, Option<Failure>) {
    let Some(failure) = find_failure(facts, end) else { return (Status::Success, None) };
    let mut failure = with_evidence(failure, end);
    let said = facts.result.as_ref().and_then(|result| result.error.as_ref());
    failure.reported = said.map(|(kind, message)| ToolError { kind: kind.clone(), message: message.clone() });
    let status = match failure.kind {
        FailureKind::Timeout => Status::Timeout,
        FailureKind::Stalled => Status::Stalled,
        FailureKind::Cancelled => Status::Cancelled,
        _ => Status::Failed,
    };
    (status, Some(failure))
}

fn with_evidence(mut failure: Failure, end: &End) -> Failure {
    if let Exit::Code(code) = end.exit {
        failure.exit_code = Some(code);
    }
    let stderr = last_lines(&end.stderr);
    if !stderr.is_empty() {
        failure.stderr = Some(stderr);
    }
    failure
}

fn find_failure(facts: &Facts, end: &End) -> Option<Failure> {
    if let Some((stop, AfterResult::No)) = facts.stop {
        return Some(stopped(stop));
    }
    let stopped_after_result = facts.stop.is_some();
    match (&facts.result, end.exit) {
        (None, exit) => Some(without_result(facts, exit, &end.stderr)),
        (Some(result), exit) if !result.success => Some(with_error(result, facts, exit, &end.stderr)),
        (Some(_), Exit::Code(0) | Exit::Unknown) => success_in_doubt(facts),
        (Some(_), _) if stopped_after_result => success_in_doubt(facts),
        (Some(_), Exit::Code(code)) => Some(Failure::new(
            FailureKind::Crashed,
            format!("Gemini CLI reported success and then exited with code {code}"),
        )),
        (Some(_), Exit::Signal(signal)) => Some(Failure::new(
            FailureKind::Crashed,
            format!("Gemini CLI reported success and then died by signal {signal}"),
        )),
    }
}

fn stopped(stop: Stop) -> Failure {
    match stop {
        Stop::Timeout(limit) => {
            Failure::new(FailureKind::Timeout, format!("The run took longer than {}", seconds(limit)))
        }
        Stop::NoFirstEvent(limit) => Failure::new(
            FailureKind::Stalled,
            format!("Gemini CLI wrote nothing within {} of its start", seconds(limit)),
        ),
        Stop::Silence(limit) => {
            Failure::new(FailureKind::Stalled, format!("Gemini CLI was silent for {}", seconds(limit)))
        }
        Stop::Cancelled => Failure::new(FailureKind::Cancelled, "The run was cancelled"),
        Stop::TooMuchOutput(limit) => Failure::new(
            FailureKind::Protocol,
            format!("Gemini CLI wrote more than {limit} bytes and was stopped"),
        ),
        Stop::NoExit => Failure::new(FailureKind::Crashed, "Gemini CLI did not exit"),
    }
}

fn seconds(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}

/// A `result` of success and exit 0: the model must have answered, and nothing may have been called an error.
fn success_in_doubt(facts: &Facts) -> Option<Failure> {
    if let Some(message) = facts.errors.last() {
        let kind = if message.contains("session turns") {
            FailureKind::TurnLimit
        } else {
            FailureKind::InvalidResponse
        };
        return Some(Failure::new(kind, message.clone()));
    }
    if facts.answered {
        return None;
    }
    if facts.called {
        return Some(Failure::new(FailureKind::InvalidResponse, "The model gave no answer"));
    }
    Some(
        Failure::new(FailureKind::Input, "Gemini CLI reported success without asking the model")
            .with_hint("The prompt is larger than the model's context window; make it shorter."),
    )
}

fn with_error(result: &ResultFacts, facts: &Facts, exit: Exit, stderr: &str) -> Failure {
    let (kind, message) = match &result.error {
        Some((kind, message)) => (kind.as_str(), message.as_str()),
        None => (
            "",
            facts.errors.last().map_or("Gemini CLI reported an error without saying which", String::as_str),
        ),
    };
    match kind {
        "FatalTurnLimitedError" => return Failure::new(FailureKind::TurnLimit, message),
        "FatalCancellationError" => return Failure::new(FailureKind::Cancelled, message),
        "FatalAuthenticationError" => return Failure::new(FailureKind::Auth, message),
        "FatalSandboxError" => return Failure::new(FailureKind::Sandbox, message),
        "FatalConfigError" => return Failure::new(FailureKind::Config, message),
        "no_space_left" => return Failure::new(FailureKind::DiskFull, message),
        _ => {}
    }
    match exit {
        Exit::Code(0) => Failure::new(FailureKind::InvalidResponse, message),
        Exit::Unknown if result.error.is_none() => Failure::new(FailureKind::InvalidResponse, message),
        Exit::Code(code) => by_exit_code(code, message, stderr),
        Exit::Signal(_) | Exit::Unknown => api_failure(None, message, stderr),
    }
}

fn without_result(facts: &Facts, exit: Exit, stderr: &str) -> Failure {
    match exit {
        Exit::Code(0) => {
            Failure::new(FailureKind::Crashed, "Gemini CLI exited with code 0 and without a result")
        }
        Exit::Code(code) => {
            let said = said_on_stderr(stderr);
            let message = if said.is_empty() {
                format!("Gemini CLI exited with code {code} and without a result")
            } else {
                said
            };
            by_exit_code(code, &message, stderr)
        }
        Exit::Signal(signal) => Failure::new(
            FailureKind::Crashed,
            format!("Gemini CLI died by signal {signal} before its result"),
        ),
        Exit::Unknown => {
            let what = facts.errors.last().map_or("The output ends without a result", String::as_str);
            Failure::new(FailureKind::Crashed, what)
        }
    }
}

fn by_exit_code(code: i32, message: &str, stderr: &str) -> Failure {
    match code {
        41 => Failure::new(FailureKind::Auth, message),
        42 => Failure::new(FailureKind::Input, message),
        44 => Failure::new(FailureKind::Sandbox, message),
        52 => Failure::new(FailureKind::Config, message),
        53 => Failure::new(FailureKind::TurnLimit, message),
        54 => Failure::new(FailureKind::DiskFull, message),
        55 => Failure::new(FailureKind::Untrusted, message),
        127 => Failure::new(FailureKind::NotInstalled, message),
        130 => Failure::new(FailureKind::Cancelled, message),
        1 if is_usage(stderr) => Failure::new(FailureKind::Input, message)
            .with_hint("Gemini CLI did not accept its arguments; see `gemini --help` for this version's."),
        _ => api_failure(exit::http_status(code), message, stderr),
    }
}

/// Whether yargs printed its usage: the arguments were wrong.
fn is_usage(stderr: &str) -> bool {
    stderr.lines().any(|line| line.starts_with("Usage: gemini"))
}

/// A failure of the API, or of the way to it.
fn api_failure(status: Option<u16>, message: &str, stderr: &str) -> Failure {
    let status = status
        .or_else(|| status_in(message))
        .or_else(|| status_in(stderr))
        .or_else(|| named_status(message, stderr));
    let clean = api_message(message);
    let mut failure = match status {
        Some(401 | 403) => Failure::new(FailureKind::Auth, clean),
        Some(400) if is_bad_key(message) || is_bad_key(stderr) => Failure::new(FailureKind::Auth, clean),
        Some(400) => Failure::new(FailureKind::Input, clean),
        Some(404) => Failure::new(FailureKind::Api, clean)
            .with_hint("Check the model's name (--model); the API does not have it for this key."),
        Some(429) => rate_limited(&clean, message, stderr),
        Some(_) => Failure::new(FailureKind::Api, clean),
        None if is_network(message) || is_network(stderr) => Failure::new(FailureKind::Api, clean).with_hint(
            "The connection to the API failed or broke off; check the network and the proxy, then run again.",
        ),
        None if message.contains("[API Error:") && is_bad_json(message) => {
            Failure::new(FailureKind::InvalidResponse, clean)
        }
        None if message.contains("[API Error:") => Failure::new(FailureKind::Api, clean),
        None => Failure::new(FailureKind::Crashed, clean),
    };
    failure.http_status = status;
    failure
}

fn rate_limited(clean: &str, message: &str, stderr: &str) -> Failure {
    let daily = [message, stderr].iter().any(|text| {
        text.contains("daily quota") || text.contains("PerDay") || text.contains("TerminalQuotaError")
    });
    let mut failure = Failure::new(FailureKind::RateLimited, clean);
    failure.daily_quota = daily;
    failure.retry_after_ms = retry_delay(message).or_else(|| retry_delay(stderr)).filter(|_| !daily);
    if daily {
        failure.hint =
            "The daily quota is used up: wait until tomorrow, or use another model or key.".to_owned();
    } else if let Some(delay) = failure.retry_after_ms {
        failure.hint = format!("Wait {} s and run again, or use another model or key.", delay.div_ceil(1000));
    }
    failure
}

/// `"code":403` of an error object, or `status: 403` of a printed error.
fn status_in(text: &str) -> Option<u16> {
    ["\"code\":", "\"code\": ", "\\\"code\\\":", "  status: ", "failed with status "].iter().find_map(
        |label| {
            text.rmatch_indices(label).find_map(|(at, _)| {
                let digits: String = text
                    .get(at + label.len()..)?
                    .trim_start()
                    .chars()
                    .take_while(char::is_ascii_digit)
                    .take(4)
                    .collect();
                digits.parse().ok().filter(|status| (400..600).contains(status))
            })
        },
    )
}

/// The classes of errors that carry no number.
fn named_status(message: &str, stderr: &str) -> Option<u16> {
    let said = |needle: &str| message.contains(needle) || stderr.contains(needle);
    if said("ModelNotFoundError") || said("is not found for API version") {
        Some(404)
    } else if said("TerminalQuotaError") || said("exhausted your daily quota") || said("RetryableQuotaError")
    {
        Some(429)
    } else {
        None
    }
}

fn is_bad_key(text: &str) -> bool {
    text.contains("API key not valid") || text.contains("API_KEY_INVALID") || text.contains("API key expired")
}

fn is_network(text: &str) -> bool {
    const SIGNS: &[&str] = &[
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
        "[API Error: terminated]",
        "TypeError: terminated",
        "Premature close",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

fn is_bad_json(text: &str) -> bool {
    text.contains("JSON") || text.contains("Unexpected token") || text.contains("exception parsing")
}

/// `"retryDelay":"2s"` of the API's details, or the CLI's words for it.
fn retry_delay(text: &str) -> Option<u64> {
    let after = ["retryDelay\":\"", "retryDelay\": \"", "retryDelay\\\":\\\"", "retry in ", "retry after "]
        .iter()
        .find_map(|label| text.rfind(label).map(|at| at + label.len()))?;
    let number: String = text.get(after..)?.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let value: f64 = number.parse().ok()?;
    let unit = text.get(after + number.len()..)?.trim_start();
    let millis = if unit.starts_with("ms") { value } else { value * 1000.0 };
    (millis.is_finite() && millis >= 0.0).then_some(millis as u64)
}

/// The API's own message out of `[API Error: {"error":{"message":...}}]`.
fn api_message(message: &str) -> String {
    let Some(start) = message.find("{\"error\"") else { return message.to_owned() };
    let inner = message.get(start..).unwrap_or("");
    let mut objects = serde_json::Deserializer::from_str(inner).into_iter::<serde_json::Value>();
    match objects.next() {
        Some(Ok(value)) => {
            let error = value.get("error");
            match error.and_then(|error| error.get("message")).and_then(|text| text.as_str()) {
                // The CLI nests an error object as text inside another one.
                Some(text) if text.contains("{\"error\"") || text.trim_start().starts_with('{') => {
                    api_message(text)
                }
                Some(text) => text.to_owned(),
                None => message.to_owned(),
            }
        }
        _ => message.to_owned(),
    }
}

/// What the CLI itself said at the end of standard error, without its usual noise.
fn said_on_stderr(stderr: &str) -> String {
    const NOISE: &[&str] = &[
        "Warning: True color",
        "Warning: 256-color",
        "YOLO mode is enabled",
        "[STARTUP]",
        "Loaded cached credentials",
        "(node:",
        "(Use `node --trace-warnings",
        "    at ",
        "Ripgrep is not available",
    ];
    let said = |line: &&str| !line.trim().is_empty() && !NOISE.iter().any(|noise| line.starts_with(noise));
    if is_usage(stderr) {
        // The reason stands before the usage.
        let reason: Vec<&str> =
            stderr.lines().take_while(|line| !line.starts_with("Usage: gemini")).filter(said).collect();
        return plain(&reason.join("\n"));
    }
    if let Some(found) = alhena_wire::report::find_error_report(stderr.as_bytes())
        && let Some(error) = found.report.error
        && let Some(message) = error.message
    {
        return plain(&message);
    }
    let lines: Vec<&str> = stderr.lines().filter(said).collect();
    plain(&lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join("\n"))
}

/// Without colours and other escape sequences.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A control sequence ends with a letter.
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else if c == '\n' || c == '\t' || !c.is_control() {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

/// The end of standard error as evidence: at most 20 lines and 4 KiB.
fn last_lines(stderr: &str) -> String {
    let start = stderr.len().saturating_sub(4096);
    let tail = stderr.get(stderr.ceil_char_boundary(start)..).unwrap_or("").trim_end();
    let from = tail.rmatch_indices('\n').nth(19).map_or(0, |(at, _)| at + 1);
    tail.get(from..).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests;
