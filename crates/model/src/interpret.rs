//! From what Gemini CLI wrote to events and an outcome.
//!
//! The interpreter takes one line at a time and never looks back: all it keeps is what the outcome needs. It knows
//! what the stream leaves out (0.61.0): results carry no tool name, so calls are remembered by id (C-32); a write
//! has no diff; a command has no exit code; a cancelled call says success.

mod derive;

use std::borrow::Cow;
use std::collections::HashMap;

use alhena_wire::Count;
use alhena_wire::report::Report;
use alhena_wire::stream::{
    ErrorEvent, Message, ResultEvent, Role, Severity, Status, StreamEvent, ToolResult, ToolUse,
};
use alhena_wire::{frame, stream};
use serde_json::Value;

use crate::event::{Event, EventKind, Source, ToolError};
use crate::judge::{self, AfterResult, End, Exit, Facts, ResultFacts, Stop};
use crate::outcome::{Change, CommandRun, FileRecord, Outcome, Text};
use crate::time::Timestamp;
use crate::tool::{self, Class};
use crate::usage::{Tokens, Usage};

/// What the disk says of a file; the interpreter itself never looks.
pub trait Disk {
    /// The state of the file that a tool says it has written.
    fn look(&self, path: &str) -> DiskFact;
}

/// What the disk says of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFact {
    /// Nobody looked.
    Unknown,
    /// It is not there, or has not changed since the run began.
    Untouched,
    /// It is new since the run began.
    Created,
    /// It changed since the run began.
    Modified,
}

/// For recordings: the disk of that time is gone.
pub struct NoDisk;

impl Disk for NoDisk {
    fn look(&self, _path: &str) -> DiskFact {
        DiskFact::Unknown
    }
}

/// A call whose result has not come.
struct Pending {
    name: String,
    input: Value,
}

/// Turns lines into events, and in the end into an outcome.
pub struct Interpreter<D = NoDisk> {
    disk: D,
    seq: u64,
    now: Timestamp,
    first: Option<Timestamp>,
    pending: HashMap<String, Pending>,
    facts: Facts,
    outcome: Outcome,
    asked_model: Option<String>,
    stats_duration: Option<u64>,
    changing_tools: bool,
}

/// So many commands and open calls are remembered; a stream of a gigabyte must not fill the memory.
const MOST_KEPT: usize = 10_000;
const COMMAND_OUTPUT: usize = 64 << 10;

impl Interpreter<NoDisk> {
    /// An interpreter for recordings.
    pub fn new() -> Self {
        Self::with_disk(NoDisk)
    }
}

impl Default for Interpreter<NoDisk> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Disk> Interpreter<D> {
    /// An interpreter that checks claims against a disk.
    pub fn with_disk(disk: D) -> Self {
        Self {
            disk,
            seq: 0,
            now: Timestamp::default(),
            first: None,
            pending: HashMap::new(),
            facts: Facts::default(),
            outcome: Outcome::default(),
            asked_model: None,
            stats_duration: None,
            changing_tools: false,
        }
    }

