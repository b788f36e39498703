//! The verdict: success or not, and why not.
//!
//! Gemini CLI 0.61.0 exits 0 after being killed, after invalid answers and after prompts it never sent, so its exit
//! code alone says nothing. Success takes all of: exit 0, a last `result` of success, an answer of the model, no
//! `error` event that is more than a warning, no second `result` of error, nobody who stopped it before the `result`, and a
//! normal finish reason of the last answer, as far as that is known.

mod api;
mod complaints;
pub mod finish;
mod stderr;

pub use api::delay_in;
pub use complaints::complaints;
pub(crate) use finish::Finish;
pub use stderr::without_noise;

use std::time::Duration;

use alhena_wire::exit::{self, ExitMeaning};
use serde::{Deserialize, Serialize};

use crate::answer::Unfit;
use crate::event::ToolError;
use crate::failure::{Failure, FailureKind};
use crate::hook;
use crate::outcome::{Reported, Status};

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
    /// It wrote more to standard error than is borne.
    TooMuchStderr(u64),
    /// Its `result` had come, but it did not exit.
    NoExit,
    /// The API asks to wait for longer than is borne, or than anybody wants to.
    RateLimit {
        /// How long, in milliseconds, if it says so.
        retry_after_ms: Option<u64>,
    },
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
    /// The last `error` event that was no warning.
    pub error: Option<String>,
    /// Another `result` that says error, or could not be read. The CLI writes one; if two contradict each other the run is
    /// no success.
    pub contradiction: Option<ResultFacts>,
    /// How the model's last answer ended.
    pub finish: Finish,
    /// The model said something, or a tool came back.
    pub answered: bool,
    /// A tool came back.
    pub tool_came_back: bool,
    /// Tokens were counted: the API was reached.
    pub called: bool,
    /// What kind of output it is.
    pub output: Output,
    /// The answer had to fit a schema, and there was none that does.
    pub unfit: Option<Unfit>,
    /// The CLI found the model repeating itself, and stopped it.
    pub looped: bool,
    /// What it may spend is used up, in these words.
    pub over_budget: Option<String>,
    /// Somebody who decides has ended it, for this reason.
    pub halted: Option<String>,
    /// Alhena stopped it, and whether the `result` was there before.
    pub stop: Option<Stopped>,
}

/// What the output is made of, as far as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// Nothing came.
    #[default]
    Nothing,
    /// Lines came, and none was an event.
    Noise,
    /// Events, or a report.
    Events,
    /// Plain text: it has no `result`, the exit code stands in for it.
    Text,
}

/// A stop, and whether the `result` was there before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped {
    pub why: Stop,
    pub after_result: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ResultFacts {
    pub success: bool,
    /// Absent after an answer that could not be used, although the run failed.
    pub error: Option<ReportedError>,
}

#[derive(Clone, Debug)]
pub(crate) struct ReportedError {
    pub kind: String,
    pub message: String,
    /// An exit code or an HTTP status; only a json report has it.
    pub code: Option<i64>,
}

impl Facts {
    /// What the CLI itself said of the run. The exit code of plain text is nobody's word.
    pub fn reported(&self) -> Option<Reported> {
        let result = self.result.as_ref().filter(|_| self.output != Output::Text)?;
        Some(if result.success { Reported::Success } else { Reported::Error })
    }
}

pub(crate) fn verdict(facts: &Facts, end: &End) -> (Status, Option<Failure>) {
    let Some(failure) = find_failure(facts, end) else { return (Status::Success, None) };
    let mut failure = with_evidence(failure, end);
    let said = facts.result.as_ref().and_then(|result| result.error.as_ref());
    failure.reported = said.map(|said| ToolError { kind: said.kind.clone(), message: said.message.clone() });
    failure.by_error_event =
        facts.error.is_some() && find_failure(&Facts { error: None, ..facts.clone() }, end).is_none();
    (Status::of(failure.kind), Some(failure))
}

fn with_evidence(mut failure: Failure, end: &End) -> Failure {
    if let Exit::Code(code) = end.exit {
        failure.exit_code = Some(code);
    }
    let stderr = stderr::last_lines(&end.stderr);
    if !stderr.is_empty() {
        failure.stderr = Some(stderr.to_owned());
    }
    failure.quote = Some(end.stderr.clone()).filter(|stderr| !stderr.is_empty());
    failure
}

