//! Sessions over ACP: tool calls that are not recorded with the answer that asked for them.

use alhena_wire::session::{Content, MessageRecord};
use serde_json::{Map, Value};

use super::record::answers;
use super::{Conversation, Entry, ToolRun};
use crate::message::Role;

/// Where the calls of a session over ACP belong.
///
/// Gemini CLI 0.61.0 writes all calls of a session into one record without text, behind the first answer that asked for some. Calls that
/// were rejected have no record at all. The results that the model was given are in records of the user's, each behind its answer: they
/// say which calls belong to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bunch {
    /// Calls whose results have not been seen. They stand with the last answer.
    unplaced: Vec<String>,
    /// The place of the answer that has them.
    at: usize,
    /// Results have been seen, so that others can be expected.
    has_results: bool,
}

impl<'a> Conversation<'a> {
    /// Takes an entry of a session. Bunched calls go to the last answer.
    pub(super) fn add_recorded(&mut self, mut entry: Entry<'a>) {
        let is_answer = entry.role == Role::Assistant;
        let before = self.entries.last_mut().filter(|before| before.role == Role::Assistant);
        if let Some(before) = before.filter(|before| before.runs.is_empty() && is_bunch(&entry)) {
            let unplaced = entry.runs.iter().map(|run| run.id.to_string()).collect();
            before.runs = entry.runs;
            self.bunch = Bunch { unplaced, at: self.entries.len() - 1, has_results: false };
            return;
        }
        if is_answer && self.bunch.has_results && !self.bunch.unplaced.is_empty() {
            entry.runs.splice(0..0, self.take_unplaced());
            self.bunch.at = self.entries.len();
        }
        self.add(entry);
    }

    fn take_unplaced(&mut self) -> Vec<ToolRun<'a>> {
        let Bunch { unplaced, at, .. } = &self.bunch;
        let Some(holder) = self.entries.get_mut(*at) else { return Vec::new() };
        let is_unplaced = |run: &ToolRun<'_>| unplaced.iter().any(|id| *id == run.id);
        let (taken, kept) = std::mem::take(&mut holder.runs).into_iter().partition(is_unplaced);
        holder.runs = kept;
        taken
    }

    /// Whether results in the user's name may tell something about calls over ACP.
    pub(super) fn may_place_calls(&self) -> bool {
        let last = self.entries.last().filter(|entry| entry.role == Role::Assistant);
        last.is_some_and(|entry| entry.runs.is_empty() || !self.bunch.unplaced.is_empty())
    }

    /// Takes results that the model was given after the last answer: their calls are its own.
    pub(super) fn place_calls(&mut self, record: &MessageRecord<'a>) {
        let mut unknown = Vec::new();
        for id in responded(record) {
            let unplaced = &mut self.bunch.unplaced;
            match unplaced.iter().position(|unplaced| unplaced == id) {
                Some(at) => {
                    unplaced.swap_remove(at);
                    self.bunch.has_results = true;
                }
                None => unknown.push(id.to_owned()),
            }
        }
        let Some(answer) = self.entries.last_mut().filter(|entry| entry.role == Role::Assistant) else {
            return;
        };
        unknown.retain(|id| answer.runs.iter().all(|run| run.id != **id));
        if unknown.is_empty() {
            return;
        }
        for (id, name, end) in answers(record.clone()) {
            if unknown.contains(&id) {
                let input = Value::Object(Map::new());
                let run = ToolRun {
                    id: id.into(),
                    name: name.into(),
                    input,
                    agent: None,
                    end: Some(Box::new(end)),
                };
                answer.runs.push(run);
            }
        }
    }
}

impl<'a> Conversation<'a> {
    /// Completes calls that a session file does not record with what the run learned of them.
    pub fn complete_calls(&mut self, run: &Conversation<'a>) {
        let known = || run.entries.iter().flat_map(|entry| &entry.runs);
        let runs = self.entries.iter_mut().flat_map(|entry| &mut entry.runs);
        for run in runs.filter(|run| run.input.as_object().is_some_and(Map::is_empty)) {
            if let Some(known) = known().find(|known| known.id == run.id) {
                run.clone_from(known);
            }
        }
    }
}

/// Whether an entry is nothing but calls, and no answer of a model of its own.
fn is_bunch(entry: &Entry<'_>) -> bool {
    entry.role == Role::Assistant
        && !entry.runs.is_empty()
        && entry.tokens.is_none()
        && entry.thoughts.is_empty()
        && entry.images.is_empty()
        && entry.text.trim().is_empty()
}

/// The ids of the calls that a record gives results of.
fn responded<'r>(record: &'r MessageRecord<'_>) -> impl Iterator<Item = &'r str> {
    let parts = record.content.iter().flat_map(Content::parts);
    parts.filter_map(|part| part.function_response.as_ref()?.id.as_deref())
}
