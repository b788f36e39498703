//! From what Gemini CLI wrote to events and an outcome.
//!
//! The interpreter takes one [`Input`] at a time and never looks back: all it keeps is what the outcome needs, and it asks
//! nobody. It knows
//! what the stream leaves out (0.61.0): results carry no tool name, so calls are remembered by id (C-32); a write
//! has no diff; a command has no exit code; a cancelled call says success.

mod acp;
mod attempts;
mod broken;
mod costing;
mod counting;
mod derive;
mod ending;
mod input;
mod joined;
mod kept;
mod lines;
mod report;
mod stopwatch;
mod tools;
mod waiting;
mod whole;

use self::acp::Acp;
use self::attempts::Attempts;
use self::costing::Costing;
use self::counting::UsageTold;
use self::derive::PromptFile;
pub use self::input::{Decided, DiskFact, Input, Prompted, SpendingLimits};
use self::joined::Joined;
use self::kept::{Kept, OpenCalls};
pub use self::waiting::Witnesses;
use self::waiting::{Returned, Testimony, Waiting};
use crate::answer::{Answered, Unfit};
use crate::conversation::{Conversation, Growing};
use crate::event::{Event, EventKind, Source};
use crate::join::Fact;
use crate::judge::{End, Facts, Finish, Stop, Stopped};
use crate::outcome::{FileRecord, Outcome};
use crate::prices::Prices;
use crate::time::Timestamp;
use crate::tool::{self};

/// Turns lines into events, and in the end into an outcome.
pub struct Interpreter {
    waiting: Waiting,
    seq: u64,
    now: Timestamp,
    first: Option<Timestamp>,
    open: OpenCalls,
    facts: Facts,
    outcome: Outcome,
    kept: Kept,
    joined: Joined,
    costing: Costing,
    told: UsageTold,
    asked_model: Option<String>,
    session_lost: bool,
    finish_unavailable: bool,
    stats_duration: Option<u64>,
    changing_tools: bool,
    prompt_file: Option<PromptFile>,
    denied: Vec<String>,
    limits: SpendingLimits,
    over: bool,
    attempts: Attempts,
    /// All that was said, where somebody wants it.
    said: Option<Growing>,
    acp: Option<Box<Acp>>,
    /// Who runs, if it is not Gemini CLI.
    agent: Option<String>,
}

impl Default for Interpreter {
    fn default() -> Self {
        Self::new()
    }
}

impl Interpreter {
    /// An interpreter of a stream of which nobody else knows anything.
    pub fn new() -> Self {
        Self::with(Witnesses::default())
    }

    /// An interpreter that waits for what others say of a result.
    pub fn with(witnesses: Witnesses) -> Self {
        Self {
            waiting: Waiting::new(witnesses),
            seq: 0,
            now: Timestamp::default(),
            first: None,
            open: OpenCalls::default(),
            facts: Facts::default(),
            outcome: Outcome::default(),
            kept: Kept::default(),
            joined: Joined::default(),
            costing: Costing::default(),
            told: UsageTold::default(),
            asked_model: None,
            session_lost: false,
            finish_unavailable: false,
            stats_duration: None,
            changing_tools: false,
            prompt_file: None,
            denied: Vec::new(),
            limits: SpendingLimits::default(),
            over: false,
            attempts: Attempts::default(),
            said: None,
            acp: None,
            agent: None,
        }
    }

    /// The same, keeping all that is said for [`take_conversation`](Self::take_conversation).
    pub fn keeping_conversation(mut self) -> Self {
        self.said = Some(Growing::default());
        self
    }

