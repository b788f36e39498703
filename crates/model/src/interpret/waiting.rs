//! A result that waits for what other sources say of it, and what came behind it.
//!
//! The stream gives a tool's result a moment before the session file has the record with its diff and its exit code. Nothing
//! sleeps for that: the result stays here until its fact has come or its time is up, and the lines behind it queue.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::input::{DiskFact, Input};
use crate::event::ToolError;
use crate::join::ToolFact;
use crate::time::Timestamp;

/// How long a result waits for its fact, in milliseconds, where nothing was heard of the session file.
const PATIENCE: i64 = 1_000;
/// The same where it speaks: its record comes with the result, but a machine that is busy may be late with it.
const PATIENCE_WITH_SESSION: i64 = 4_000;
/// How long results wait in vain, all in all, until a fact comes: a stream with thousands of results that no file has must
/// not be held up.
const ALL_PATIENCE: i64 = 8_000;
/// So much is kept of facts whose results have not come.
const ALL_FACTS: usize = 64 << 20;
/// What an entry takes beside its texts.
const ENTRY: usize = 256;

/// Who else speaks of the run, beside its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witnesses {
    /// The session file: it is followed, and each [`Fact`](crate::Fact) is fed.
    pub session: bool,
    /// The disk: whoever feeds looks at [`Interpreter::wanted_file`](super::Interpreter::wanted_file).
    pub disk: bool,
}

/// The result of a call, as the stream gives it.
pub(super) struct Returned {
    pub id: String,
    pub success: bool,
    pub output: Option<String>,
    pub error: Option<ToolError>,
    pub at: Timestamp,
    /// What an agent of which no session file speaks says of it beside its text.
    pub detail: Option<Box<ToolFact>>,
}

#[derive(Default)]
pub(super) struct Testimony {
    pub fact: Option<ToolFact>,
    pub disk: Option<DiskFact>,
}

struct First {
    result: Returned,
    /// Since when it waits for its fact.
    since: Option<Timestamp>,
    /// The file that the disk has not been asked about.
    file: Option<String>,
    testimony: Testimony,
}

pub(super) struct Waiting {
    witnesses: Witnesses,
    first: Option<First>,
    behind: VecDeque<Input<'static>>,
    facts: EarlyFacts,
    /// Of the witness, not of the stream's own times.
    clock: Timestamp,
    patience: i64,
    heard_of_session: bool,
}

impl Waiting {
    pub(super) fn new(witnesses: Witnesses) -> Self {
        Self {
            witnesses,
            first: None,
            behind: VecDeque::new(),
            facts: EarlyFacts::default(),
            clock: Timestamp::default(),
            patience: ALL_PATIENCE,
            heard_of_session: false,
        }
    }

    pub(super) fn any(&self) -> bool {
        self.first.is_some()
    }

    /// Whether the session file speaks of the run.
    pub(super) fn has_session(&self) -> bool {
        self.witnesses.session
    }

