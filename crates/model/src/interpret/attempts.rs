//! A run of several attempts: one that failed is followed by another in the same session.

use super::Interpreter;
use crate::event::{Event, EventKind, Source};
use crate::failure::Failure;
use crate::judge::{self, End, Facts};
use crate::usage::Usage;

#[derive(Default)]
pub(super) struct Attempts {
    may_go_on: bool,
    failed: u32,
    usage: Usage,
    /// What the last one failed of, until it is known to be the last.
    untold: Option<String>,
}

impl Attempts {
    pub(super) fn may_go_on(&mut self) {
        self.may_go_on = true;
    }

    pub(super) fn are_several(&self) -> bool {
        self.failed > 0
    }

    /// What an attempt took, with what those before it took.
    pub(super) fn with_those_before(&self, usage: Usage) -> Usage {
        if self.failed == 0 {
            return usage;
        }
        let mut sum = self.usage.clone();
        sum.all.add(&usage.all);
        for (model, tokens) in usage.models {
            sum.models.entry(model).or_default().add(&tokens);
        }
        sum
    }
}

impl Interpreter {
    pub(super) fn failed(&mut self, message: String, out: &mut Vec<Event>) {
        match self.attempts.may_go_on {
            true => self.attempts.untold = Some(message),
            false => self.emit(Source::Stream, EventKind::Error { message }, out),
        }
    }

    pub(super) fn tell_of_failure(&mut self, out: &mut Vec<Event>) {
        if let Some(message) = self.attempts.untold.take() {
            self.emit(Source::Stream, EventKind::Error { message }, out);
        }
    }

    /// Another attempt follows: how the last one ended does not count any more, and neither does that it was answered.
    pub(super) fn goes_on(&mut self) {
        self.attempts.failed += 1;
        self.attempts.untold = None;
        self.attempts.usage = self.outcome.usage.clone();
        self.facts = Facts { output: self.facts.output, ..Facts::default() };
    }

    /// What the run would have failed of if it ended now.
    pub fn would_fail_of(&mut self, end: &End, out: &mut Vec<Event>) -> Option<Failure> {
        self.wait_no_more(out);
        judge::verdict(&self.facts, end).1
    }

    /// How many turns the model has taken that ended on tools.
    pub fn turns(&self) -> u64 {
        self.open.turns()
    }

    /// Whether the model has answered anything in this attempt.
    pub fn was_answered(&self) -> bool {
        self.facts.answered || self.facts.tool_came_back
    }
}
