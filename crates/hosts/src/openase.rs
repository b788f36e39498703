//! OpenASE (Go): JSON lines for a chat and for a ticket's run.
//!
//! Its document wants exact wire types first and derived semantics after, marked as derived (C-16, C-17, C-31): Gemini CLI's
//! stream (0.61.0) has no diffs, no exit codes and no usage before the end, so a line either repeats what the CLI said or has
//! `"derived": true`, and fields that Alhena added to a line of the CLI are named in `derived_fields`.
//!
//! Every fact is one line. The six types in camel case are those that the document names for tickets (C-40); the others, in
//! snake case, are what a chat needs beside them (C-33 to C-39). A ticket's run takes the six and nothing else, and there is
//! no `TaskStatus`, because the CLI never says such a thing (C-19, C-41).

mod diff;
mod line;

use alhena_model::tool::{self, Class};
use alhena_model::{Event, EventKind, Failure, FileChange, Outcome, Reported, Source, Usage};
use serde_json::Value;

pub use line::{
    Line, LineKind, Output, OutputStream, Severity, TokenCounts, TokenUsage, ToolResult, ToolStatus, Verdict,
};

/// Which lines are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All of them.
    #[default]
    Chat,
    /// Only the six types of a ticket's run.
    Ticket,
}

/// The lines of one event, in order.
pub fn lines(event: &Event, mode: Mode) -> Vec<Line> {
    let mut lines = all_lines(event);
    if mode == Mode::Ticket {
        lines.retain(Line::is_for_tickets);
    }
    lines
}

fn all_lines(event: &Event) -> Vec<Line> {
    let derived = event.source == Source::Derived;
    let line = |kind: LineKind, derived: bool| Line::new(event.at, kind, derived);
    let one = |kind: LineKind| vec![line(kind, derived)];
    match &event.kind {
        EventKind::Started { session_id, model } => {
            one(LineKind::SessionAnchor { session_id: session_id.clone(), model: model.clone() })
        }
        EventKind::Prompt { text } => one(LineKind::UserMessage { text: text.clone() }),
        EventKind::Text { delta } => one(LineKind::OutputProduced(Output {
            stream: OutputStream::Assistant,
            text: delta.clone(),
            snapshot: false,
            tool_id: None,
            command: None,
            exit_code: None,
        })),
        EventKind::Thinking { subject, text } => {
            one(LineKind::Thinking { subject: subject.clone(), text: text.clone() })
        }
        EventKind::ToolCall { id, name, class, input, .. } => one(LineKind::ToolCallRequested {
            tool_id: id.clone(),
            tool_name: name.clone(),
            class: *class,
            command: command_of(*class, input),
            arguments: (**input).clone(),
        }),
        EventKind::ToolResult { id, name, output, .. } => {
            let result = tool_result(&event.kind).map(|kind| line(kind, derived));
            let printed = printed_diffs(id, name, output.as_deref()).into_iter().map(|kind| line(kind, true));
            result.into_iter().chain(printed).collect()
        }
        EventKind::Command { call_id, command, output, exit_code } => one(LineKind::OutputProduced(Output {
            stream: OutputStream::Command,
            text: output.clone().unwrap_or_default(),
            snapshot: true,
            tool_id: Some(call_id.clone()),
            command: Some(command.clone()),
            exit_code: *exit_code,
        })),
        // A change of a file is always worked out, whoever reports the event.
        EventKind::FileChange(change) => mutation(change).into_iter().map(|kind| line(kind, true)).collect(),
        EventKind::Warning { message } => one(trace(Severity::Warning, message.clone())),
        EventKind::Error { message } => one(trace(Severity::Error, message.clone())),
        EventKind::Malformed { sample, bytes } => {
            vec![line(trace(Severity::Warning, format!("{bytes} bytes are no event: {sample}")), true)]
        }
        EventKind::Unknown { raw } => {
            vec![line(trace(Severity::Warning, format!("an event of an unknown type: {raw}")), true)]
        }
        // The end has the better figures, once.
        EventKind::Usage(_) => Vec::new(),
        EventKind::Finished { outcome } => {
            // The verdict is Alhena's; the CLI's `result` alone is no proof.
            ending(outcome).into_iter().map(|(kind, derived)| line(kind, derived)).collect()
        }
        // C-33 to C-41 have no line for anything else.
        _ => Vec::new(),
    }
}

fn trace(severity: Severity, message: String) -> LineKind {
    LineKind::Trace { severity, message }
}

/// C-28: only a shell command has a command line.
fn command_of(class: Class, input: &Value) -> Option<String> {
    let command = input.get("command").and_then(Value::as_str).filter(|_| class == Class::Command)?;
    Some(command.to_owned())
}