    /// Whether the result of this call waits for what the session file says of it.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.first.as_ref().is_some_and(|first| first.result.id == id && first.since.is_some())
    }

    /// When the first one has waited long enough for its fact.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let since = self.first.as_ref()?.since?;
        Some(Timestamp::from_millis(since.as_millis().saturating_add(self.patience_now().min(self.patience))))
    }

    fn patience_now(&self) -> i64 {
        if self.heard_of_session { PATIENCE_WITH_SESSION } else { PATIENCE }
    }

    /// The file that the disk should be asked about.
    pub(super) fn file(&self) -> Option<&str> {
        self.first.as_ref()?.file.as_deref()
    }

    /// Queues an input behind a result that waits; gives it back when none does.
    pub(super) fn queue<'a>(&mut self, input: Input<'a>) -> Option<Input<'a>> {
        if self.first.is_none() {
            return Some(input);
        }
        match input {
            Input::Line(line) => self.behind.push_back(Input::Line(line.into_owned().into())),
            Input::TooLong { sample, bytes } => self.behind.push_back(Input::TooLong { sample, bytes }),
            Input::Acp(message) => self.behind.push_back(Input::Acp(message)),
            Input::Decided(decided) => self.behind.push_back(Input::Decided(decided)),
            other => return Some(other),
        }
        None
    }

    pub(super) fn next(&mut self) -> Option<Input<'static>> {
        if self.first.is_some() { None } else { self.behind.pop_front() }
    }

    /// A result has come: it is given back with what is known of it, or it waits. `file` is what it claims to have written.
    pub(super) fn result(&mut self, result: Returned, file: Option<String>) -> Option<(Returned, Testimony)> {
        let fact = self.facts.take(&result.id);
        let waits_for_fact = self.witnesses.session && fact.is_none() && self.patience > 0;
        let file = file.filter(|_| self.witnesses.disk);
        let testimony = Testimony { fact, disk: None };
        if !waits_for_fact && file.is_none() {
            return Some((result, testimony));
        }
        self.first = Some(First { result, since: waits_for_fact.then_some(self.clock), file, testimony });
        None
    }

    /// The session file says something of a call. `file` is what it claims to have written: over ACP that is known only now.
    pub(super) fn fact(
        &mut self,
        id: String,
        fact: ToolFact,
        file: Option<String>,
    ) -> Option<(Returned, Testimony)> {
        self.patience = ALL_PATIENCE;
        let looks = self.witnesses.disk;
        match &mut self.first {
            Some(first) if first.result.id == id && first.since.is_some() => {
                (first.since, first.testimony.fact) = (None, Some(fact));
                let succeeded = first.result.success && first.result.error.is_none();
                if looks && succeeded && first.testimony.disk.is_none() {
                    first.file = file;
                }
                self.ready()
            }
            _ => {
                self.facts.keep(id, fact);
                None
            }
        }
    }

    /// The session file says something of anything.
    pub(super) fn session_speaks(&mut self) {
        self.heard_of_session = true;
    }

    /// The session file says nothing any more: nobody waits for it.
    pub(super) fn session_ends(&mut self) -> Option<(Returned, Testimony)> {
        self.witnesses.session = false;
        self.first.as_mut()?.since = None;
        self.ready()
    }

    /// The disk says something of a file: whether that was waited for, and the result if it waits for nothing else.
    pub(super) fn disk(&mut self, path: &str, state: DiskFact) -> (bool, Option<(Returned, Testimony)>) {
        let Some(first) = self.first.as_mut().filter(|first| first.file.as_deref() == Some(path)) else {
            return (false, None);
        };
        (first.file, first.testimony.disk) = (None, Some(state));
        (true, self.ready())
    }

    pub(super) fn time(&mut self, now: Timestamp) -> Option<(Returned, Testimony)> {
        self.clock = now;
        let until = self.until()?;
        let since = self.first.as_mut()?.since.as_mut()?;
        // A clock that was set back.
        *since = now.min(*since);
        if now < until {
            return None;
        }
        self.patience = self.patience.saturating_sub(self.patience_now()).max(0);
        // A file that was never there will not be there for the next one either.
        if !self.heard_of_session {
            self.patience = 0;
        }
        self.first.as_mut()?.since = None;
        self.ready()
    }

    /// The first one, whatever it waits for.
    pub(super) fn give_up(&mut self) -> Option<(Returned, Testimony)> {
        self.first.take().map(|first| (first.result, first.testimony))
    }

    fn ready(&mut self) -> Option<(Returned, Testimony)> {
        let ready = self.first.as_ref().is_some_and(|first| first.since.is_none() && first.file.is_none());
        if ready { self.give_up() } else { None }
    }
}

/// Facts of calls whose results have not come; the oldest go first when there are too many.
#[derive(Default)]
struct EarlyFacts {
    by_id: HashMap<String, ToolFact>,
    /// In the order of their coming, also those that have been taken since.
    order: VecDeque<String>,
    size: usize,
}

impl EarlyFacts {
    fn keep(&mut self, id: String, fact: ToolFact) {
        let _before = self.take(&id);
        self.size += size(&fact);
        self.by_id.insert(id.clone(), fact);
        self.order.push_back(id);
        while self.size > ALL_FACTS || self.order.front().is_some_and(|id| !self.by_id.contains_key(id)) {
            let Some(oldest) = self.order.pop_front() else { return };
            let _forgotten = self.take(&oldest);
        }
    }

    fn take(&mut self, id: &str) -> Option<ToolFact> {
        let fact = self.by_id.remove(id)?;
        self.size = self.size.saturating_sub(size(&fact));
        Some(fact)
    }
}

fn size(fact: &ToolFact) -> usize {
    let texts = [&fact.output, &fact.error, &fact.diff, &fact.before, &fact.after];
    ENTRY + texts.into_iter().map(|text| text.as_ref().map_or(0, |text| text.len())).sum::<usize>()
}
