//! An agent of which no session file speaks: what it says itself has to be enough.

use alhena_wire::acp::{Call as Told, FileDiff, Spent};

use super::relative;
use crate::event::{Event, EventKind, FileChange, Source};
use crate::interpret::Interpreter;
use crate::interpret::whole::{States, between};
use crate::join::ToolFact;
use crate::outcome::Change;
use crate::tool::{self, Class};
use crate::usage::Tokens;

/// So many calls may have changes that wait for their ends.
const MOST_OPEN: usize = 1_000;
/// Larger texts are not made a diff of.
const LARGEST: usize = 1 << 20;

impl Interpreter {
    /// Nobody else tells of the tokens of an answer.
    pub(super) fn spent(&mut self, spent: Option<Spent>, out: &mut Vec<Event>) {
        let Some(spent) = spent.filter(|_| !self.waiting.has_session()) else { return };
        let tokens = Tokens {
            prompt: spent.input_tokens,
            output: spent.output_tokens,
            cached: spent.cached_read_tokens,
            thoughts: spent.thought_tokens,
            total: spent.total_tokens.max(spent.input_tokens.saturating_add(spent.output_tokens)),
            ..Tokens::default()
        };
        let model = self.asked_model.clone();
        self.joined.usage.add(model.as_deref().unwrap_or_default(), &tokens);
        if let (Some(acp), Some(model)) = (&mut self.acp, &model) {
            acp.watch.answer(model, tokens, self.now);
        }
        self.tell_call(Source::Stream, model.as_deref(), tokens, None, out);
    }

    /// The change that a call makes comes with the question whether it may, or with its end.
    pub(super) fn keep_diff(&mut self, told: &Told) {
        let alone = !self.waiting.has_session();
        let Some(acp) = self.acp.as_mut().filter(|_| alone && !told.diffs.is_empty()) else { return };
        if acp.diffs.len() < MOST_OPEN || acp.diffs.contains_key(&told.id) {
            acp.diffs.insert(told.id.clone(), told.diffs.clone());
        }
    }

    /// What the end of a call says beside its text.
    pub(super) fn detail(&mut self, told: &Told, success: bool) -> Option<Box<ToolFact>> {
        if self.waiting.has_session() {
            return None;
        }
        let mut fact = ToolFact::default();
        if let Some(ran) = told.ran() {
            fact.killed = ran.exit_code.is_none();
            fact.exit_code = ran.exit_code;
            fact.output = Some(ran.output.into());
        }
        let diffs = self.acp.as_mut().and_then(|acp| acp.diffs.remove(&told.id)).filter(|_| success);
        if let Some(diff) = diffs.iter().flatten().next() {
            fact.diff = self.diff(diff).map(Into::into);
            (fact.before, fact.after) = (Some(diff.before.clone().into()), Some(diff.after.clone().into()));
        }
        (fact != ToolFact::default()).then(|| Box::new(fact))
    }

    /// Changes of a tool that nobody knows by name: the agent says what it has written.
    pub(super) fn claim(&mut self, told: &Told, name: &str, out: &mut Vec<Event>) {
        if self.waiting.has_session() || matches!(tool::class(name), Class::FileWrite | Class::Command) {
            return;
        }
        let kept = self.acp.as_ref().and_then(|acp| acp.diffs.get(&told.id)).cloned().unwrap_or_default();
        let dir = self.acp.as_ref().map(|acp| acp.dir.clone()).unwrap_or_default();
        for diff in kept {
            let change = FileChange {
                path: relative(&diff.path, &dir).to_owned(),
                change: if diff.before.is_empty() { Change::Created } else { Change::Modified },
                tool: Some(name.to_owned()),
                call_id: Some(told.id.clone()),
                diff: self.diff(&diff),
                // The disk is asked at the end.
                verified: false,
            };
            let states = States { before: Some(diff.before), after: Some(diff.after) };
            self.kept.file(&mut self.outcome, &change, states);
            self.emit(Source::Derived, EventKind::FileChange(change), out);
        }
    }

    fn diff(&self, diff: &FileDiff) -> Option<String> {
        let dir = self.acp.as_ref().map_or("", |acp| acp.dir.as_str());
        (diff.before.len() + diff.after.len() <= LARGEST).then(|| {
            let path = relative(&diff.path, dir);
            format!("--- {path}\n+++ {path}\n{}", between(&diff.before, &diff.after))
        })
    }
}
