//! Calls of tools, what comes back, and the commands and files that follow from it.

use alhena_wire::stream::{Status, ToolResult, ToolUse};
use serde_json::Value;

use super::Interpreter;
use super::derive;
use super::input::DiskFact;
use super::kept::Call;
use super::lines::owned;
use super::waiting::{Returned, Testimony};
use super::whole::States;
use crate::answer;
use crate::conversation::{self, EndedCall, ToolEnd};
use crate::event::{Event, EventKind, FileChange, Source, ToolError};
use crate::outcome::{Change, CommandRun};
use crate::tool::{self, Class};

impl Interpreter {
    pub(super) fn tool_use(&mut self, call: ToolUse<'_>, out: &mut Vec<Event>) {
        let input: Value = call.parameters.decode().unwrap_or(Value::Null);
        let (id, name) = (call.tool_id.into_owned(), call.tool_name.into_owned());
        self.remember(&id, &name, &input);
        self.announce(id, name, input, out);
    }

    /// A call begins: until its result comes it is open.
    pub(super) fn remember(&mut self, id: &str, name: &str, input: &Value) {
        let class = tool::class(name);
        self.outcome.tool_calls += 1;
        self.open.model_goes_on();
        if let Some(acp) = &mut self.acp {
            acp.watch.model_speaks(self.now);
            acp.watch.tool_begins(id, self.now);
        }
        if !self.open.add(id, name, derive::what_the_result_needs(class, input)) {
            self.changing_tools |= class.may_change_files();
        }
        if let Some(file) = &mut self.prompt_file {
            file.call(id, class, input);
        }
    }

    pub(super) fn announce(&mut self, id: String, name: String, input: Value, out: &mut Vec<Event>) {
        if let Some(said) = &mut self.said {
            said.call(&id, &name, &input, self.now);
        }
        self.emit(Source::Stream, conversation::call(id, name, input), out);
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
            detail: None,
        };
        self.came_back(result, out);
    }

    /// A result waits for what others say of it, if anybody does.
    pub(super) fn came_back(&mut self, result: Returned, out: &mut Vec<Event>) {
        let file = self.claimed_file(&result.id).filter(|_| result.success && result.error.is_none());
        if let Some((result, testimony)) = self.waiting.result(result, file) {
            self.returned(result, testimony, out);
        }
    }

    /// The file that a call says it writes, as far as its arguments are known.
    pub(super) fn claimed_file(&self, id: &str) -> Option<String> {
        let call = self.open.get(id).filter(|call| tool::class(&call.name) == Class::FileWrite)?;
        tool::written_path(&call.name, self.arguments_of(id).unwrap_or(&call.input))
    }

    /// A result of which everything is known that will be.
    pub(super) fn returned(&mut self, result: Returned, testimony: Testimony, out: &mut Vec<Event>) {
        let Returned { id, mut success, mut output, mut error, at, detail } = result;
        let Testimony { mut fact, disk } = testimony;
        self.now = at;
        let mut call = self.open.take(&id).unwrap_or_else(Call::unknown);
        if error.as_ref().is_some_and(|error| answer::is_taken(&call.name, error)) {
            (success, output, error, fact) = (true, Some(answer::TAKEN.to_owned()), None, None);
        }
        if let Some(acp) = &mut self.acp {
            acp.watch.tool_ends(&id, &call.name, at);
        }
        self.learn_arguments(&id, &mut call, out);
        (self.facts.answered, self.facts.tool_came_back) = (true, true);
        self.outcome.text.start_over();
        let class = tool::class(&call.name);
        let unread = self.prompt_file.as_ref().and_then(|file| file.result(&id, error.as_ref()));
        let mut end = ToolEnd::shown(class, success, output, error);
        let warning = unread.or_else(|| derive::refusal(&call.name, &end, &self.denied));
        if let Some(detail) = detail {
            end.learn(*detail);
        }
        let source = if fact.is_some() { Source::Session } else { Source::Stream };
        if let Some(fact) = fact {
            end.learn(fact);
        }
        if let Some(said) = &mut self.said {
            said.ended(&id, &end);
        }
        self.changing_tools |= !end.refused && class.may_change_files();
        let states = States { before: take(&mut end.before), after: take(&mut end.after) };
        let disk = disk.unwrap_or(DiskFact::Unknown);
        let ended = EndedCall { id: &id, name: &call.name, input: &call.input, disk };
        let (result, derived) = ended.events(end);
        self.emit(source, result, out);
        if let Some(warning) = warning {
            self.warn(warning, out);
        }
        match &derived {
            Some(EventKind::Command { call_id, command, output, exit_code }) => {
                let (call_id, command) = (call_id.clone(), command.clone());
                let run = CommandRun { call_id, command, exit_code: *exit_code, output: None };
                self.kept.command(&mut self.outcome, run, output.as_deref());
            }
            Some(EventKind::FileChange(change)) => self.kept.file(&mut self.outcome, change, states),
            _ => {}
        }
        if let Some(derived) = derived {
            self.emit(Source::Derived, derived, out);
        }
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

fn take(text: &mut Option<std::borrow::Cow<'_, str>>) -> Option<String> {
    text.take().map(std::borrow::Cow::into_owned)
}
