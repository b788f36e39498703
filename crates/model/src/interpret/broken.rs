//! Lines that are no whole events, and what must not be overlooked in them.
//!
//! An error that came in a shape nobody knows is still an error, and a line that could not be read may have been the one
//! that says how the run ended. Neither may leave a success behind.

use alhena_wire::frame;
use alhena_wire::stream::LineError;
use serde::Deserialize;
use serde_json::Value;

use super::Interpreter;
use crate::event::Event;
use crate::judge::ResultFacts;

/// As much of an event as can be told from any shape.
#[derive(Deserialize)]
struct Broken {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: Value,
}

impl Interpreter {
    pub(super) fn broken(&mut self, line: &[u8], error: &LineError, out: &mut Vec<Event>) {
        self.malformed(frame::sample(line), line.len() as u64, out);
        if !matches!(error, LineError::WrongShape { .. }) {
            return;
        }
        let Ok(broken) = alhena_wire::from_slice::<Broken>(line) else { return };
        match broken.kind.as_str() {
            "error" => self.serious(said(&broken.message), out),
            "result" => self.unreadable_result("Gemini CLI wrote a result that cannot be read", out),
            _ => {}
        }
    }

    pub(super) fn too_long(&mut self, sample: String, bytes: u64, out: &mut Vec<Event>) {
        let what = sample.trim_start().strip_prefix(r#"{"type":""#).and_then(|rest| rest.split('"').next());
        let (what, lost) = match what {
            Some("message") => (LostLine::Other, "a part of the text is missing"),
            Some("tool_use") => (LostLine::Other, "a tool call is missing"),
            Some("tool_result") => (LostLine::Other, "the result of a tool call is missing"),
            Some("error") => (LostLine::Error, "it was an error"),
            Some("result") => (LostLine::Result, "it was the result of the run"),
            _ => (LostLine::Unknown, "what it said is missing"),
        };
        let message = format!("A line of {bytes} bytes was too long to be read: {lost}");
        self.malformed(sample, bytes, out);
        match what {
            LostLine::Error => self.serious(message, out),
            LostLine::Result => self.unreadable_result(&message, out),
            // What is no known event may have been a second `result`.
            LostLine::Unknown if self.has_result() => self.unreadable_result(&message, out),
            LostLine::Other | LostLine::Unknown => self.warn(message, out),
        }
    }

    /// Whatever other results say: this one may have said something else.
    fn unreadable_result(&mut self, message: &str, out: &mut Vec<Event>) {
        self.warn(message, out);
        if self.facts.stop.is_none() {
            let error = None;
            self.facts.contradiction.get_or_insert(ResultFacts { success: false, error });
            self.facts.error.get_or_insert_with(|| message.to_owned());
        }
    }
}

/// What a line was that could not be kept.
enum LostLine {
    Error,
    Result,
    Other,
    Unknown,
}

fn said(message: &Value) -> String {
    match message {
        Value::String(text) if !text.is_empty() => text.clone(),
        _ => "Gemini CLI reported an error in a form that is not known".to_owned(),
    }
}
