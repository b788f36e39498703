//! Filled by the interpreter, from the stream and from what the session file says beside it.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{Conversation, Entry, EntryTokens, Original, Thought, ToolEnd, ToolRun};
use crate::join::Fact;
use crate::message::Role;
use crate::time::Timestamp;
use crate::usage::Tokens;

/// A conversation while it goes on. It holds all that was said, so it is only kept for those who want it.
#[derive(Default)]
pub(crate) struct Growing {
    entries: Vec<Entry<'static>>,
    /// Results have come: what the model says next is another answer.
    answered: bool,
    /// Calls of one answer come one after another, each with its result: only a record of the session file says that there is
    /// another answer.
    one_by_one: bool,
    /// There was such a record since the last result.
    recorded: bool,
    records: Vec<Recorded>,
}

/// What the session file says of one answer.
#[derive(Default)]
struct Recorded {
    id: String,
    thoughts: Vec<Thought<'static>>,
    text: String,
    model: Option<String>,
    tokens: Option<Tokens>,
    calls: Vec<String>,
}

impl Growing {
    pub(crate) fn prompt(&mut self, text: &str, at: Timestamp) {
        self.begin(Role::User, at);
        self.last(|entry| entry.text = Cow::Owned(text.to_owned()));
    }

    pub(crate) fn text(&mut self, delta: &str, at: Timestamp) {
        self.answer(at);
        self.last(|entry| entry.text.to_mut().push_str(delta));
    }

    pub(crate) fn call(&mut self, id: &str, name: &str, input: &Value, at: Timestamp) {
        let (id, name) = (id.to_owned().into(), name.to_owned().into());
        let run = ToolRun { id, name, input: input.clone(), agent: None, end: None };
        if self.one_by_one && !self.recorded {
            self.answered = false;
        }
        self.answer(at);
        self.last(|entry| entry.runs.push(run));
    }

    pub(crate) fn one_by_one(&mut self) {
        self.one_by_one = true;
    }

    /// The arguments of a call, once they are known.
    pub(crate) fn arguments(&mut self, id: &str, input: &Value) {
        let mut runs = self.entries.iter_mut().rev().flat_map(|entry| entry.runs.iter_mut().rev());
        if let Some(run) = runs.find(|run| run.id == id) {
            run.input = input.clone();
        }
    }

    /// A thought that no session file tells.
    pub(crate) fn thought(&mut self, subject: &str, text: &str, at: Timestamp) {
        let subject = Some(subject.to_owned().into()).filter(|subject: &Cow<'_, str>| !subject.is_empty());
        let thought = Thought { subject, text: text.to_owned().into() };
        self.answer(at);
        self.last(|entry| entry.thoughts.push(thought));
    }

    pub(crate) fn ended(&mut self, id: &str, end: &ToolEnd<'static>) {
        let mut runs = self.entries.iter_mut().rev().flat_map(|entry| entry.runs.iter_mut().rev());
        if let Some(run) = runs.find(|run| run.id == id) {
            run.end = Some(Box::new(end.clone()));
            (self.answered, self.recorded) = (true, false);
        }
    }

    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Thought { message, subject, text, .. } => {
                let subject = Some(subject.clone().into());
                let thought = Thought { subject, text: text.clone().into() };
                self.record(message, |record| record.thoughts.push(thought));
            }
            Fact::Text { message, text } => self.record(message, |record| record.text.clone_from(text)),
            Fact::Usage { message, model, tokens } => {
                self.recorded = true;
                self.record(message, |record| {
                    record.model = Some(model.clone()).filter(|model| !model.is_empty());
                    record.tokens = Some(*tokens);
                });
            }
            Fact::UsageAside { .. } | Fact::Loop | Fact::Call { .. } => {}
            Fact::Tool { message, id, .. } => self.record(message, |record| record.calls.push(id.clone())),
        }
    }

    /// All of it, each answer with what the session file says of it.
    pub(crate) fn finish(mut self) -> Conversation<'static> {
        let mut from = 0;
        for record in std::mem::take(&mut self.records) {
            let found = self.place_of(&record, from);
            let at = found.unwrap_or_else(|| self.insert(from));
            if let Some(entry) = self.entries.get_mut(at) {
                record.fill(entry);
            }
            from = at + 1;
        }
        let mut conversation = Conversation::default();
        for (number, mut entry) in self.entries.into_iter().enumerate() {
            if entry.id.is_empty() {
                entry.id = format!("stream-{number}").into();
            }
            entry.original = as_record(&entry);
            conversation.add(entry);
        }
        conversation
    }

    fn begin(&mut self, role: Role, at: Timestamp) {
        self.answered = false;
        self.entries.push(Entry::begun(role, Some(at)));
    }

    /// The model says something: in the answer that it is giving, or in another one.
    fn answer(&mut self, at: Timestamp) {
        let speaks = self.entries.last().is_some_and(|entry| entry.role == Role::Assistant);
        if !speaks || self.answered {
            self.begin(Role::Assistant, at);
        }
    }

    fn last(&mut self, fill: impl FnOnce(&mut Entry<'static>)) {
        if let Some(entry) = self.entries.last_mut() {
            fill(entry);
        }
    }

    fn record(&mut self, message: &str, fill: impl FnOnce(&mut Recorded)) {
        // Nearly always the last one.
        if let Some(record) = self.records.iter_mut().rfind(|record| record.id == message) {
            return fill(record);
        }
        let mut record = Recorded { id: message.to_owned(), ..Recorded::default() };
        fill(&mut record);
        self.records.push(record);
    }

    /// The answer that a record is of: it has its calls, or its text at the end of what was streamed.
    fn place_of(&self, record: &Recorded, from: usize) -> Option<usize> {
        let said = record.text.trim();
        let answers = || {
            let answers = self.entries.iter().enumerate().skip(from);
            answers.filter(|(_, entry)| entry.role == Role::Assistant)
        };
        let by_call =
            |entry: &Entry<'_>| entry.runs.iter().any(|run| record.calls.iter().any(|id| run.id == **id));
        let by_text = |entry: &Entry<'_>| match said {
            "" => entry.text.trim().is_empty() && !entry.runs.is_empty(),
            said => visible(&entry.text).trim().ends_with(said),
        };
        let called = answers().find(|(_, entry)| by_call(entry));
        called.or_else(|| answers().find(|(_, entry)| by_text(entry))).map(|(at, _)| at)
    }

    /// An answer that the stream does not have, behind the one before it.
    fn insert(&mut self, from: usize) -> usize {
        let answers = self.entries.iter().skip(from);
        let at = from + answers.take_while(|entry| entry.role == Role::User).count();
        self.entries.insert(at.min(self.entries.len()), Entry::begun(Role::Assistant, None));
        at
    }
}

