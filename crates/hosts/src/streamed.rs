//! Messages as they grow, while a run goes on.
//!
//! A host that shows a conversation wants the same messages while it is held as afterwards. They are made from events here, by
//! the same rules as all messages; what an event does not know yet (what the model was told beside what people see, the record
//! itself) is put right when the session is read at the end. The CLI names an answer only when it is over (0.61.0), so a
//! message is named here when it begins, and the final ones keep these names: the record's own is in `_original`.

use std::borrow::Cow;

use alhena_model::conversation::{EntryTokens, as_record};
use alhena_model::message::{Block, Message, Role};
use alhena_model::options::Transport;
use alhena_model::{Entry, Event, EventKind, FileChange, Source, Thought, ToolEnd, ToolRun, Usage};

/// A text is told again when it has grown by this part of what was told, so that all that is told of an answer stays in
/// proportion to it.
const GROWTH: usize = 32;

/// The messages of one run.
#[derive(Default)]
pub struct Streamed {
    /// What the names of its messages begin with.
    run: String,
    entries: Vec<Entry<'static>>,
    /// A result has come: what the model says next is another answer.
    answered: bool,
    /// Over ACP the calls of an answer come one by one, each with its result.
    over_acp: bool,
    /// The last answer was recorded before its first call. Over ACP only a record says that there is another answer.
    one_by_one: bool,
    /// The record of an answer of which nothing else has come.
    recorded: Option<(String, EntryTokens)>,
    /// How much of the last text was told.
    told: usize,
}

impl Streamed {
    /// Says how the CLI is talked to.
    pub fn transport(&mut self, transport: Transport) {
        self.over_acp = transport == Transport::Acp;
    }

