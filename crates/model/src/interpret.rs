//! From what Gemini CLI wrote to events and an outcome.
//!
//! The interpreter takes one [`Input`] at a time and never looks back: all it keeps is what the outcome needs, and it asks
//! nobody. It knows
//! what the stream leaves out (0.61.0): results carry no tool name, so calls are remembered by id (C-32); a write
//! has no diff; a command has no exit code; a cancelled call says success.

mod acp;
mod broken;
mod costing;
mod derive;
mod input;
mod joined;
mod kept;
mod report;
mod tools;
mod waiting;
mod whole;

use std::borrow::Cow;

use alhena_wire::Count;
use alhena_wire::stream;
use alhena_wire::stream::{ErrorEvent, Message, ResultEvent, Role, Severity, Status, StreamEvent};
use serde_json::Value;

use self::acp::Acp;
use self::costing::Costing;
use self::derive::PromptFile;
pub use self::input::{Decided, DiskFact, Input, Prompted};
use self::joined::Joined;
use self::kept::{Kept, OpenCalls};
pub use self::waiting::Witnesses;
use self::waiting::{Returned, Testimony, Waiting};
use crate::answer::{Answered, Unfit};
use crate::conversation::{Conversation, Growing, usage_of};
use crate::event::{Event, EventKind, Source};
use crate::failure::{Failure, FailureKind};
use crate::join::Fact;
use crate::judge::{self, End, Exit, Facts, Output, ReportedError, ResultFacts, Stop, Stopped};
use crate::outcome::{FileRecord, Outcome, Text};
use crate::prices::Prices;
use crate::time::Timestamp;
use crate::tool::{self};
use crate::usage::Usage;

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
    asked_model: Option<String>,
    session_lost: bool,
    stats_duration: Option<u64>,
    changing_tools: bool,
    prompt_file: Option<PromptFile>,
    denied: Vec<String>,
    over: bool,
    /// All that was said, where somebody wants it.
    said: Option<Growing>,
    /// A turn over ACP.
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
            asked_model: None,
            session_lost: false,
            stats_duration: None,
            changing_tools: false,
            prompt_file: None,
            denied: Vec::new(),
            over: false,
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
            Input::Agent(name) => self.agent = Some(name),
            Input::Denied(tools) => self.denied = tools,
            Input::Warning(message) => self.warn(message, out),
            input => {
                self.wait_no_more(out);
                match input {
                    Input::Found { path, change } => self.found_on_disk(path, change, out),
                    Input::Statistics(statistics) => self.outcome.statistics = Some(*statistics),
                    Input::Stop(stop) => self.stopping(stop),
                    Input::Halted(why) => drop(self.facts.halted.get_or_insert(why)),
                    Input::Answered(answered) => self.take_answer(*answered),
                    Input::OverBudget(why) => drop(self.facts.over_budget.get_or_insert(why)),
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

    /// Nothing more is waited for.
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

    fn take_line(&mut self, line: &[u8], out: &mut Vec<Event>) {
        match stream::parse_line(line) {
            Ok(event) => self.event(event, out),
            Err(error) => self.broken(line, &error, out),
        }
    }

    /// A line that is no event.
    fn malformed(&mut self, sample: String, bytes: u64, out: &mut Vec<Event>) {
        self.outcome.malformed.lines += 1;
        self.outcome.malformed.bytes = self.outcome.malformed.bytes.saturating_add(bytes);
        if self.facts.output == Output::Nothing {
            self.facts.output = Output::Noise;
        }
        self.emit(Source::Stream, EventKind::Malformed { sample, bytes }, out);
    }

    /// One event of the stream.
    fn event(&mut self, event: StreamEvent<'_>, out: &mut Vec<Event>) {
        if let Some(time) = event.timestamp().and_then(Timestamp::parse) {
            self.now = time;
        }
        self.first.get_or_insert(self.now);
        self.facts.output = Output::Events;
        match event {
            StreamEvent::Init(init) => {
                self.started(init.session_id.into_owned(), init.model.into_owned(), out);
            }
            StreamEvent::Message(message) => self.message(message, out),
            StreamEvent::ToolUse(call) => self.tool_use(call, out),
            StreamEvent::ToolResult(result) => self.tool_result(result, out),
            StreamEvent::Error(error) => self.error(error, out),
            StreamEvent::Result(result) => self.result(result, out),
            StreamEvent::Unknown(unknown) => {
                let raw = unknown.raw.decode().unwrap_or(Value::Null);
                self.emit(Source::Stream, EventKind::Unknown { raw }, out);
            }
        }
    }

    fn started(&mut self, session_id: String, model: String, out: &mut Vec<Event>) {
        self.outcome.session_id = Some(session_id.clone());
        self.asked_model = Some(model.clone()).filter(|model| !model.is_empty());
        self.emit(Source::Stream, EventKind::Started { session_id, model }, out);
    }

    fn message(&mut self, message: Message<'_>, out: &mut Vec<Event>) {
        let text = message.content.into_owned();
        match message.role {
            Role::User => self.asked(text, out),
            Role::Assistant | Role::Other(_) => self.answered(text, out),
        }
    }

    /// The user says something.
    fn asked(&mut self, text: String, out: &mut Vec<Event>) {
        self.prompt_file = PromptFile::named_in(&text);
        if let Some(said) = &mut self.said {
            said.prompt(&text, self.now);
        }
        self.emit(Source::Stream, EventKind::Prompt { text }, out); // A-19, C-34
    }

    /// A piece of the model's answer.
    fn answered(&mut self, text: String, out: &mut Vec<Event>) {
        self.open.model_goes_on();
        self.facts.answered = self.facts.answered || !text.trim().is_empty();
        self.say(text, out);
    }

    /// The model says something.
    fn say(&mut self, delta: String, out: &mut Vec<Event>) {
        self.outcome.text.push(&delta);
        if let Some(said) = &mut self.said {
            said.text(&delta, self.now);
        }
        self.emit(Source::Stream, EventKind::Text { delta }, out);
    }

    /// Something that only the session file says.
    fn take_fact(&mut self, fact: Fact, out: &mut Vec<Event>) {
        self.waiting.session_speaks();
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
                let model = Some(model.as_str()).filter(|model| !model.is_empty());
                self.emit(Source::Session, usage_of(model, tokens, cost), out);
            }
            Fact::SubAgentUsage { model, tokens } => {
                self.joined.usage.add(&model, &tokens);
                self.costing.call(&model, &tokens, self.now);
            }
            Fact::Text { text, .. } => self.joined.text(text),
            Fact::Tool { id, fact, .. } => {
                let ready = self.waiting.fact(id, *fact);
                self.go_on(ready, out);
            }
        }
    }

    /// The session's id, once the stream has told it.
    pub fn session_id(&self) -> Option<&str> {
        self.outcome.session_id.as_deref()
    }

    fn error(&mut self, error: ErrorEvent<'_>, out: &mut Vec<Event>) {
        let message = error.message.into_owned();
        match error.severity {
            Severity::Warning => self.warned(message, out),
            Severity::Error | Severity::Other(_) => self.serious(message, out),
        }
    }

    /// The CLI warns.
    fn warned(&mut self, message: String, out: &mut Vec<Event>) {
        self.kept.warning(&mut self.outcome, &message);
        self.emit(Source::Stream, EventKind::Warning { message }, out);
    }

    /// The CLI calls it an error: the run cannot be a success any more.
    fn serious(&mut self, message: String, out: &mut Vec<Event>) {
        self.facts.error = Some(message.clone());
        self.emit(Source::Stream, EventKind::Error { message }, out);
    }

    fn result(&mut self, result: ResultEvent<'_>, out: &mut Vec<Event>) {
        let success = result.status == Status::Success;
        let error = result.error.map(|error| ReportedError {
            kind: owned(error.kind),
            message: error.message.into_owned(),
            code: None,
        });
        if let Some(error) = &error {
            self.emit(Source::Stream, EventKind::Error { message: error.message.clone() }, out);
        }
        let facts = ResultFacts { success: success && error.is_none(), error };
        if self.facts.result.is_some() {
            return self.second_result(facts, out);
        }
        self.facts.result = Some(facts);
        if let Some(stats) = result.stats {
            self.take_usage(Usage::from(&*stats));
            self.stats_duration = stats.duration_ms.map(Count::get);
            let usage = self.outcome.usage.clone();
            self.emit(Source::Stream, EventKind::Usage(usage), out);
        }
    }

    /// The CLI writes one `result`. A second one does not make a failure good, and one of error takes a success back; but
    /// not when it is the answer to being stopped.
    fn second_result(&mut self, second: ResultFacts, out: &mut Vec<Event>) {
        let (word, counts) = match second.success {
            true => ("success", "the first one counts"),
            false if self.facts.stop.is_some() => {
                ("error", "the first one counts: it was being stopped by then")
            }
            false => ("error", "the run is no success"),
        };
        if !second.success && self.facts.stop.is_none() {
            self.facts.contradiction.get_or_insert(second);
        }
        self.warn(format!("Gemini CLI wrote a second result ({word}); {counts}"), out);
    }

    fn take_usage(&mut self, usage: Usage) {
        self.facts.called |= usage.all.total > 0;
        let answered = usage.models.iter().filter(|(_, tokens)| tokens.total > 0);
        self.outcome.models = answered.map(|(name, _)| name.clone()).collect();
        self.outcome.usage = usage;
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

    /// Something to know.
    fn warn(&mut self, message: impl Into<String>, out: &mut Vec<Event>) {
        let message = message.into();
        if self.kept.warning(&mut self.outcome, &message) {
            self.emit(Source::Derived, EventKind::Warning { message }, out);
        }
    }

    fn end(&mut self, end: &End, out: &mut Vec<Event>) -> std::sync::Arc<Outcome> {
        if let (Some(Stopped { why: Stop::NoExit, .. }), true) = (self.facts.stop, self.has_result()) {
            self.warn("Gemini CLI did not exit after its result and was stopped", out);
        }
        if self.outcome.text.truncated() {
            self.warn(format!("The text is longer than {} bytes and was cut", Text::LIMIT), out);
        }
        self.settle_quota();
        let joined = std::mem::take(&mut self.joined);
        let by_call = joined.usage.clone();
        joined.settle(&mut self.outcome);
        let turns = self.open.turns() + u64::from(self.facts.answered);
        self.costing.settle(&by_call, turns, self.now, &mut self.outcome);
        let (status, failure) = judge::verdict(&self.facts, end);
        self.outcome.status = status;
        self.outcome.failure = failure.map(|failure| self.in_the_agents_name(failure));
        self.outcome.reported = self.facts.reported();
        self.say_how_to_go_on();
        if self.ended_on_a_tool() {
            self.warn("The model said nothing after its last tool result", out);
        }
        self.outcome.exit_code = match end.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Unknown => None,
        };
        if self.outcome.models.is_empty() {
            self.outcome.models.extend(self.asked_model.take());
        }
        let elapsed =
            self.first.map(|first| self.now.as_millis().saturating_sub(first.as_millis()).max(0) as u64);
        self.outcome.duration_ms =
            end.duration_ms.or(self.stats_duration.filter(|ms| *ms > 0)).or(elapsed).unwrap_or(0);
        self.over = true;
        let outcome = std::sync::Arc::new(std::mem::take(&mut self.outcome));
        self.emit(Source::Derived, EventKind::Finished { outcome: outcome.clone() }, out);
        outcome
    }

    /// A failure of an agent that is not Gemini CLI. What to do about Gemini CLI does not help there.
    fn in_the_agents_name(&self, mut failure: Failure) -> Failure {
        if let Some(name) = &self.agent {
            failure.message = failure.message.replace("Gemini CLI", name);
            if failure.hint.to_lowercase().contains("gemini") {
                failure.hint.clear();
            }
        }
        failure
    }

    /// A run that was cut short can be gone on with, unless its session is lost: the hint says how.
    fn say_how_to_go_on(&mut self) {
        if self.session_lost {
            return;
        }
        let (Some(failure), Some(session)) = (&mut self.outcome.failure, &self.outcome.session_id) else {
            return;
        };
        let plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let cut_short = matches!(
            failure.kind,
            FailureKind::TurnLimit
                | FailureKind::Budget
                | FailureKind::Cancelled
                | FailureKind::Timeout
                | FailureKind::DiskFull
        );
        if cut_short && plain && !session.is_empty() {
            failure.hint.push_str(&format!(" To go on with this session: --resume={session}"));
        }
    }

    /// A success with no last word, and nothing that explains it: the context was full, or a hook stopped the agent.
    fn ended_on_a_tool(&self) -> bool {
        let outcome = &self.outcome;
        self.facts.tool_came_back
            && outcome.data.is_none()
            && outcome.is_success()
            && outcome.warnings.is_empty()
            && outcome.text.last().trim().is_empty()
    }

    fn emit(&mut self, source: Source, kind: EventKind, out: &mut Vec<Event>) {
        out.push(Event { seq: self.seq, at: self.now, source, kind });
        self.seq += 1;
    }
}

fn owned(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests;