fn find_failure(facts: &Facts, end: &End) -> Option<Failure> {
    // Whatever came of it then, and whoever ended it.
    if let Some(why) = &facts.over_budget {
        return Some(Failure::new(FailureKind::Budget, why));
    }
    // Over ACP a hook ends a turn by a cancel.
    let by_hook = facts.halted.is_some();
    let counts = |stop: &Stopped| !(stop.after_result || by_hook && stop.why == Stop::Cancelled);
    if let Some(Stopped { why: stop, .. }) = facts.stop.filter(counts) {
        return Some(stopped(stop, &end.stderr));
    }
    if let Some(why) = facts.halted.as_deref().and_then(hook::undecided) {
        let message = format!("The run ended, because nobody decided: {why}");
        return Some(Failure::new(FailureKind::Config, message).with_hint(
            "Mend the hook, or leave it out: what a hook does not decide is denied. `alhena help hooks` says what it has to print.",
        ));
    }
    if let Some(what) = facts.halted.as_deref().and_then(hook::unasked) {
        return Some(Failure::new(FailureKind::Protocol, format!("The run was stopped: {what}")).with_hint(
            "A hook has to decide, and its process was killed or ended before it did. Check what else runs on this machine, and \
             what the agent did before; `alhena help hooks` describes hooks.",
        ));
    }
    if let Some(why) = &facts.halted {
        return Some(Failure::new(FailureKind::Cancelled, format!("A hook ended the run: {why}")));
    }
    by_result(facts, end).or_else(|| facts.unfit.as_ref().map(|unfit| unfit.failure(facts.looped)))
}

