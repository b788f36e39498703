//! What is kept until the outcome, and how much of it.
//!
//! A stream may be a gigabyte long and a hostile one has no sense of measure: every list has a limit here, and finding an
//! entry never means looking at all of them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::derive;
use super::whole::{Originals, States};
use crate::event::FileChange;
use crate::outcome::{Change, CommandRun, FileRecord, Outcome};

const MOST_COMMANDS: usize = 10_000;
const MOST_FILES: usize = 20_000;
const MOST_WARNINGS: usize = 1_000;
const MOST_CALLS: usize = 1_000;
/// A longer path names no file.
const LONGEST_PATH: usize = 8 << 10;
const LONGEST_WARNING: usize = 4 << 10;
/// Of one command's output.
const COMMAND_OUTPUT: usize = 64 << 10;
/// Of all outputs and diffs together.
const ALL_DETAILS: usize = 2 << 20;
/// Of all command lines together.
const ALL_COMMANDS: usize = 2 << 20;
/// Of all arguments of open calls together.
const ALL_ARGUMENTS: usize = 4 << 20;

pub(super) struct Call {
    pub name: String,
    pub input: Value,
    /// The turn of the model that it belongs to.
    turn: u64,
    size: usize,
}

impl Call {
    /// Stands in for a call that was never seen.
    pub(super) fn unknown() -> Self {
        Self { name: String::new(), input: Value::Null, turn: 0, size: 0 }
    }
}

/// The calls that wait for their results.
///
/// Results come together when all calls of a turn are done. A call that the model made before the CLI lost the stream and
/// asked again never gets one (0.61.0): it is open only until the model goes on after other results.
#[derive(Default)]
pub(super) struct OpenCalls {
    by_id: HashMap<String, Call>,
    size: usize,
    turn: u64,
    open: usize,
    results_came: bool,
}

impl OpenCalls {
    /// The model speaks or calls: if results came before, a new turn has begun.
    pub(super) fn model_goes_on(&mut self) {
        if std::mem::take(&mut self.results_came) {
            self.turn += 1;
            self.open = 0;
        }
    }

    /// Remembers a call; false when there is no room for it.
    pub(super) fn add(&mut self, id: &str, name: &str, input: Value) -> bool {
        let size = id.len() + name.len() + derive::size(&input);
        if self.by_id.len() >= MOST_CALLS || self.size + size > ALL_ARGUMENTS {
            return false;
        }
        self.size += size;
        self.open += 1;
        let call = Call { name: name.to_owned(), input, turn: self.turn, size };
        if let Some(before) = self.by_id.insert(id.to_owned(), call) {
            self.forget(&before);
        }
        true
    }

    pub(super) fn get(&self, id: &str) -> Option<&Call> {
        self.by_id.get(id)
    }

    /// What a call was asked for is known only now.
    pub(super) fn learn(&mut self, id: &str, input: Value) {
        let Some(call) = self.by_id.get_mut(id) else { return };
        let size = derive::size(&input);
        if self.size + size <= ALL_ARGUMENTS {
            self.size += size;
            call.size += size;
            call.input = input;
        }
    }

    pub(super) fn take(&mut self, id: &str) -> Option<Call> {
        self.results_came = true;
        let call = self.by_id.remove(id)?;
        self.forget(&call);
        Some(call)
    }

    fn forget(&mut self, call: &Call) {
        self.size = self.size.saturating_sub(call.size);
        if call.turn == self.turn {
            self.open = self.open.saturating_sub(1);
        }
    }

    /// How many turns of the model have ended on results.
    pub(super) fn turns(&self) -> u64 {
        self.turn
    }

    pub(super) fn any(&self) -> bool {
        self.open > 0
    }

    /// The names of all calls that never got a result.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_id.values().map(|call| call.name.as_str())
    }
}

/// The limits of an outcome that grows.
#[derive(Default)]
pub(super) struct Kept {
    files: HashMap<String, usize>,
    originals: Originals,
    warnings: HashSet<String>,
    details: usize,
    commands: usize,
}

impl Kept {
    /// one entry per file, in the order of the first write, with the change from its first state to its last.
    pub(super) fn file(&mut self, outcome: &mut Outcome, change: &FileChange, states: States) {
        let known = self.files.get(&change.path).copied();
        if let Some((at, file)) = known.and_then(|at| Some((at, outcome.files.get_mut(at)?))) {
            file.verified = change.verified;
            file.tool = change.tool.clone().or(file.tool.take());
            let before = file.diff.take();
            self.details -= before.as_ref().map_or(0, String::len).min(self.details);
            // The diff of one edit alone would hide the others.
            let whole = self.originals.diff(at, &states, change.diff.as_deref());
            file.diff = whole.and_then(|diff| self.detail(&diff));
            if file.change == Change::Deleted {
                file.change = change.change;
            }
            return;
        }
        if outcome.files.len() >= MOST_FILES || change.path.len() > LONGEST_PATH {
            self.warning(outcome, "Not all changed files are listed: there are too many");
            return;
        }
        let diff = change.diff.as_ref().and_then(|diff| self.detail(diff));
        self.files.insert(change.path.clone(), outcome.files.len());
        self.originals.first(outcome.files.len(), states);
        outcome.files.push(FileRecord {
            path: change.path.clone(),
            change: change.change,
            tool: change.tool.clone(),
            claimed: change.tool.is_some(),
            verified: change.verified,
            diff,
        });
    }

    /// Where a file stands in the outcome.
    pub(super) fn place_of(&self, path: &str) -> Option<usize> {
        self.files.get(path).copied()
    }

    pub(super) fn command(&mut self, outcome: &mut Outcome, mut run: CommandRun, output: Option<&str>) {
        if outcome.commands.len() >= MOST_COMMANDS || self.commands + run.command.len() > ALL_COMMANDS {
            self.warning(outcome, "Not all commands are listed: there are too many");
            return;
        }
        self.commands += run.command.len();
        run.output = output.and_then(|output| self.detail(&derive::cut(output, COMMAND_OUTPUT)));
        outcome.commands.push(run);
    }

    /// A text, as long as there is room for it.
    fn detail(&mut self, text: &str) -> Option<String> {
        let size = self.details + text.len();
        (size <= ALL_DETAILS).then(|| {
            self.details = size;
            text.to_owned()
        })
    }

    /// Each warning once; whether it is new.
    pub(super) fn warning(&mut self, outcome: &mut Outcome, message: &str) -> bool {
        let message = derive::cut(message, LONGEST_WARNING);
        if self.warnings.len() >= MOST_WARNINGS || !self.warnings.insert(message.clone()) {
            return false;
        }
        outcome.warnings.push(message);
        if self.warnings.len() == MOST_WARNINGS {
            outcome
                .warnings
                .push(format!("Further warnings are left out: there are more than {MOST_WARNINGS}"));
        }
        true
    }
}
