//! Calls of tools, what comes back, and the commands and files that follow from it.

use alhena_wire::stream::{Status, ToolResult, ToolUse};
use serde_json::Value;

use super::derive::{self, Ran};
use super::input::DiskFact;
use super::kept::{Call, Remembered};
use super::waiting::{Returned, Testimony};
use super::whole::States;
use super::{Interpreter, owned};
use crate::event::{Event, EventKind, FileChange, Source, ToolError};
use crate::outcome::{Change, CommandRun};
use crate::tool::{self, Class};

/// What others saw of a file that a tool says it has written.
struct Seen {
    created: Option<bool>,
    disk: DiskFact,
}

impl Interpreter {
    pub(super) fn tool_use(&mut self, call: ToolUse<'_>, out: &mut Vec<Event>) {
        let input: Value = call.parameters.decode().unwrap_or(Value::Null);
        let (id, name) = (call.tool_id.into_owned(), call.tool_name.into_owned());
        let class = tool::class(&name);
        self.outcome.tool_calls += 1;
        self.open.model_goes_on();
        if self.open.add(&id, &name, derive::what_the_result_needs(class, &input)) == Remembered::No {
            self.changing_tools |= class.may_change_files();
        }
        if let Some(file) = &mut self.prompt_file {
            file.call(&id, class, &input);
        }
        let claude_name = tool::claude_name(&name).into_owned();
        self.emit(
            Source::Stream,
            EventKind::ToolCall { id, name, class, claude_name, input: Box::new(input) },
            out,
        );
    }

    pub(super) fn tool_result(&mut self, result: ToolResult<'_>, out: &mut Vec<Event>) {
        let result = Returned {
            id: result.tool_id.into_owned(),
            success: result.status == Status::Success,
            output: result.output.map(|output| output.into_owned()),
            error: result
                .error
                .map(|error| ToolError { kind: owned(error.kind), message: error.message.into_owned() }),
            at: self.now,
        };
        let claimed = self.open.get(&result.id).filter(|_| result.success && result.error.is_none());
        let file = claimed.and_then(|call| {
            let writes = tool::class(&call.name) == Class::FileWrite;
            writes.then(|| tool::written_path(&call.name, &call.input)).flatten()
        });
        if let Some((result, testimony)) = self.waiting.result(result, file) {
            self.returned(result, testimony, out);
        }
    }

    /// A result of which everything is known that will be.
    pub(super) fn returned(&mut self, result: Returned, testimony: Testimony, out: &mut Vec<Event>) {
        let Returned { id, success, output, error, at } = result;
        let Testimony { fact, disk } = testimony;
        self.now = at;
        let call = self.open.take(&id).unwrap_or_else(Call::unknown);
        (self.facts.answered, self.facts.tool_came_back) = (true, true);
        self.outcome.text.start_over();
        let class = tool::class(&call.name);
        let source = if fact.is_some() { Source::Session } else { Source::Stream };
        let fact = fact.unwrap_or_default();
        let ran = derive::ran(class, output.as_deref(), error.as_ref()).knowing(&fact);
        // Of a command the stream shows all that it printed; of other tools only a summary.
        let output = if class == Class::Command { output.or(fact.output) } else { fact.output.or(output) };
        let ok = success && error.is_none() && ran.well();
        let unread = self.prompt_file.as_ref().and_then(|file| file.result(&id, error.as_ref()));
        let warning = unread.or_else(|| derive::refusal(&call.name, ran, error.as_ref(), &self.denied));
        self.changing_tools |= ran != Ran::Not && class.may_change_files();
        // Outputs are large: a second one only for what is derived from it.
        let again = matches!(class, Class::Command | Class::FileWrite).then(|| output.clone()).flatten();
        self.emit(
            source,
            EventKind::ToolResult {
                id: id.clone(),
                name: call.name.clone(),
                ok,
                output,
                error: error.map(Box::new),
                exit_code: ran.exit_code(),
                cancelled: (ran == Ran::Cancelled).then_some(true),
            },
            out,
        );
        if let Some(warning) = warning {
            self.warn(warning, out);
        }
        match class {
            Class::Command if ran != Ran::Not => self.command(id, &call, again, ran.exit_code(), out),
            Class::FileWrite if ok => {
                let diff = fact.diff.or(again.filter(|output| derive::looks_like_diff(output))); // C-31
                let states = States { before: fact.before, after: fact.after };
                let seen = Seen { created: fact.created, disk: disk.unwrap_or(DiskFact::Unknown) };
                self.file_written(id, &call, diff, seen, states, out);
            }
            _ => {}
        }
    }

    /// C-28, C-29: the result of a shell call is a command and its output.
    fn command(
        &mut self,
        id: String,
        call: &Call,
        output: Option<String>,
        exit_code: Option<i32>,
        out: &mut Vec<Event>,
    ) {
        let Some(command) = call.input.get("command").and_then(Value::as_str) else { return };
        let command = command.to_owned();
        let run = CommandRun { call_id: id.clone(), command: command.clone(), exit_code, output: None };
        self.kept.command(&mut self.outcome, run, output.as_deref());
        self.emit(Source::Derived, EventKind::Command { call_id: id, command, output, exit_code }, out);
    }

    /// C-30: the successful result of a writing tool is a change of its file.
    fn file_written(
        &mut self,
        id: String,
        call: &Call,
        diff: Option<String>,
        seen: Seen,
        states: States,
        out: &mut Vec<Event>,
    ) {
        let Some(path) = tool::written_path(&call.name, &call.input) else { return };
        let change = match seen.disk {
            _ if seen.created == Some(true) => Change::Created,
            _ if seen.created == Some(false) => Change::Modified,
            DiskFact::Created => Change::Created,
            DiskFact::Modified | DiskFact::Untouched => Change::Modified,
            DiskFact::Unknown if derive::creates(&call.name, &call.input) => Change::Created,
            DiskFact::Unknown => Change::Modified,
        };
        let verified = matches!(seen.disk, DiskFact::Created | DiskFact::Modified);
        let tool = Some(call.name.clone());
        let change = FileChange { path, change, tool, call_id: Some(id), diff, verified };
        self.kept.file(&mut self.outcome, &change, states);
        self.emit(Source::Derived, EventKind::FileChange(change), out);
    }

    /// A change that only the disk knows of.
    pub(super) fn found_on_disk(&mut self, path: String, change: Change, out: &mut Vec<Event>) {
        let change = FileChange { path, change, tool: None, call_id: None, diff: None, verified: true };
        self.kept.file(&mut self.outcome, &change, States::default());
        self.emit(Source::Derived, EventKind::FileChange(change), out);
    }

    /// The disk was asked again for a file that a tool claims: the truth at the end of the run is what counts.
    pub(super) fn verify(&mut self, path: &str, state: DiskFact) {
        let file = self.kept.place_of(path).and_then(|at| self.outcome.files.get_mut(at));
        let Some(file) = file.filter(|file| file.claimed) else { return };
        match state {
            DiskFact::Unknown => {}
            DiskFact::Untouched => file.verified = false,
            DiskFact::Created => (file.verified, file.change) = (true, Change::Created),
            DiskFact::Modified => file.verified = true,
        }
    }
}