fn by_result(facts: &Facts, end: &End) -> Option<Failure> {
    let stopped_after_result = facts.stop.is_some();
    match (&facts.result, end.exit) {
        (None, exit) => Some(without_result(facts, exit, &end.stderr)),
        (Some(result), exit) if !result.success => Some(with_error(result, facts, exit, &end.stderr)),
        (Some(_), exit) if let Some(other) = &facts.contradiction => {
            Some(with_error(other, facts, exit, &end.stderr))
        }
        (Some(_), Exit::Code(0) | Exit::Unknown) => success_in_doubt(facts, &end.stderr),
        (Some(_), _) if stopped_after_result => success_in_doubt(facts, &end.stderr),
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

fn stopped(stop: Stop, stderr: &str) -> Failure {
    let failure = match stop {
        Stop::Timeout(limit) => {
            Failure::new(FailureKind::Timeout, format!("The run took longer than {}", in_words(limit)))
                .with_hint(format!("Give it more time, for example `timeout` {}s.", limit.as_secs().max(1).saturating_mul(2)))
        }
        Stop::NoFirstEvent(limit) => Failure::new(
            FailureKind::Stalled,
            format!("Gemini CLI wrote nothing within {} of its start", in_words(limit)),
        )
        .with_hint(
            "`alhena doctor` looks for what can hold it up, a stale lock for one; `first_event_timeout` 5m waits longer.",
        ),
        Stop::Silence(limit) => {
            Failure::new(FailureKind::Stalled, format!("Gemini CLI was silent for {}", in_words(limit)))
        }
        Stop::Cancelled => return Failure::new(FailureKind::Cancelled, "The run was cancelled"),
        Stop::TooMuchOutput(limit) => {
            return Failure::new(
                FailureKind::Protocol,
                format!("Gemini CLI wrote more than {limit} bytes and was stopped"),
            );
        }
        Stop::TooMuchStderr(limit) => {
            return Failure::new(
                FailureKind::Protocol,
                format!("Gemini CLI wrote more than {limit} bytes to standard error and was stopped"),
            );
        }
        Stop::NoExit => return Failure::new(FailureKind::Crashed, "Gemini CLI did not exit"),
        Stop::RateLimit { retry_after_ms } => return api::limited(retry_after_ms, stderr::last_attempt(stderr)),
    };
    match stderr::last_attempt(stderr) {
        // It retries for minutes without a word on standard output.
        Some(attempt) => Failure { message: format!("{} ({attempt})", failure.message), ..failure }
            .with_hint("The API could not be reached or refused to answer: check the network and `alhena doctor`, then run again; `max_attempts` 1 fails at once."),
        None => failure,
    }
}

fn in_words(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}

/// A `result` of success and exit 0: the model must have answered, and nothing may have been called an error.
fn success_in_doubt(facts: &Facts, stderr: &str) -> Option<Failure> {
    let text_mode = || stderr::invalid_answer(stderr).filter(|_| facts.output == Output::Text);
    if let Some(message) = facts.error.clone().or_else(text_mode) {
        return Some(match message.contains("session turns") {
            true => Failure::new(FailureKind::TurnLimit, message),
            false => invalid_response(message),
        });
    }
    if let Some(failure) = facts.finish.failure() {
        return Some(failure);
    }
    if facts.answered {
        return None;
    }
    if facts.output == Output::Text {
        // Text mode prints nothing, too, when the prompt was never sent.
        let hint = "Run again; if the prompt is very large, make it shorter.";
        return Some(invalid_response("The model gave no answer").with_hint(hint));
    }
    if facts.looped {
        let message = "The model repeated itself, and Gemini CLI stopped it before it had answered";
        return Some(invalid_response(message));
    }
    if facts.called {
        return Some(invalid_response("The model gave no answer"));
    }
    if let Some(wrong) = stderr::wrong_settings(stderr) {
        let message = format!("Gemini CLI did not ask the model, and calls its settings wrong: {wrong}");
        return Some(Failure::new(FailureKind::Config, message));
    }
    Some(Failure::new(FailureKind::Input, "Gemini CLI reported success without asking the model").with_hint(
        "The prompt is larger than the model's context window, or a hook stopped it: make the prompt shorter, put the material into files and name them in it.",
    ))
}

fn invalid_response(message: impl Into<String>) -> Failure {
    let failure = Failure::new(FailureKind::InvalidResponse, message);
    if failure.message.contains("blocked") {
        failure.with_hint("Say the prompt in another way: the same one will be blocked again.")
    } else if failure.message.contains("token limit") {
        failure.with_hint("Ask for less in one answer, or give it less to read.")
    } else {
        failure
    }
}

fn with_error(result: &ResultFacts, facts: &Facts, exit: Exit, stderr: &str) -> Failure {
    let Some(error) = &result.error else {
        let silent = "Gemini CLI reported an error without saying which";
        let message = facts.error.as_deref().unwrap_or(silent);
        return match exit {
            Exit::Code(0) | Exit::Unknown | Exit::Signal(_) => invalid_response(message),
            Exit::Code(code) => by_exit_code(code, message, stderr),
        };
    };
    match named(&error.kind) {
        Some(FailureKind::InvalidResponse) => return invalid_response(error.message.as_str()),
        Some(kind) => return of_kind(kind, &error.message),
        None => {}
    }
    match (exit, error.code) {
        (Exit::Code(0), _) => invalid_response(error.message.as_str()),
        (Exit::Code(code), _) => by_exit_code(code, &error.message, stderr),
        (Exit::Signal(_) | Exit::Unknown, Some(code)) => by_reported_code(code, &error.message, stderr),
        (Exit::Signal(_) | Exit::Unknown, None) => call(None, &error.message, stderr).failure(),
    }
}

/// The errors that the CLI has a name for.
fn named(kind: &str) -> Option<FailureKind> {
    Some(match kind {
        "FatalTurnLimitedError" => FailureKind::TurnLimit,
        "FatalCancellationError" => FailureKind::Cancelled,
        "FatalAuthenticationError" => FailureKind::Auth,
        "FatalSandboxError" => FailureKind::Sandbox,
        "FatalConfigError" => FailureKind::Config,
        "FatalInputError" => FailureKind::Input,
        "FatalUntrustedWorkspaceError" => FailureKind::Untrusted,
        "FatalToolExecutionError" | "no_space_left" => FailureKind::DiskFull,
        "INVALID_STREAM" => FailureKind::InvalidResponse,
        _ => return None,
    })
}

fn without_result(facts: &Facts, exit: Exit, stderr: &str) -> Failure {
    match exit {
        Exit::Code(0) => {
            Failure::new(FailureKind::Crashed, "Gemini CLI exited with code 0 and without a result").with_hint(
                "It ends like this when something outside stops it; run again with `record` to keep everything it wrote.",
            )
        }
        // It says what is wrong, goes on, and trips over it.
        Exit::Code(1) if facts.output == Output::Nothing && let Some(wrong) = stderr::wrong_settings(stderr) => {
            of_kind(FailureKind::Config, &format!("Gemini CLI could not go on with settings that are wrong: {wrong}"))
        }
        Exit::Code(code) => {
            let said = stderr::said(stderr);
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
        Exit::Unknown => match (&facts.error, facts.output) {
            (Some(error), _) => Failure::new(FailureKind::Crashed, error.clone()),
            (None, Output::Noise) => {
                Failure::new(FailureKind::Protocol, "None of the output is an event of Gemini CLI").with_hint(
                    "Give what `gemini --output-format stream-json` wrote, or say that it is a JSON report or text.",
                )
            }
            (None, Output::Text) => Failure::new(FailureKind::Crashed, "Plain text does not say how the run ended")
                .with_hint("Give the exit code of the process, too."),
            (None, Output::Nothing) => Failure::new(FailureKind::Crashed, "The output is empty")
                .with_hint("Give what `gemini --output-format stream-json` wrote."),
            (None, Output::Events) => Failure::new(FailureKind::Crashed, "The output ends without a result"),
        },
    }
}

fn by_exit_code(code: i32, message: &str, stderr: &str) -> Failure {
    let kind = match exit::meaning(code) {
        ExitMeaning::Authentication => FailureKind::Auth,
        ExitMeaning::Input => FailureKind::Input,
        ExitMeaning::Sandbox => FailureKind::Sandbox,
        ExitMeaning::Config => FailureKind::Config,
        ExitMeaning::TurnLimit => FailureKind::TurnLimit,
        ExitMeaning::ToolExecution => FailureKind::DiskFull,
        ExitMeaning::UntrustedWorkspace => FailureKind::Untrusted,
        ExitMeaning::Cancelled => FailureKind::Cancelled,
        // A shell says that there is no such command.
        ExitMeaning::Unknown if code == 127 => FailureKind::NotInstalled,
        ExitMeaning::General if stderr::is_usage(stderr) => {
            return Failure::new(FailureKind::Input, message).with_hint(
                "Gemini CLI did not accept its arguments; `gemini --help` lists those of this version.",
            );
        }
        // What it throws while it starts a second process, a sandbox for example, ends it with 1.
        ExitMeaning::General
            if let Some((kind, said)) =
                stderr::thrown(stderr).and_then(|(class, said)| Some((named(class)?, said))) =>
        {
            return of_kind(kind, said);
        }
        ExitMeaning::Http(status) => return call(Some(status), message, stderr).failure(),
        ExitMeaning::Done | ExitMeaning::General | ExitMeaning::Relaunch | ExitMeaning::Unknown => {
            return call(None, message, stderr).failure();
        }
    };
    of_kind(kind, message)
}

/// The code of a json report is an exit code or an HTTP status.
fn by_reported_code(code: i64, message: &str, stderr: &str) -> Failure {
    match (u16::try_from(code), i32::try_from(code)) {
        (Ok(status @ 400..600), _) => call(Some(status), message, stderr).failure(),
        (_, Ok(code)) => by_exit_code(code, message, stderr),
        _ => call(None, message, stderr).failure(),
    }
}

fn call<'a>(status: Option<u16>, message: &'a str, stderr: &'a str) -> api::Call<'a> {
    api::Call { status, message, logged: stderr::api_error(stderr) }
}

/// A failure of a known kind, with what to do about this one in particular.
fn of_kind(kind: FailureKind, message: &str) -> Failure {
    // What the CLI advises are options of its own; the hint names ours.
    let advice = (kind == FailureKind::Untrusted).then_some(" To proceed,");
    let message = advice.and_then(|advice| message.split_once(advice)).map_or(message, |(said, _)| said);
    let failure = Failure::new(kind, api::readable(message));
    let said = |words: &str| failure.message.contains(words);
    let hint = match kind {
        FailureKind::Auth if said("Invalid auth method") => {
            r#"Put {"security": {"auth": {"selectedType": "gemini-api-key"}}} into ~/.gemini/settings.json: with GOOGLE_GEMINI_BASE_URL set, Gemini CLI picks a sign-in that it then refuses."#
        }
        FailureKind::Auth if said("GEMINI_API_KEY environment variable") => {
            "Set GEMINI_API_KEY, or put GEMINI_API_KEY=... into ~/.gemini/.env."
        }
        FailureKind::Input if said("resuming session") || said("session identifier") => {
            "`gemini --list-sessions` lists this folder's sessions: give `resume` the id of one of them, or leave it out."
        }
        FailureKind::Input if said("already exists") => {
            "Take another `session_id`, or go on with that session by `resume`."
        }
        FailureKind::Input if said("No input provided") => "Give a prompt or a `prompt_file`.",
        _ => return failure,
    };
    failure.with_hint(hint)
}

#[cfg(test)]
mod tests;