fn tool_result(kind: &EventKind) -> Option<LineKind> {
    let EventKind::ToolResult { id, name, ok, output, error, exit_code, cancelled } = kind else {
        return None;
    };
    let status = match (cancelled, ok) {
        (Some(true), _) => ToolStatus::Cancelled,
        (_, true) => ToolStatus::Success,
        (_, false) => ToolStatus::Error,
    };
    Some(LineKind::ToolResult(ToolResult {
        tool_id: id.clone(),
        tool_name: name.clone(),
        class: tool::class(name),
        status,
        output: output.clone(),
        error: error.as_deref().cloned(),
        exit_code: *exit_code,
    }))
}

/// C-31: the unified diffs that a tool printed. Those of a tool that writes files come with the change of the file.
fn printed_diffs(id: &str, name: &str, output: Option<&str>) -> Vec<LineKind> {
    let output = output.filter(|_| tool::class(name) != Class::FileWrite);
    let found = output.map(diff::find).unwrap_or_default();
    let updated = |found: diff::FileDiff| LineKind::TurnDiffUpdated {
        path: found.path,
        diff: found.diff.to_owned(),
        tool_id: Some(id.to_owned()),
    };
    found.into_iter().map(updated).collect()
}

fn mutation(change: &FileChange) -> Vec<LineKind> {
    let mut lines = vec![LineKind::FileMutation {
        path: change.path.clone(),
        change: change.change,
        tool_id: change.call_id.clone(),
        tool_name: change.tool.clone(),
        verified: change.verified,
    }];
    lines.extend(change.diff.as_ref().map(|diff| LineKind::TurnDiffUpdated {
        path: change.path.clone(),
        diff: diff.clone(),
        tool_id: change.call_id.clone(),
    }));
    lines
}

/// The last lines, each with whether it is derived: a verdict is the CLI's where it said the same, and Alhena's where it
/// said something else (success, and then exit code 3) or nothing. The CLI's word stands beside it.
fn ending(outcome: &Outcome) -> Vec<(LineKind, bool)> {
    let mut lines = Vec::new();
    if !outcome.usage.models.is_empty() || outcome.usage.all.total > 0 {
        // Without a `result` the CLI gave no sums.
        let derived = outcome.reported.is_none();
        lines.push((LineKind::TokenUsageUpdated(TokenUsage::from(&outcome.usage)), derived));
    }
    // C-09: an `error` event is no failure of the turn when nothing else is wrong.
    lines.push(match &outcome.failure {
        Some(failure) if !failure.by_error_event => failed(outcome, failure),
        other => completed(outcome, other.as_ref()),
    });
    lines
}

fn completed(outcome: &Outcome, failure: Option<&Failure>) -> (LineKind, bool) {
    let (cli_status, exit_code) = (outcome.reported, outcome.exit_code);
    let said_so = cli_status == Some(Reported::Success) && matches!(exit_code, None | Some(0));
    let verdict = |failure: &Failure| Verdict {
        kind: failure.kind,
        message: failure.message.clone(),
        hint: failure.hint.clone(),
    };
    let completed = LineKind::TurnCompleted {
        session_id: outcome.session_id.clone(),
        text: outcome.text.all().to_owned(),
        final_text: outcome.text.last().to_owned(),
        data: outcome.data.clone(),
        duration_ms: outcome.duration_ms,
        tool_calls: outcome.tool_calls,
        cli_status,
        exit_code,
        failure: failure.map(verdict),
    };
    (completed, !said_so)
}

fn failed(outcome: &Outcome, failure: &Failure) -> (LineKind, bool) {
    let failed = LineKind::TurnFailed {
        session_id: outcome.session_id.clone(),
        kind: failure.kind,
        message: failure.message.clone(),
        hint: failure.hint.clone(),
        cli_status: outcome.reported,
        cli_error: failure.reported.clone(),
        exit_code: failure.exit_code,
        http_status: failure.http_status,
        retry_after_ms: failure.retry_after_ms,
        text: outcome.text.all().to_owned(),
        duration_ms: outcome.duration_ms,
    };
    (failed, outcome.reported != Some(Reported::Error))
}

impl From<&Usage> for TokenUsage {
    fn from(usage: &Usage) -> Self {
        let counts = |tokens: &alhena_model::Tokens| TokenCounts {
            input_tokens: tokens.prompt,
            cached_input_tokens: tokens.cached,
            output_tokens: tokens.output,
            reasoning_tokens: tokens.thoughts,
            total_tokens: tokens.total,
        };
        let models = usage.models.iter().map(|(name, tokens)| (name.clone(), counts(tokens))).collect();
        TokenUsage { total: counts(&usage.all), models }
    }
}

#[cfg(test)]
mod tests;