    /// The same by these prices, as long as the input brings no others.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.costing.take(prices);
        self
    }

    /// The same by these prices, whatever the input says.
    pub fn only_by_prices(mut self, prices: Prices) -> Self {
        self.costing.take_for_good(prices);
        self
    }

    /// What was said and done; once, at the end, and only where it was kept.
    pub fn take_conversation(&mut self, out: &mut Vec<Event>) -> Option<Conversation<'static>> {
        self.wait_no_more(out);
        self.announce_held(out);
        self.said.take().map(Growing::finish)
    }

    /// Takes what has come in, and appends what follows from it. After [`Input::End`] nothing does any more.
    pub fn feed(&mut self, input: Input<'_>, out: &mut Vec<Event>) {
        // Nearly all that comes is lines that nothing waits before; an input is large, and need not be moved for them.
        if let (Input::Line(line), false, false) = (&input, self.over, self.waiting.any()) {
            return self.take_line(line, out);
        }
        let Some(input) = self.waiting.queue(input).filter(|_| !self.over) else { return };
        match input {
            Input::Line(line) => self.take_line(&line, out),
            Input::TooLong { sample, bytes } => self.too_long(sample, bytes, out),
            Input::Noise { sample, bytes } => self.malformed(sample, bytes, out),
            Input::Report(report) => self.report(*report, out),
            Input::Text { text, exit } => self.plain_text(&text, exit, out),
            Input::Acp(message) => self.agent_says(&message, out),
            Input::Prompted(prompted) => self.prompted(*prompted, out),
            Input::Decided(decided) => self.decided(*decided, out),
            Input::Time(now) => {
                self.now = now;
                let ready = self.waiting.time(now);
                self.go_on(ready, out);
            }
            Input::Fact(fact) => self.take_fact(fact, out),
            Input::SessionEnded => {
                let ready = self.waiting.session_ends();
                self.go_on(ready, out);
            }
            Input::Disk { path, state } => match self.waiting.disk(&path, state) {
                (true, ready) => self.go_on(ready, out),
                (false, _) => self.verify(&path, state),
            },
            Input::Prices(prices) => self.costing.take(*prices),
            Input::SpendingLimits(limits) => self.limits = limits,
            Input::FinishReasonUnavailable => self.finish_unavailable = true,
            Input::Agent(name) => self.agent = Some(name),
            Input::Denied(tools) => self.denied = tools,
            Input::Warning(message) => self.warn(message, out),
            Input::MayGoOn => self.attempts.may_go_on(),
            Input::Dropped(dropped) => self.outcome.malformed.add(dropped),
            input => {
                self.wait_no_more(out);
                match input {
                    Input::Found { path, change } => self.found_on_disk(path, change, out),
                    Input::Statistics(statistics) => self.outcome.statistics = Some(*statistics),
                    Input::GoesOn => self.goes_on(),
                    Input::Stop(stop) => self.stopping(stop),
                    Input::Halted(why) => drop(self.facts.halted.get_or_insert(why)),
                    Input::Answered(answered) => self.take_answer(*answered),
                    Input::OverBudget(why) => drop(self.facts.over_budget.get_or_insert(why)),
                    Input::FinishReason(reason) => self.facts.finish = Finish::given(reason),
                    Input::SessionLost => self.session_lost = true,
                    Input::End(end) => drop(self.end(&end, out)),
                    _ => {}
                }
            }
        }
    }

    /// One line of stream-json, without its end.
    pub fn line(&mut self, line: &[u8], out: &mut Vec<Event>) {
        self.feed(Input::Line(line.into()), out);
    }

    /// The process is gone: the verdict, and the last event.
    pub fn conclude(mut self, end: &End, out: &mut Vec<Event>) -> std::sync::Arc<Outcome> {
        self.wait_no_more(out);
        self.end(end, out)
    }

    /// Whether a result waits for what others say of it: whoever has more lines keeps them until it does not.
    pub fn waits(&self) -> bool {
        self.waiting.any()
    }

    /// Until when; [`Input::Time`] has to come then.
    pub fn waits_until(&self) -> Option<Timestamp> {
        self.waiting.until()
    }

    /// The file of which the disk's word is waited for, as an [`Input::Disk`].
    pub fn wanted_file(&self) -> Option<&str> {
        self.waiting.file()
    }

    /// A result need not wait any longer, and what queued behind it is taken until another has to.
    fn go_on(&mut self, ready: Option<(Returned, Testimony)>, out: &mut Vec<Event>) {
        let Some((result, testimony)) = ready else { return };
        self.returned(result, testimony, out);
        while let Some(input) = self.waiting.next() {
            self.feed(input, out);
        }
    }

    fn wait_no_more(&mut self, out: &mut Vec<Event>) {
        while let Some(ready) = self.waiting.give_up() {
            self.go_on(Some(ready), out);
        }
    }

    /// Whether a tool call is open: silence is then no sign of trouble.
    pub fn tool_open(&self) -> bool {
        self.open.any()
    }

    /// Whether the `result` has come.
    pub fn has_result(&self) -> bool {
        self.facts.result.is_some()
    }

    /// Whether a tool ran, or still runs, that could have changed files without saying so.
    pub fn may_have_changed_files(&self) -> bool {
        self.changing_tools || self.open.names().any(|name| tool::class(name).may_change_files())
    }

    /// The files that tools say they have written.
    pub fn claimed_files(&self) -> &[FileRecord] {
        &self.outcome.files
    }

    /// Something that only the session file says.
    fn take_fact(&mut self, fact: Fact, out: &mut Vec<Event>) {
        if !matches!(fact, Fact::Call { .. }) {
            self.waiting.session_speaks();
        }
        let Some(fact) = self.beside_acp(fact) else { return };
        // Over ACP all calls of a session stand on one message: it says nothing of answers.
        let of_an_answer = self.acp.is_none() || !matches!(fact, Fact::Tool { .. });
        if let Some(said) = self.said.as_mut().filter(|_| of_an_answer) {
            said.fact(&fact);
        }
        match fact {
            Fact::Thought { at, subject, text, .. } => {
                let now = self.now;
                self.now = at.unwrap_or(now);
                self.emit(Source::Session, EventKind::Thinking { subject, text }, out);
                self.now = now;
            }
            Fact::Usage { model, tokens, .. } => {
                self.joined.usage.add(&model, &tokens);
                let cost = self.costing.call(&model, &tokens, self.now);
                if let Some(acp) = &mut self.acp {
                    acp.watch.answer(&model, tokens, self.now);
                }
                let model = Some(model.as_str()).filter(|model| !model.is_empty());
                self.tell_call(Source::Session, model, tokens, cost, out);
            }
            Fact::UsageAside { model, tokens } => {
                self.joined.usage.add(&model, &tokens);
                let cost = self.costing.call(&model, &tokens, self.now);
                if let Some(acp) = &mut self.acp {
                    acp.watch.answer_of_sub_agent(&model, tokens);
                }
                // Not of the session's own messages, which are told as such.
                self.tell_call(Source::Derived, Some(&model), tokens, cost, out);
            }
            Fact::Text { text, .. } => self.joined.text(text),
            Fact::Loop => self.repeats_itself(),
            Fact::Call { .. } => {}
            Fact::Tool { id, fact, .. } => {
                let file = self.claimed_file(&id);
                let ready = self.waiting.fact(id, *fact, file);
                self.go_on(ready, out);
            }
        }
    }

    /// The session's id, once the stream has told it.
    pub fn session_id(&self) -> Option<&str> {
        self.outcome.session_id.as_deref()
    }

    /// Alhena begins to stop the run now. The first reason counts.
    fn stopping(&mut self, stop: Stop) {
        let after_result = self.facts.result.is_some();
        self.facts.stop.get_or_insert(Stopped { why: stop, after_result });
    }

    /// An answer that had to fit a schema does, or there is none.
    fn take_answer(&mut self, answered: Answered) {
        match answered {
            Answered::Valid { data } => self.outcome.data = Some(data),
            Answered::Invalid { answer, errors, tries } => {
                self.facts.unfit = Some(Unfit { answer, errors, tries });
            }
        }
    }

    /// What the model said last, so far.
    pub fn last_text(&self) -> &str {
        self.outcome.text.last()
    }

    fn warn(&mut self, message: impl Into<String>, out: &mut Vec<Event>) {
        let message = message.into();
        if self.kept.warning(&mut self.outcome, &message) {
            self.emit(Source::Derived, EventKind::Warning { message }, out);
        }
    }

    fn emit(&mut self, source: Source, kind: EventKind, out: &mut Vec<Event>) {
        out.push(Event { seq: self.seq, at: self.now, source, kind });
        self.seq += 1;
    }
}

#[cfg(test)]
mod tests;
