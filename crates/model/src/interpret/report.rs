//! The other two output formats of the CLI: the report of `json`, and plain text.
//!
//! Both are poorer than the stream (0.61.0): a report has only the text of the last turn, and of a turn limit that the core
//! counted only a warning; plain text has no end of its own.

use alhena_wire::Count;
use alhena_wire::report::Report;

use super::Interpreter;
use super::lines::owned;
use crate::event::{Event, EventKind, Source};
use crate::judge::{Exit, Output, ReportedError, ResultFacts};
use crate::usage::{Tokens, Usage};

/// What the stream calls an error, and a report only warns of.
const TURN_LIMIT: &str = "Maximum session turns exceeded";

impl Interpreter {
    /// The whole of a json report, from standard output or, for fatal errors, from standard error.
    pub(super) fn report(&mut self, report: Report<'_>, out: &mut Vec<Event>) {
        self.facts.output = Output::Events;
        if let Some(session_id) = report.session_id {
            let session_id = session_id.into_owned();
            self.outcome.session_id = Some(session_id.clone());
            self.emit(Source::Stream, EventKind::Started { session_id, model: String::new() }, out);
        }
        if let Some(text) = report.response.filter(|text| !text.is_empty()) {
            self.facts.answered |= !text.trim().is_empty();
            self.say(text.into_owned(), out);
        }
        for message in report.warnings.unwrap_or_default() {
            match &*message {
                TURN_LIMIT => self.serious(message.into_owned(), out),
                _ => self.warned(message.into_owned(), out),
            }
        }
        if let Some(stats) = report.stats {
            let models = stats.models.iter().flat_map(|models| models.iter());
            let calls = models.filter_map(|(_, model)| model.api.as_ref()?.total_requests);
            self.outcome.model_calls = calls.map(Count::get).fold(0, u64::saturating_add);
            let models = stats.models.iter().flat_map(|models| models.iter());
            let tokens = models
                .map(|(name, model)| (name, model.tokens.as_ref().map(Tokens::from).unwrap_or_default()));
            self.take_usage(Usage::of_models(tokens));
            self.outcome.tool_calls = stats.tools.and_then(|tools| tools.total_calls).map_or(0, Count::get);
            self.facts.answered |= self.outcome.tool_calls > 0;
        }
        let error = report.error.map(|error| ReportedError {
            code: error.code_number(),
            kind: owned(error.kind),
            message: owned(error.message),
        });
        if let Some(error) = &error {
            self.emit(Source::Stream, EventKind::Error { message: error.message.clone() }, out);
        }
        self.facts.result = Some(ResultFacts { success: error.is_none(), error });
    }

    /// Plain text output: all of it is the model's answer, and exit 0 stands in for a result.
    pub(super) fn plain_text(&mut self, text: &str, exit: Exit, out: &mut Vec<Event>) {
        self.facts.output = Output::Text;
        if !text.is_empty() {
            self.facts.answered |= !text.trim().is_empty();
            self.say(text.to_owned(), out);
        }
        if exit == Exit::Code(0) {
            self.facts.called = true;
            self.facts.result = Some(ResultFacts { success: true, error: None });
        }
    }
}
