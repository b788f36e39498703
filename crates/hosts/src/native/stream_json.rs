//! `stream-json`: the CLI's lines as they came, with a `result` that is true.

use std::borrow::Cow;

use alhena_model::{Event, EventKind, Outcome, Timestamp, Tokens};
use alhena_wire::stream::{self, Status, StreamEvent};
use serde_json::{Value, json};

use super::{error_message, error_type};
use crate::with;

/// Watches the lines that are passed on, and knows what is missing when they end.
///
/// A run can be of several attempts, each a CLI of its own in the same session. There is one `init` and one `result` all the same:
/// a failure that was followed by another attempt is no end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamJson {
    session: Option<String>,
    /// Whether the last `result` speaks of success.
    told_success: Option<bool>,
    /// The `result`, until it is known to be the last and to be true.
    held: Option<Vec<u8>>,
    several: bool,
}

impl StreamJson {
    /// A line of the CLI: gives what is to be passed on now.
    pub fn line<'l>(&mut self, line: &'l [u8]) -> impl Iterator<Item = Cow<'l, [u8]>> + use<'l> {
        let pass = self.passes(line);
        let before = self.held.take_if(|_| pass == Pass::Now).map(Cow::Owned);
        if pass == Pass::Later {
            self.held = Some(line.to_vec());
        }
        before.into_iter().chain((pass == Pass::Now).then_some(Cow::Borrowed(line)))
    }

    /// Returns the `result` that was kept back, when no other line comes. A success that the outcome denies is dropped, because a
    /// host may stop reading at the first `result`.
    pub fn rest(&mut self, outcome: &Outcome) -> Option<Vec<u8>> {
        let is_lie = self.told_success == Some(true) && !outcome.is_success();
        self.held.take().filter(|_| !is_lie)
    }

    fn passes(&mut self, line: &[u8]) -> Pass {
        const MARKS: [&[u8]; 2] = [b"\"result\"", b"\"init\""];
        if !MARKS.iter().any(|mark| line.windows(mark.len()).any(|bytes| bytes == *mark)) {
            return Pass::Now;
        }
        match stream::parse_line(line) {
            Ok(StreamEvent::Init(init)) if self.session.as_deref() == Some(&*init.session_id) => {
                self.several = true;
                (self.held, self.told_success) = (None, None);
                Pass::Never
            }
            Ok(StreamEvent::Init(init)) => {
                self.session.get_or_insert_with(|| init.session_id.into_owned());
                Pass::Now
            }
            // It counts only what its own process did.
            Ok(StreamEvent::Result(_)) if self.several => Pass::Never,
            Ok(StreamEvent::Result(result)) => {
                let success = result.status == Status::Success;
                let first = self.told_success.replace(success).is_none();
                if first { Pass::Later } else { Pass::Now }
            }
            _ => Pass::Now,
        }
    }

    /// The lines to add when the run is over: none when the CLI's last `result` says the same as the outcome. The
    /// caller ends an unfinished last line of the CLI first.
    pub fn close(&self, outcome: &Outcome, at: Timestamp) -> Vec<String> {
        let truthful = self.told_success == Some(outcome.is_success());
        if truthful { Vec::new() } else { vec![result_line(outcome, at)] }
    }
}

/// When a line is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Now,
    Later,
    Never,
}

fn result_line(outcome: &Outcome, at: Timestamp) -> String {
    let status = if outcome.is_success() { "success" } else { "error" };
    let line = json!({"type": "result", "timestamp": at, "status": status});
    let error = outcome
        .failure
        .as_ref()
        .map(|failure| json!({"type": error_type(failure), "message": error_message(failure)}));
    with(line, [("error", error), ("stats", Some(stats(outcome)))]).to_string()
}

/// `stats` as the CLI's own `result` has them.
pub(super) fn stats(outcome: &Outcome) -> Value {
    let models = outcome.usage.models.iter().map(|(name, model)| (name.clone(), tokens(model)));
    let more = [
        ("duration_ms", Some(outcome.duration_ms.into())),
        ("tool_calls", Some(outcome.tool_calls.into())),
        ("models", Some(Value::Object(models.collect()))),
    ];
    with(tokens(&outcome.usage.all), more)
}

fn tokens(tokens: &Tokens) -> Value {
    json!({
        "total_tokens": tokens.total,
        "input_tokens": tokens.prompt,
        "output_tokens": tokens.output,
        "cached": tokens.cached,
        "input": tokens.prompt.saturating_sub(tokens.cached),
    })
}

/// The event as the CLI would have written it, for runs and recordings that came in another form. Derived events and those
/// that the stream does not carry give none; the `result` comes from [`StreamJson::close`].
pub fn line_for(event: &Event) -> Option<String> {
    let at = event.at;
    let line = match &event.kind {
        EventKind::Started { session_id, model } => {
            json!({"type": "init", "timestamp": at, "session_id": session_id, "model": model})
        }
        EventKind::Prompt { text } => {
            json!({"type": "message", "timestamp": at, "role": "user", "content": text})
        }
        EventKind::Text { delta } => {
            json!({"type": "message", "timestamp": at, "role": "assistant", "content": delta, "delta": true})
        }
        EventKind::ToolCall { id, name, input, .. } => {
            json!({"type": "tool_use", "timestamp": at, "tool_name": name, "tool_id": id, "parameters": input})
        }
        EventKind::ToolResult { id, ok, output, error, .. } => {
            let status = if *ok { "success" } else { "error" };
            let line = json!({"type": "tool_result", "timestamp": at, "tool_id": id, "status": status});
            let output = output.as_ref().map(|output| json!(output));
            with(line, [("output", output), ("error", error.as_ref().map(|error| json!(error)))])
        }
        EventKind::Warning { message } => error_line(at, "warning", message),
        EventKind::Error { message } => error_line(at, "error", message),
        EventKind::Unknown { raw } => raw.clone(),
        // Thoughts, files, commands, usage, garbage, the end, and whatever the CLI's stream has no word for.
        _ => return None,
    };
    Some(line.to_string())
}

fn error_line(at: Timestamp, severity: &str, message: &str) -> Value {
    json!({"type": "error", "timestamp": at, "severity": severity, "message": message})
}