    /// The time for events that carry none of their own.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Whether a tool call is open: silence is then no sign of trouble.
    pub fn tool_open(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the `result` has come.
    pub fn has_result(&self) -> bool {
        self.facts.result.is_some()
    }

    /// Whether a tool ran that could have changed files without saying so.
    pub fn may_have_changed_files(&self) -> bool {
        self.changing_tools
    }

    /// The files that tools say they have written.
    pub fn claimed_files(&self) -> &[FileRecord] {
        &self.outcome.files
    }

    /// One line of stream-json, without its end.
    pub fn line(&mut self, line: &[u8], out: &mut Vec<Event>) {
        match stream::parse_line(line) {
            Ok(event) => self.event(event, out),
            Err(_) => self.malformed(frame::sample(line), line.len() as u64, out),
        }
    }

    /// A line that is no event.
    pub fn malformed(&mut self, sample: String, bytes: u64, out: &mut Vec<Event>) {
        self.outcome.malformed.lines += 1;
        self.outcome.malformed.bytes += bytes;
        self.emit(Source::Stream, EventKind::Malformed { sample, bytes }, out);
    }

    /// One event of the stream.
    pub fn event(&mut self, event: StreamEvent<'_>, out: &mut Vec<Event>) {
        if let Some(time) = event.timestamp().and_then(Timestamp::parse) {
            self.now = time;
        }
        self.first.get_or_insert(self.now);
        match event {
            StreamEvent::Init(init) => {
                let (session_id, model) = (init.session_id.into_owned(), init.model.into_owned());
                self.outcome.session_id = Some(session_id.clone());
                self.asked_model = Some(model.clone());
                self.emit(Source::Stream, EventKind::Started { session_id, model }, out);
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

    fn message(&mut self, message: Message<'_>, out: &mut Vec<Event>) {
        let text = message.content.into_owned();
        match message.role {
            Role::User => self.emit(Source::Stream, EventKind::Prompt { text }, out), // A-19, C-34
            Role::Assistant | Role::Other(_) => {
                self.facts.answered |= !text.is_empty();
                self.outcome.text.push(&text);
                self.emit(Source::Stream, EventKind::Text { delta: text }, out);
            }
        }
    }

    fn tool_use(&mut self, call: ToolUse<'_>, out: &mut Vec<Event>) {
        let input: Value = call.parameters.decode().unwrap_or(Value::Null);
        let (id, name) = (call.tool_id.into_owned(), call.tool_name.into_owned());
        let class = tool::class(&name);
        self.outcome.tool_calls += 1;
        self.changing_tools |= class.may_change_files();
        if self.pending.len() < MOST_KEPT {
            let kept = derive::what_the_result_needs(class, &input);
            self.pending.insert(id.clone(), Pending { name: name.clone(), input: kept });
        }
        let claude_name = tool::claude_name(&name).into_owned();
        self.emit(Source::Stream, EventKind::ToolCall { id, name, class, claude_name, input }, out);
    }

    fn tool_result(&mut self, result: ToolResult<'_>, out: &mut Vec<Event>) {
        let id = result.tool_id.into_owned();
        let call = self.pending.remove(&id).unwrap_or(Pending { name: String::new(), input: Value::Null });
        let ok = result.status == Status::Success && result.error.is_none();
        let output = result.output.map(|output| output.into_owned());
        let error = result
            .error
            .map(|error| ToolError { kind: owned(error.kind), message: error.message.into_owned() });
        self.facts.answered = true;
        self.outcome.text.start_over();
        let class = tool::class(&call.name);
        let exit_code = (class == Class::Command).then(|| derive::exit_code(output.as_deref())).flatten();
        let ok = ok && exit_code.unwrap_or(0) == 0;
        let warning = error.as_ref().and_then(|error| derive::refused_tool(&call.name, &error.kind));
        self.emit(
            Source::Stream,
            EventKind::ToolResult {
                id: id.clone(),
                name: call.name.clone(),
                ok,
                output: output.clone(),
                error,
                exit_code,
                cancelled: None,
            },
            out,
        );
        if let Some(warning) = warning {
            self.warn(warning, out);
        }
        match class {
            Class::Command => self.command(id, &call, output, exit_code, out),
            Class::FileWrite if ok => self.file_written(id, &call, output, out),
            _ => {}
        }
    }

    /// C-28, C-29: the result of a shell call is a command and its output.
    fn command(
        &mut self,
        id: String,
        call: &Pending,
        output: Option<String>,
        exit_code: Option<i32>,
        out: &mut Vec<Event>,
    ) {
        let Some(command) = call.input.get("command").and_then(Value::as_str) else { return };
        if self.outcome.commands.len() < MOST_KEPT {
            let kept = output.as_deref().map(|output| derive::cut(output, COMMAND_OUTPUT));
            let run =
                CommandRun { call_id: id.clone(), command: command.to_owned(), exit_code, output: kept };
            self.outcome.commands.push(run);
        }
        let command = command.to_owned();
        self.emit(Source::Derived, EventKind::Command { call_id: id, command, output, exit_code }, out);
    }

    /// C-30: the successful result of a writing tool is a change of its file.
    fn file_written(&mut self, id: String, call: &Pending, output: Option<String>, out: &mut Vec<Event>) {
        let Some(path) = tool::written_path(&call.name, &call.input) else { return };
        let fact = self.disk.look(&path);
        let change = match fact {
            DiskFact::Created => Change::Created,
            DiskFact::Modified | DiskFact::Untouched => Change::Modified,
            DiskFact::Unknown if derive::creates(&call.name, &call.input) => Change::Created,
            DiskFact::Unknown => Change::Modified,
        };
        let verified = matches!(fact, DiskFact::Created | DiskFact::Modified);
        let diff = output.filter(|output| derive::looks_like_diff(output)); // C-31
        let change = crate::FileChange {
            path,
            change,
            tool: Some(call.name.clone()),
            call_id: Some(id),
            diff,
            verified,
        };
        self.record_file(&change);
        self.emit(Source::Derived, EventKind::FileChange(change), out);
    }

    /// one entry per file, in the order of the first write.
    fn record_file(&mut self, change: &crate::FileChange) {
        match self.outcome.files.iter_mut().find(|file| file.path == change.path) {
            Some(file) => {
                file.verified = change.verified;
                file.tool.clone_from(&change.tool);
                if file.change == Change::Deleted {
                    file.change = change.change;
                }
                if change.diff.is_some() {
                    file.diff.clone_from(&change.diff);
                }
            }
            None => self.outcome.files.push(FileRecord {
                path: change.path.clone(),
                change: change.change,
                tool: change.tool.clone(),
                claimed: change.tool.is_some(),
                verified: change.verified,
                diff: change.diff.clone(),
            }),
        }
    }

    /// A change that only the disk knows of.
    pub fn found_on_disk(&mut self, path: String, change: Change, out: &mut Vec<Event>) {
        let change =
            crate::FileChange { path, change, tool: None, call_id: None, diff: None, verified: true };
        self.record_file(&change);
        self.emit(Source::Derived, EventKind::FileChange(change), out);
    }

    /// Looks again at every file that a tool claims: the truth at the end of the run is what counts.
    pub fn verify_files(&mut self) {
        for file in self.outcome.files.iter_mut().filter(|file| file.claimed) {
            match self.disk.look(&file.path) {
                DiskFact::Unknown => {}
                DiskFact::Untouched => file.verified = false,
                DiskFact::Created => (file.verified, file.change) = (true, Change::Created),
                DiskFact::Modified => file.verified = true,
            }
        }
    }

    fn error(&mut self, error: ErrorEvent<'_>, out: &mut Vec<Event>) {
        let message = error.message.into_owned();
        match error.severity {
            Severity::Warning => {
                self.outcome.warnings.push(message.clone());
                self.emit(Source::Stream, EventKind::Warning { message }, out);
            }
            Severity::Error | Severity::Other(_) => {
                self.facts.errors.push(message.clone());
                self.emit(Source::Stream, EventKind::Error { message }, out);
            }
        }
    }

    fn result(&mut self, result: ResultEvent<'_>, out: &mut Vec<Event>) {
        if self.facts.result.is_some() {
            self.warn("Gemini CLI wrote a second result; the first one counts", out);
            return;
        }
        let success = result.status == Status::Success;
        let error = result.error.map(|error| (owned(error.kind), error.message.into_owned()));
        if let Some((_, message)) = &error {
            self.emit(Source::Stream, EventKind::Error { message: message.clone() }, out);
        }
        self.facts.result = Some(ResultFacts { success, error });
        if let Some(stats) = result.stats {
            self.take_usage(Usage::from(&*stats));
            self.stats_duration = stats.duration_ms.map(Count::get);
            let usage = self.outcome.usage.clone();
            self.emit(Source::Stream, EventKind::Usage(usage), out);
        }
    }

    fn take_usage(&mut self, usage: Usage) {
        self.facts.called |= usage.all.total > 0;
        let answered = usage.models.iter().filter(|(_, tokens)| tokens.total > 0);
        self.outcome.models = answered.map(|(name, _)| name.clone()).collect();
        self.outcome.usage = usage;
    }

    /// The whole of a json report, from standard output or, for fatal errors, from standard error.
    pub fn report(&mut self, report: Report<'_>, out: &mut Vec<Event>) {
        if let Some(session_id) = report.session_id {
            let session_id = session_id.into_owned();
            self.outcome.session_id = Some(session_id.clone());
            self.emit(Source::Stream, EventKind::Started { session_id, model: String::new() }, out);
        }
        if let Some(text) = report.response.filter(|text| !text.is_empty()) {
            self.facts.answered = true;
            self.outcome.text.push(&text);
            self.emit(Source::Stream, EventKind::Text { delta: text.into_owned() }, out);
        }
        for message in report.warnings.unwrap_or_default() {
            let message = message.into_owned();
            self.outcome.warnings.push(message.clone());
            self.emit(Source::Stream, EventKind::Warning { message }, out);
        }
        if let Some(stats) = report.stats {
            let models = stats.models.iter().flat_map(|models| models.iter());
            let tokens = models
                .map(|(name, model)| (name, model.tokens.as_ref().map(Tokens::from).unwrap_or_default()));
            self.take_usage(Usage::of_models(tokens));
            self.outcome.tool_calls = stats.tools.and_then(|tools| tools.total_calls).map_or(0, Count::get);
            self.facts.answered |= self.outcome.tool_calls > 0;
            let usage = self.outcome.usage.clone();
            self.emit(Source::Stream, EventKind::Usage(usage), out);
        }
        let error = report.error.map(|error| (owned(error.kind), owned(error.message)));
        if let Some((_, message)) = &error {
            self.emit(Source::Stream, EventKind::Error { message: message.clone() }, out);
        }
        self.facts.result = Some(ResultFacts { success: error.is_none(), error });
    }

    /// Plain text output: all of it is the model's answer, and its end is its result.
    pub fn plain_text(&mut self, text: &str, exit: Exit, out: &mut Vec<Event>) {
        if !text.is_empty() {
            self.facts.answered = true;
            self.outcome.text.push(text);
            self.emit(Source::Stream, EventKind::Text { delta: text.to_owned() }, out);
        }
        if exit == Exit::Code(0) {
            self.facts.called = true;
            self.facts.result = Some(ResultFacts { success: true, error: None });
        }
    }

    /// Alhena begins to stop the run now. The first reason counts.
    pub fn stopping(&mut self, stop: Stop) {
        let after = if self.facts.result.is_some() { AfterResult::Yes } else { AfterResult::No };
        self.facts.stop.get_or_insert((stop, after));
    }

    /// Something to know.
    pub fn warn(&mut self, message: impl Into<String>, out: &mut Vec<Event>) {
        let message = message.into();
        if !self.outcome.warnings.contains(&message) {
            self.outcome.warnings.push(message.clone());
            self.emit(Source::Derived, EventKind::Warning { message }, out);
        }
    }

    /// The process is gone: the verdict, and the last event.
    pub fn conclude(mut self, end: &End, out: &mut Vec<Event>) -> std::sync::Arc<Outcome> {
        if let (Some((Stop::NoExit, _)), true) = (self.facts.stop, self.has_result()) {
            self.warn("Gemini CLI did not exit after its result and was stopped", out);
        }
        if self.outcome.text.truncated() {
            self.warn(format!("The text is longer than {} bytes and was cut", Text::LIMIT), out);
        }
        let (status, failure) = judge::verdict(&self.facts, end);
        self.outcome.status = status;
        self.outcome.failure = failure;
        self.outcome.exit_code = match end.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Unknown => None,
        };
        if self.outcome.models.is_empty() {
            self.outcome.models.extend(self.asked_model.take());
        }
        let elapsed =
            self.first.map(|first| self.now.as_millis().saturating_sub(first.as_millis()).max(0) as u64);
        self.outcome.duration_ms =
            end.duration_ms.or(self.stats_duration.filter(|ms| *ms > 0)).or(elapsed).unwrap_or(0);
        let outcome = std::sync::Arc::new(std::mem::take(&mut self.outcome));
        self.emit(Source::Derived, EventKind::Finished { outcome: outcome.clone() }, out);
        outcome
    }

    fn emit(&mut self, source: Source, kind: EventKind, out: &mut Vec<Event>) {
        out.push(Event { seq: self.seq, at: self.now, source, kind });
        self.seq += 1;
    }
}

fn owned(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests;
