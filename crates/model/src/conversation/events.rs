//! Events are the conversation as it grows.

use std::borrow::Cow;

use alhena_wire::session::shell_output;
use serde_json::Value;

use super::shown::is_notice;
use super::{Entry, ToolEnd};
use crate::event::{CallUsage, Event, EventKind, FileChange, Source, ToolError};
use crate::interpret::DiskFact;
use crate::message::Role;
use crate::outcome::Change;
use crate::time::Timestamp;
use crate::tool::{self, Class};
use crate::usage::{Tokens, Usage};

/// The events that a run of these entries would have given. How the process ended is nowhere in a session, so there is no
/// `finished`.
pub fn events(entries: &[Entry<'_>]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut at = Timestamp::default();
    let mut calls = 0;
    for entry in entries {
        at = entry.at.unwrap_or(at);
        entry.each_event(|source, mut kind| {
            if let EventKind::Usage(usage) = &mut kind {
                calls += 1;
                usage.call = Some(calls);
            }
            events.push(Event { seq: events.len() as u64, at, source, kind });
        });
    }
    events
}

impl Entry<'_> {
    /// A model thinks, speaks, and then calls tools; messages have their text last, as Claude's hosts expect it.
    fn each_event(&self, mut emit: impl FnMut(Source, EventKind)) {
        for thought in &self.thoughts {
            let subject = thought.subject.as_deref().unwrap_or("").to_owned();
            emit(Source::Session, EventKind::Thinking { subject, text: thought.text.to_string() });
        }
        let alone = self.thoughts.is_empty() && self.runs.is_empty() && self.images.is_empty();
        if !self.text.trim().is_empty() || (alone && !self.text.is_empty()) {
            let text = self.text.to_string();
            emit(
                Source::Session,
                match self.role {
                    Role::User => EventKind::Prompt { text },
                    Role::Assistant => EventKind::Text { delta: text },
                },
            );
        }
        for run in &self.runs {
            emit(Source::Session, call(run.id.to_string(), run.name.to_string(), run.input.clone()));
            if let Some(end) = &run.end {
                let ended =
                    EndedCall { id: &run.id, name: &run.name, input: &run.input, disk: DiskFact::Unknown };
                let (result, derived) = ended.events((**end).clone());
                emit(Source::Session, result);
                if let Some(derived) = derived {
                    emit(Source::Derived, derived);
                }
            }
        }
        if let Some(tokens) = &self.tokens {
            let usage = usage_of(self.model.as_deref(), tokens.count, None);
            emit(Source::Session, EventKind::Usage(CallUsage { call: None, usage }));
        }
    }
}

/// The tokens of one answer, and what they cost.
pub(crate) fn usage_of(model: Option<&str>, tokens: Tokens, cost_usd: Option<f64>) -> Usage {
    Usage { cost_usd, ..Usage::of_models([(model.unwrap_or("unknown"), tokens)]) }
}

pub(crate) fn call(id: String, name: String, input: Value) -> EventKind {
    let (class, claude_name) = (tool::class(&name), tool::claude_name(&name).into_owned());
    EventKind::ToolCall { id, name, class, claude_name, input: Box::new(input) }
}

pub(crate) struct EndedCall<'c> {
    pub id: &'c str,
    pub name: &'c str,
    /// Its arguments, or what of them the interpreter keeps.
    pub input: &'c Value,
    /// What the disk says of the file that it names.
    pub disk: DiskFact,
}

impl EndedCall<'_> {
    /// The result, and the command or the change that follows from it.
    pub(crate) fn events(&self, mut end: ToolEnd<'_>) -> (EventKind, Option<EventKind>) {
        let class = tool::class(self.name);
        let output = end.take_output(class);
        let derived = match class {
            Class::Command => self.command(&end, output.as_deref()), // C-28, C-29
            Class::FileWrite => self.change(&mut end, output.as_deref()), // C-30
            _ => None,
        };
        let result = EventKind::ToolResult {
            id: self.id.to_owned(),
            name: self.name.to_owned(),
            ok: end.is_ok(),
            error: end.failure(output.as_deref()).map(Box::new),
            output: output.map(Cow::into_owned),
            exit_code: end.exit_code,
            cancelled: end.cancelled.then_some(true),
        };
        (result, derived)
    }

    fn command(&self, end: &ToolEnd<'_>, output: Option<&str>) -> Option<EventKind> {
        let command = self.input.get("command")?.as_str().filter(|_| !end.refused)?.to_owned();
        let (call_id, output) = (self.id.to_owned(), output.map(str::to_owned));
        Some(EventKind::Command { call_id, command, output, exit_code: end.exit_code })
    }

    fn change(&self, end: &mut ToolEnd<'_>, output: Option<&str>) -> Option<EventKind> {
        let path = tool::written_path(self.name, self.input).filter(|_| end.is_ok())?;
        let created = end.created.unwrap_or(match self.disk {
            DiskFact::Created => true,
            DiskFact::Modified | DiskFact::Untouched => false,
            DiskFact::Unknown => self.creates(),
        });
        let shown = output.filter(|output| looks_like_diff(output)); // C-31
        Some(EventKind::FileChange(FileChange {
            path,
            change: if created { Change::Created } else { Change::Modified },
            tool: Some(self.name.to_owned()),
            call_id: Some(self.id.to_owned()),
            diff: end.diff.take().map(Cow::into_owned).or_else(|| shown.map(str::to_owned)),
            verified: matches!(self.disk, DiskFact::Created | DiskFact::Modified),
        }))
    }

    /// Without a look at the disk: `write_file` is taken for a new file, and so is a replacement of nothing.
    fn creates(&self) -> bool {
        let replaced = self.input.get("old_string");
        self.name == "write_file"
            || replaced.is_some_and(|old| matches!(old.as_str(), Some("")) || old == true)
    }
}

impl<'a> ToolEnd<'a> {
    /// What it printed: of a command without what the CLI writes around it for the model, and whole, as a person is shown it;
    /// of other tools what the model was told, as a person is shown only a summary.
    fn take_output(&mut self, class: Class) -> Option<Cow<'a, str>> {
        let (told, shown) = (self.output.take(), self.shown.take());
        if class != Class::Command {
            return told.or(shown);
        }
        // Of a command that printed nothing a person is told how it ended.
        if shown.is_some() && (told.is_none() || !shown.as_deref().is_some_and(is_notice)) {
            return shown;
        }
        told.map(|told| match told {
            Cow::Borrowed(told) => Cow::Borrowed(printed(told)),
            Cow::Owned(told) => Cow::Owned(printed(&told).to_owned()),
        })
    }

    /// Why it failed, in the CLI's words, if it did.
    fn failure(&self, output: Option<&str>) -> Option<ToolError> {
        let message = self.error.as_deref().or(output.filter(|_| self.failed))?.to_owned();
        let unnamed = if self.cancelled { "cancelled" } else { "error" };
        Some(ToolError { kind: self.error_type.as_deref().unwrap_or(unnamed).to_owned(), message })
    }
}

fn printed(told: &str) -> &str {
    match shell_output(told) {
        "(empty)" => "",
        printed => printed,
    }
}

/// Whether text is a unified diff; the CLI's experimental agent loop prints those.
fn looks_like_diff(text: &str) -> bool {
    let mut lines = text.lines().take(200);
    let headed = lines.by_ref().any(|line| line.starts_with("--- "))
        && lines.next().is_some_and(|line| line.starts_with("+++ "));
    headed && lines.any(|line| line.starts_with("@@ "))
}