    /// Takes an event, and gives the message that it added to, as far as it has grown. Small additions to a long text are
    /// gathered.
    pub fn event(&mut self, event: &Event) -> Option<Message<'static>> {
        let at = match &event.kind {
            EventKind::Started { session_id, .. } => {
                self.run = format!("{session_id}-{}", event.at.as_millis());
                return None;
            }
            EventKind::Prompt { text } => {
                self.begin(Role::User, event);
                self.last(|entry| entry.text = Cow::Owned(text.clone()))
            }
            EventKind::Text { delta } => {
                let at = self.answer(event);
                let text = self.entries.get_mut(at)?.text.to_mut();
                text.push_str(delta);
                let grown = text.len();
                if grown <= self.told + self.told / GROWTH {
                    return None;
                }
                self.told = grown;
                Some(at)
            }
            EventKind::Thinking { subject, text } => {
                let at = self.unrecorded().unwrap_or_else(|| self.begin(Role::Assistant, event));
                let thought = Thought { subject: Some(subject.clone().into()), text: text.clone().into() };
                self.entries.get_mut(at)?.thoughts.push(thought);
                Some(at)
            }
            EventKind::ToolCall { id, name, input, .. } => {
                if self.one_by_one && self.recorded.is_none() {
                    self.answered = false;
                }
                let at = self.answer(event);
                let answer = self.entries.get(at).filter(|answer| answer.runs.is_empty());
                let recorded_before = answer.map_or(self.one_by_one, |answer| answer.tokens.is_some());
                self.one_by_one = self.over_acp && recorded_before;
                let (id, name) = (id.clone().into(), name.clone().into());
                let run = ToolRun { id, name, input: (**input).clone(), agent: None, end: None };
                self.last(|entry| entry.runs.push(run))
            }
            EventKind::ToolResult { id, .. } => {
                self.answered = true;
                self.run(id, |run| run.end = end(&event.kind).map(Box::new))
            }
            EventKind::FileChange(FileChange { call_id: Some(id), diff: Some(diff), .. }) => {
                self.run(id, |run| {
                    if let Some(end) = &mut run.end {
                        end.diff = Some(diff.clone().into());
                    }
                })
            }
            EventKind::Usage(call) if event.source == Source::Session => self.cost(&call.usage),
            _ => None,
        };
        at.and_then(|at| self.message(at))
    }

    /// Gives final messages the names under which they were told.
    pub fn name(&self, messages: &mut [Message<'_>]) {
        let mut from = 0;
        for (number, message) in messages.iter_mut().enumerate() {
            let found = self.place_of(message, from);
            message.id = match found {
                Some(at) => self.id(at).into(),
                None => format!("{}-unseen-{number}", self.run).into(),
            };
            from = found.map_or(from, |at| at + 1);
        }
    }

    fn id(&self, at: usize) -> String {
        format!("{}-{at}", self.run)
    }

    fn message(&self, at: usize) -> Option<Message<'static>> {
        let mut entry = self.entries.get(at)?.clone();
        entry.id = self.id(at).into();
        entry.original = as_record(&entry);
        Some(entry.into())
    }

    fn begin(&mut self, role: Role, event: &Event) -> usize {
        self.answered = false;
        self.told = 0;
        let mut entry = Entry::begun(role, Some(event.at));
        if let Some((model, tokens)) = self.recorded.take_if(|_| role == Role::Assistant) {
            (entry.model, entry.tokens) = (Some(model.into()), Some(tokens));
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// The answer that the model is giving.
    fn answer(&mut self, event: &Event) -> usize {
        let speaks = self.entries.last().is_some_and(|entry| entry.role == Role::Assistant);
        match speaks && !self.answered {
            true => self.entries.len() - 1,
            false => self.begin(Role::Assistant, event),
        }
    }

    fn last(&mut self, fill: impl FnOnce(&mut Entry<'static>)) -> Option<usize> {
        self.entries.last_mut().map(fill)?;
        self.entries.len().checked_sub(1)
    }

    /// The first answer of which the session file has not said what it cost: it speaks of them in order, of the cost last.
    fn unrecorded(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.role == Role::Assistant && entry.tokens.is_none())
    }

    fn cost(&mut self, usage: &Usage) -> Option<usize> {
        let (model, count) = usage.models.iter().next()?;
        let tokens = EntryTokens { count: *count, knows_cached: true, knows_thoughts: true };
        let Some(at) = self.unrecorded() else {
            self.recorded = Some((model.clone(), tokens));
            return None;
        };
        let entry = self.entries.get_mut(at)?;
        (entry.model, entry.tokens) = (Some(model.clone().into()), Some(tokens));
        Some(at)
    }

    fn run(&mut self, id: &str, change: impl FnOnce(&mut ToolRun<'static>)) -> Option<usize> {
        let mut places = self.entries.iter_mut().enumerate().rev();
        places
            .find_map(|(at, entry)| entry.runs.iter_mut().find(|run| run.id == id).map(|run| (at, run)))
            .map(|(at, run)| {
                change(run);
                at
            })
    }

    /// What a final message was told as: it has its calls, or its text at the end of what was streamed.
    fn place_of(&self, message: &Message<'_>, from: usize) -> Option<usize> {
        let blocks = message.content.blocks();
        let called = |entry: &Entry<'_>| {
            entry.runs.iter().any(|run| {
                blocks.iter().any(|block| matches!(block, Block::ToolUse { id, .. } if *id == run.id))
            })
        };
        let said = blocks.iter().find_map(|block| match block {
            Block::Text { text } => Some(text.trim()),
            _ => None,
        });
        let says = |entry: &Entry<'_>| said.is_some_and(|said| entry.text.trim().ends_with(said));
        let of_role = || {
            let entries = self.entries.iter().enumerate().skip(from);
            entries.filter(|(_, entry)| entry.role == message.role)
        };
        let found =
            of_role().find(|(_, entry)| called(entry)).or_else(|| of_role().find(|(_, entry)| says(entry)));
        found.or_else(|| of_role().next()).map(|(at, _)| at)
    }
}

/// How a tool ended, as far as an event says it.
fn end(result: &EventKind) -> Option<ToolEnd<'static>> {
    let EventKind::ToolResult { ok, output, error, exit_code, cancelled, .. } = result else { return None };
    let cancelled = cancelled.unwrap_or_default();
    let explained = error.is_some() || output.is_some() || cancelled || exit_code.is_some();
    Some(ToolEnd {
        output: output.clone().map(Cow::Owned),
        error: error.as_ref().map(|error| Cow::Owned(error.message.clone())),
        error_type: error.as_ref().map(|error| Cow::Owned(error.kind.clone())),
        failed: !ok && !explained,
        cancelled,
        exit_code: *exit_code,
        ..ToolEnd::default()
    })
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests;
