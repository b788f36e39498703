//! The lines of stream-json, event by event.

use std::borrow::Cow;

use alhena_wire::Count;
use alhena_wire::stream::{self, ErrorEvent, Message, ResultEvent, Role, Severity, Status, StreamEvent};
use serde_json::Value;

use super::Interpreter;
use super::derive::PromptFile;
use crate::event::{Event, EventKind, Source};
use crate::judge::{Output, ReportedError, ResultFacts};
use crate::time::Timestamp;
use crate::usage::Usage;

/// How the CLI begins to say that it has stopped a model that repeats itself.
const LOOPED: &str = "Loop detected";

impl Interpreter {
    pub(super) fn take_line(&mut self, line: &[u8], out: &mut Vec<Event>) {
        match stream::parse_line(line) {
            Ok(event) => self.event(event, out),
            Err(error) => self.broken(line, &error, out),
        }
    }

    pub(super) fn malformed(&mut self, sample: String, bytes: u64, out: &mut Vec<Event>) {
        self.outcome.malformed.lines += 1;
        self.outcome.malformed.bytes = self.outcome.malformed.bytes.saturating_add(bytes);
        if self.facts.output == Output::Nothing {
            self.facts.output = Output::Noise;
        }
        self.emit(Source::Stream, EventKind::Malformed { sample, bytes }, out);
    }

    fn event(&mut self, event: StreamEvent<'_>, out: &mut Vec<Event>) {
        if let Some(time) = event.timestamp().and_then(Timestamp::parse) {
            self.now = time;
        }
        self.first.get_or_insert(self.now);
        self.facts.output = Output::Events;
        match event {
            StreamEvent::Init(init) => {
                self.started(init.session_id.into_owned(), init.model.into_owned(), out);
            }
            StreamEvent::Message(message) => self.message(message, out),
            StreamEvent::ToolUse(call) => self.tool_use(call, out),
            StreamEvent::ToolResult(result) => self.tool_result(result, out),
            StreamEvent::Error(error) => self.error(error, out),
            StreamEvent::Result(result) => self.result(result, out),
            StreamEvent::Unknown(unknown) => {
                let raw = unknown.raw.decode().unwrap_or(Value::Null);
                self.emit(Source::Stream, EventKind::Unknown { raw }, out);
            }
        }
    }

    pub(super) fn started(&mut self, session_id: String, model: String, out: &mut Vec<Event>) {
        let known = self.outcome.session_id.replace(session_id.clone());
        self.asked_model = Some(model.clone()).filter(|model| !model.is_empty());
        if self.attempts.are_several() && known.as_ref() == Some(&session_id) {
            return;
        }
        self.emit(Source::Stream, EventKind::Started { session_id, model }, out);
    }

    fn message(&mut self, message: Message<'_>, out: &mut Vec<Event>) {
        let text = message.content.into_owned();
        match message.role {
            Role::User => self.asked(text, out),
            Role::Assistant | Role::Other(_) => self.answered(text, out),
        }
    }

    pub(super) fn asked(&mut self, text: String, out: &mut Vec<Event>) {
        self.prompt_file = PromptFile::named_in(&text);
        if let Some(said) = &mut self.said {
            said.prompt(&text, self.now);
        }
        self.emit(Source::Stream, EventKind::Prompt { text }, out); // A-19, C-34
    }

    /// A piece of the model's answer.
    pub(super) fn answered(&mut self, text: String, out: &mut Vec<Event>) {
        self.open.model_goes_on();
        self.facts.answered = self.facts.answered || !text.trim().is_empty();
        self.say(text, out);
    }

    pub(super) fn say(&mut self, delta: String, out: &mut Vec<Event>) {
        self.outcome.text.push(&delta);
        if let Some(said) = &mut self.said {
            said.text(&delta, self.now);
        }
        self.emit(Source::Stream, EventKind::Text { delta }, out);
    }

    fn error(&mut self, error: ErrorEvent<'_>, out: &mut Vec<Event>) {
        let message = error.message.into_owned();
        match error.severity {
            Severity::Warning => self.warned(message, out),
            Severity::Error | Severity::Other(_) => self.serious(message, out),
        }
    }

    pub(super) fn warned(&mut self, message: String, out: &mut Vec<Event>) {
        self.facts.looped |= message.starts_with(LOOPED);
        self.kept.warning(&mut self.outcome, &message);
        self.emit(Source::Stream, EventKind::Warning { message }, out);
    }

    /// The CLI calls it an error: the run cannot be a success any more.
    pub(super) fn serious(&mut self, message: String, out: &mut Vec<Event>) {
        self.facts.error = Some(message.clone());
        self.emit(Source::Stream, EventKind::Error { message }, out);
    }

    fn result(&mut self, result: ResultEvent<'_>, out: &mut Vec<Event>) {
        let success = result.status == Status::Success;
        let error = result.error.map(|error| ReportedError {
            kind: owned(error.kind),
            message: error.message.into_owned(),
            code: None,
        });
        if let Some(error) = &error {
            self.failed(error.message.clone(), out);
        }
        let facts = ResultFacts { success: success && error.is_none(), error };
        if self.facts.result.is_some() {
            return self.second_result(facts, out);
        }
        self.facts.result = Some(facts);
        if let Some(stats) = result.stats {
            self.take_usage(self.attempts.with_those_before(Usage::from(&*stats)));
            self.stats_duration = stats.duration_ms.map(Count::get);
        }
    }

    /// The CLI writes one `result`. A second one does not make a failure good, and one of error takes a success back; but
    /// not when it is the answer to being stopped.
    fn second_result(&mut self, second: ResultFacts, out: &mut Vec<Event>) {
        let (word, counts) = match second.success {
            true => ("success", "the first one counts"),
            false if self.facts.stop.is_some() => {
                ("error", "the first one counts: it was being stopped by then")
            }
            false => ("error", "the run is no success"),
        };
        if !second.success && self.facts.stop.is_none() {
            self.facts.contradiction.get_or_insert(second);
        }
        self.warn(format!("Gemini CLI wrote a second result ({word}); {counts}"), out);
    }

    pub(super) fn take_usage(&mut self, usage: Usage) {
        self.facts.called |= usage.all.total > 0;
        let answered = usage.models.iter().filter(|(_, tokens)| tokens.total > 0);
        self.outcome.models = answered.map(|(name, _)| name.clone()).collect();
        self.outcome.usage = usage;
    }
}

pub(super) fn owned(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}