impl Recorded {
    fn fill(self, entry: &mut Entry<'static>) {
        entry.id = self.id.into();
        entry.thoughts = self.thoughts;
        entry.model = self.model.map(Cow::Owned);
        entry.tokens =
            self.tokens.map(|count| EntryTokens { count, knows_cached: true, knows_thoughts: true });
        let streamed = entry.text.trim();
        // The session has each answer once, but not all of its letters.
        entry.text = match self.text.trim() {
            "" => return,
            said if streamed != said && visible(streamed) == said => streamed.to_owned().into(),
            _ => self.text.into(),
        };
    }
}

/// A text as the CLI keeps it in the session file (0.61.0).
fn visible(text: &str) -> Cow<'_, str> {
    const LEFT_OUT: [char; 6] = ['\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{feff}'];
    match text.contains(LEFT_OUT) {
        true => Cow::Owned(text.replace(LEFT_OUT, "")),
        false => Cow::Borrowed(text),
    }
}

impl Entry<'static> {
    /// One that says nothing yet.
    pub fn begun(role: Role, at: Option<Timestamp>) -> Self {
        Self {
            id: Cow::Borrowed(""),
            role,
            at,
            model: None,
            tokens: None,
            thoughts: Vec::new(),
            text: Cow::Borrowed(""),
            runs: Vec::new(),
            images: Vec::new(),
            original: Original::of_text("null"),
        }
    }
}

/// A record as the CLI would have written it; there is none of its own.
pub fn as_record(entry: &Entry<'_>) -> Original<'static> {
    let mut record = json!({ "id": entry.id, "timestamp": entry.at, "content": entry.text });
    let mut put = |key: &str, value: Value| {
        if let Some(record) = record.as_object_mut() {
            record.insert(key.to_owned(), value);
        }
    };
    put("type", json!(if entry.role == Role::User { "user" } else { "gemini" }));
    if entry.role == Role::Assistant {
        let thoughts = entry.thoughts.iter();
        let thoughts =
            thoughts.map(|thought| json!({ "subject": thought.subject, "description": thought.text }));
        put("thoughts", thoughts.collect());
    }
    if let Some(model) = &entry.model {
        put("model", json!(model));
    }
    if !entry.runs.is_empty() {
        put("toolCalls", entry.runs.iter().map(call_as_record).collect());
    }
    Original::made(&record)
}

fn call_as_record(run: &ToolRun<'_>) -> Value {
    let mut call = json!({ "id": run.id, "name": run.name, "args": run.input });
    let (Some(end), Some(fields)) = (&run.end, call.as_object_mut()) else { return call };
    let status = match (end.cancelled, end.is_error()) {
        (true, _) => "cancelled",
        (_, true) => "error",
        _ => "success",
    };
    let response = match &end.error {
        Some(error) => json!({ "error": error }),
        None => json!({ "output": end.output.as_ref().or(end.shown.as_ref()) }),
    };
    fields.insert("status".to_owned(), json!(status));
    let response = json!([{ "functionResponse": { "id": run.id, "name": run.name, "response": response } }]);
    fields.insert("result".to_owned(), response);
    call
}
