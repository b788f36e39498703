//! A turn over ACP: what the agent says becomes the same steps as what the stream says.
//!
//! What is different from the stream (Gemini CLI 0.61.0): calls come without their arguments, some are never announced and some never
//! end, thoughts come at once, and the output of commands does not come at all. The arguments are in the recorded answers of the API
//! before a call begins; where these are not recorded, a call is held back until the session file has them, which is when it has
//! ended. Facts of calls that nobody announced announce them.

mod alone;

use std::collections::HashMap;

use alhena_wire::acp::{
    AgentMessage, Call as Told, FileDiff, Refusal, Status, ToolKind, TurnEnd, Update, gemini,
};
use alhena_wire::rpc::{Id, Message};
use serde_json::{Map, Value, json};

use super::kept::Call;
use super::stopwatch::Stopwatch;
use super::waiting::{Returned, Testimony};
use super::{Decided, Interpreter, Prompted, derive};
use crate::conversation::REJECTED;
use crate::event::{Event, EventKind, Source, ToolError};
use crate::hook;
use crate::join::{Called, Fact, ToolFact};
use crate::judge::{Finish, Output, ReportedError, ResultFacts};
use crate::tool::{self, Class};
use crate::usage::{Tokens, Usage};

const CONTEXT_IS_FULL: &str = "What there is to be said does not fit into the model's context window";

/// The protocol's own number for "sign in first".
const SIGN_IN: i64 = -32000;

/// What is remembered of a turn over ACP beside what every run has.
#[derive(Default)]
pub(super) struct Acp {
    session: String,
    request: Option<Id>,
    dir: String,
    /// The agent is Gemini CLI, with its own ways.
    is_gemini: bool,
    calls: HashMap<String, Progress>,
    /// The complete arguments of calls, by a recorded answer or by the session file, until their results are told.
    arguments: HashMap<String, Called>,
    /// The arguments of calls that are held back, as far as titles and diffs show them.
    shown: HashMap<String, Value>,
    /// Facts of calls that nobody has announced.
    unheard: Vec<(String, Called, ToolFact)>,
    /// How often each thought was streamed, less how often the session file has told it.
    thoughts: HashMap<(String, String), i32>,
    /// The changes of calls that have not ended, where only the agent tells of them.
    diffs: HashMap<String, Vec<FileDiff>>,
    /// What the end of the turn says of tokens.
    quota: Vec<gemini::Quota>,
    pub(super) watch: Stopwatch,
    max_turns: Option<u32>,
    /// The CLI has told the model that it repeats itself.
    repeats_itself: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It is known, and its event waits for its arguments.
    Held,
    /// Its event is out.
    Announced,
    Ended,
}

impl Interpreter {
    /// How many tokens of prompts the session file has not told yet: what the end of a turn counted says how many there are.
    pub fn untold_tokens(&self) -> u64 {
        let counted: u64 = self.acp.iter().flat_map(|acp| &acp.quota).map(|quota| quota.input).sum();
        counted.saturating_sub(self.joined.usage.all.prompt)
    }

    pub(super) fn prompted(&mut self, prompted: Prompted, out: &mut Vec<Event>) {
        let Prompted { request, session, model, dir, text, is_gemini, max_turns } = prompted;
        self.first.get_or_insert(self.now);
        self.facts.output = Output::Events;
        let request = Some(Id::from(request));
        let (session_id, watch) = (session.clone(), Stopwatch::since(self.now));
        let quota = self.acp.take().map(|before| before.quota).unwrap_or_default();
        let acp =
            Acp { session: session_id, request, dir, is_gemini, max_turns, watch, quota, ..Acp::default() };
        self.acp = Some(Box::new(acp));
        if let Some(said) = self.said.as_mut().filter(|_| self.waiting.has_session()) {
            said.one_by_one();
        }
        self.started(session, model, out);
        self.asked(text, out);
    }

    /// A message of the agent. What is of another session, or before the prompt, is not of this turn.
    pub(super) fn agent_says(&mut self, message: &Message, out: &mut Vec<Event>) {
        let Some(acp) = &self.acp else { return };
        match AgentMessage::of(message) {
            AgentMessage::Update { session, update, spent } if session == acp.session => {
                self.update(update, out);
                self.spent(spent, out);
            }
            AgentMessage::Asks { session, call, .. } if session == acp.session => self.call(*call, out),
            AgentMessage::Answer { id, outcome } if Some(&id) == acp.request.as_ref() => {
                self.turn_ends(outcome, out)
            }
            AgentMessage::Other(raw) => self.emit(Source::Stream, EventKind::Unknown { raw }, out),
            AgentMessage::Update { .. }
            | AgentMessage::Asks { .. }
            | AgentMessage::Wants { .. }
            | AgentMessage::Answer { .. } => {}
        }
    }

    fn update(&mut self, update: Update, out: &mut Vec<Event>) {
        match update {
            Update::Text(text) if text.is_empty() => {}
            Update::Text(text) if self.is_gemini() && gemini::is_mode_update(&text) => {}
            Update::Text(text) => {
                self.hear_of_unheard(None, out);
                self.model_speaks();
                self.answered(text, out);
            }
            Update::Thought(text) => {
                self.hear_of_unheard(None, out);
                self.open.model_goes_on();
                self.model_speaks();
                self.thinks(&text, out);
            }
            Update::Call(call) => self.call(*call, out),
            Update::Aside => {}
            Update::Unknown(raw) => self.emit(Source::Stream, EventKind::Unknown { raw }, out),
        }
    }

    fn model_speaks(&mut self) {
        if let Some(acp) = &mut self.acp {
            acp.watch.model_speaks(self.now);
        }
    }

    fn thinks(&mut self, text: &str, out: &mut Vec<Event>) {
        let (subject, text) = if self.is_gemini() { gemini::thought(text) } else { ("", text) };
        if !self.waiting.has_session()
            && let Some(said) = &mut self.said
        {
            said.thought(subject, text, self.now);
        }
        let (subject, text) = (subject.to_owned(), text.to_owned());
        if self.is_first_to_think(&subject, &text, 1) {
            self.emit(Source::Stream, EventKind::Thinking { subject, text }, out);
        }
    }

    fn is_gemini(&self) -> bool {
        self.acp.as_ref().is_some_and(|acp| acp.is_gemini)
    }

    /// The agent and the session file both tell a thought; whoever is first is heard.
    fn is_first_to_think(&mut self, subject: &str, text: &str, step: i32) -> bool {
        let Some(acp) = &mut self.acp else { return true };
        let told = acp.thoughts.entry((subject.to_owned(), text.trim().to_owned())).or_default();
        *told += step;
        *told * step > 0
    }

    /// Something is told of a call, perhaps the first thing.
    fn call(&mut self, told: Told, out: &mut Vec<Event>) {
        let known = self.acp.as_ref().and_then(|acp| acp.calls.get(&told.id).copied());
        match known {
            None => self.call_begins(&told, out),
            Some(Progress::Ended) => return,
            Some(Progress::Held) => self.call_goes_on(&told, out),
            Some(Progress::Announced) => {}
        }
        self.keep_diff(&told);
        let success = match told.status {
            Status::Open => return,
            Status::Completed => true,
            Status::Failed => false,
        };
        let name = self.open.get(&told.id).map(|call| call.name.clone()).unwrap_or_default();
        if success {
            self.claim(&told, &name, out);
        }
        let detail = self.detail(&told, success);
        let printed = detail.as_ref().and_then(|detail| detail.output.as_deref().map(str::to_owned));
        let text = printed.or_else(|| told.text()).or_else(|| told.output.as_ref().map(plain));
        let error = |text: &Option<String>| {
            let message = text.clone().unwrap_or_default();
            ToolError { kind: String::new(), message }
        };
        let error = (!success).then(|| error(&text));
        self.ended(&told.id);
        let result = Returned { id: told.id, success, output: text, error, at: self.now, detail };
        self.came_back(result, out);
    }

    fn call_begins(&mut self, told: &Told, out: &mut Vec<Event>) {
        self.hear_of_unheard(Some(&told.id), out);
        let will_be_known = self.waiting.has_session();
        let Some(acp) = &mut self.acp else { return };
        let heard = acp.unheard.iter().position(|(id, ..)| *id == told.id).map(|at| acp.unheard.remove(at));
        let called = heard.as_ref().map(|(_, called, _)| called).or_else(|| acp.arguments.get(&told.id));
        let in_id = || gemini::tool_name(&told.id).filter(|_| acp.is_gemini);
        let name = called.map(|called| called.name.as_str()).filter(|name| !name.is_empty());
        let name = name.or(told.name.as_deref()).or_else(in_id);
        let name = name.or(told.title.as_deref()).unwrap_or_default().to_owned();
        let recorded = || acp.arguments.get(&told.id).and_then(|called| called.input.clone());
        let input = called.and_then(|called| called.input.clone()).or_else(recorded).or_else(|| given(told));
        let shown = shown(&name, told, &acp.dir);
        // What reads is over in a moment, and its arguments are known then. Others are announced while the model still writes
        // their arguments (Qwen Code 0.24.4).
        let reads = matches!(told.kind, Some(ToolKind::Read | ToolKind::Search));
        let held = input.is_none() && (will_be_known || told.input.is_some() || (reads && shown.is_none()));
        let progress = if held { Progress::Held } else { Progress::Announced };
        acp.calls.insert(told.id.clone(), progress);
        if let Some(shown) = shown.clone().filter(|_| held) {
            acp.shown.insert(told.id.clone(), shown);
        }
        let input = input.or(shown).unwrap_or_else(|| Value::Object(Map::new()));
        self.remember(&told.id, &name, &input);
        if !held {
            self.announce(told.id.clone(), name, input, out);
        }
        if let Some((id, called, fact)) = heard {
            self.tell_arguments(&id, called);
            let file = self.claimed_file(&id);
            let ready = self.waiting.fact(id, fact, file);
            self.go_on(ready, out);
        }
    }

    /// More is told of a call that waits for its arguments.
    fn call_goes_on(&mut self, told: &Told, out: &mut Vec<Event>) {
        let Some(name) = self.open.get(&told.id).map(|call| call.name.clone()) else { return };
        let will_be_known = self.waiting.has_session();
        let Some(acp) = &mut self.acp else { return };
        let shown = shown(&name, told, &acp.dir);
        let Some(input) = given(told).or_else(|| shown.clone().filter(|_| !will_be_known)) else {
            acp.shown.extend(shown.map(|shown| (told.id.clone(), shown)));
            return;
        };
        acp.calls.insert(told.id.clone(), Progress::Announced);
        self.open.learn(&told.id, derive::what_the_result_needs(tool::class(&name), &input));
        self.announce(told.id.clone(), name, input, out);
    }

    fn ended(&mut self, id: &str) {
        let Some(acp) = &mut self.acp else { return };
        if let Some(progress) = acp.calls.get_mut(id).filter(|progress| **progress != Progress::Held) {
            *progress = Progress::Ended;
        }
    }

    /// What the session file says while a turn goes on over ACP; gives back what is as with every run.
    pub(super) fn beside_acp(&mut self, fact: Fact) -> Option<Fact> {
        let Some(acp) = &mut self.acp else { return Some(fact) };
        match fact {
            Fact::Tool { message, id, fact, call } => {
                let Some(called) = call else { return Some(Fact::Tool { message, id, fact, call: None }) };
                match acp.calls.get(&id) {
                    None => {
                        acp.unheard.push((id, *called, *fact));
                        None
                    }
                    Some(Progress::Ended) if !self.waiting.waits_for(&id) => None,
                    Some(_) => {
                        self.tell_arguments(&id, *called);
                        Some(Fact::Tool { message, id, fact, call: None })
                    }
                }
            }
            Fact::Thought { message, at, subject, text } => {
                let first = self.is_first_to_think(&subject, &text, -1);
                let fact = Fact::Thought { message, at, subject, text };
                if !first && let Some(said) = &mut self.said {
                    said.fact(&fact);
                }
                first.then_some(fact)
            }
            Fact::Call { id, call } => {
                self.tell_arguments(&id, *call);
                None
            }
            other => Some(other),
        }
    }

    fn tell_arguments(&mut self, id: &str, called: Called) {
        if let Some(acp) = self.acp.as_mut().filter(|_| called.input.is_some()) {
            acp.arguments.insert(id.to_owned(), called);
        }
    }

    /// The arguments of a call that is not told yet, where only the session file has them.
    pub(super) fn arguments_of(&self, id: &str) -> Option<&Value> {
        self.acp.as_ref()?.arguments.get(id)?.input.as_ref()
    }

    /// A result is told: what its call was asked for is known by now, or never will be.
    pub(super) fn learn_arguments(&mut self, id: &str, call: &mut Call, out: &mut Vec<Event>) {
        let Some(acp) = &mut self.acp else { return };
        let known = acp.arguments.remove(id).and_then(|called| called.input);
        let shown = acp.shown.remove(id);
        let held = acp.calls.insert(id.to_owned(), Progress::Ended) == Some(Progress::Held);
        if let Some(input) = &known {
            call.input = derive::what_the_result_needs(tool::class(&call.name), input);
        }
        if held {
            let input = known.or(shown).unwrap_or_else(|| Value::Object(Map::new()));
            self.announce(id.to_owned(), call.name.clone(), input, out);
        } else if let (Some(said), Some(input)) = (&mut self.said, &known) {
            said.arguments(id, input);
        }
    }

    /// Announces the calls that were held back and will not end any more, with the arguments that are known.
    pub(super) fn announce_held(&mut self, out: &mut Vec<Event>) {
        let Some(acp) = &mut self.acp else { return };
        let held = acp.calls.iter().filter(|(_, progress)| **progress == Progress::Held);
        let mut held: Vec<String> = held.map(|(id, _)| id.clone()).collect();
        held.sort();
        for id in held {
            let Some(acp) = &mut self.acp else { return };
            acp.calls.insert(id.clone(), Progress::Announced);
            let known = acp.arguments.get(&id).and_then(|called| called.input.clone());
            let input = known.or_else(|| acp.shown.remove(&id)).unwrap_or_else(|| Value::Object(Map::new()));
            let Some(name) = self.open.get(&id).map(|call| call.name.clone()) else { continue };
            self.announce(id, name, input, out);
        }
    }

    /// The calls whose arguments nobody has told yet: the session file has their results, and the agent never mentioned them. Gemini
    /// CLI does not mention calls of tools that it does not know (0.61.0).
    pub fn calls_without_arguments(&self) -> Vec<String> {
        let unheard = self.acp.iter().flat_map(|acp| &acp.unheard);
        let missing =
            unheard.filter(|(id, called, _)| called.input.is_none() && self.arguments_of(id).is_none());
        missing.map(|(id, ..)| id.clone()).collect()
    }

    /// The model goes on: calls that the session file has and the agent did not mention are over.
    fn hear_of_unheard(&mut self, but: Option<&str>, out: &mut Vec<Event>) {
        let Some(acp) = &mut self.acp else { return };
        let (kept, over) =
            std::mem::take(&mut acp.unheard).into_iter().partition(|(id, ..)| Some(id.as_str()) == but);
        acp.unheard = kept;
        let over: Vec<(String, Called, ToolFact)> = over;
        for (id, called, fact) in over {
            if let Some(acp) = &mut self.acp {
                acp.calls.insert(id.clone(), Progress::Announced);
            }
            let recorded = self.arguments_of(&id).cloned();
            let input = called.input.or(recorded).unwrap_or_else(|| Value::Object(Map::new()));
            self.remember(&id, &called.name, &input);
            self.announce(id.clone(), called.name, input, out);
            let error = fact
                .error
                .as_deref()
                .map(|message| ToolError { kind: kind_of(message).to_owned(), message: message.to_owned() });
            let success = error.is_none() && !fact.failed;
            let result = Returned { id, success, output: None, error, at: self.now, detail: None };
            self.returned(result, Testimony { fact: Some(fact), disk: None }, out);
        }
    }

    /// A question was answered. A call that may not run is over: the agent says nothing more of it.
    pub(super) fn decided(&mut self, decided: Decided, out: &mut Vec<Event>) {
        if let Some(acp) = &mut self.acp {
            acp.watch.decided(&decided.call, decided.rejected.is_some(), self.now);
        }
        let Some(message) = decided.rejected else { return };
        let known = self.acp.as_ref().and_then(|acp| acp.calls.get(&decided.call).copied());
        if !matches!(known, Some(Progress::Announced | Progress::Held)) {
            return;
        }
        if hook::undecided(&message).is_some() {
            let name = self.open.get(&decided.call).map(|call| call.name.clone()).unwrap_or_default();
            self.warn(derive::denied_by_hook(&name, &message), out);
        }
        let error = Some(ToolError { kind: REJECTED.to_owned(), message });
        let result =
            Returned { id: decided.call, success: false, output: None, error, at: self.now, detail: None };
        self.returned(result, Testimony::default(), out);
    }

    /// The answer to the prompt: the turn is over.
    fn turn_ends(&mut self, outcome: Result<Value, Refusal>, out: &mut Vec<Event>) {
        self.hear_of_unheard(None, out);
        if self.facts.result.is_some() {
            return;
        }
        let facts = match outcome {
            Ok(result) => {
                let end = TurnEnd::read(&result);
                if let Some(acp) = self.acp.as_mut().filter(|acp| acp.is_gemini) {
                    acp.quota.extend(gemini::quota(&end.meta));
                }
                self.reason(&end.reason, out)
            }
            Err(refusal) => {
                let message = refusal_text(refusal.message, &refusal.data);
                self.failed(message.clone(), out);
                let kind = if refusal.code == SIGN_IN { "FatalAuthenticationError" } else { "" };
                let error = ReportedError { kind: kind.to_owned(), message, code: Some(refusal.code) };
                ResultFacts { success: false, error: Some(error) }
            }
        };
        self.facts.result = Some(facts);
    }

    fn reason(&mut self, reason: &str, out: &mut Vec<Event>) -> ResultFacts {
        let failed = |kind: &str, message: &str| {
            let error = ReportedError { kind: kind.to_owned(), message: message.to_owned(), code: None };
            ResultFacts { success: false, error: Some(error) }
        };
        match reason {
            "end_turn" => {}
            // Gemini CLI says this only of a full context; its answers that are cut off end as others do (0.61.0).
            "max_tokens" if self.is_gemini() && self.was_answered() => {
                return failed("INVALID_STREAM", CONTEXT_IS_FULL);
            }
            "max_tokens" if self.is_gemini() => self.warn(CONTEXT_IS_FULL, out),
            "max_tokens" => self.facts.finish = Finish::Reason("MAX_TOKENS".to_owned()),
            "cancelled" => return failed("FatalCancellationError", "The turn was cancelled"),
            // In the words of the stream, which does not call it an error.
            "max_turn_requests" if self.went_in_a_loop() => {
                self.warned("Loop detected, stopping execution".to_owned(), out);
            }
            "max_turn_requests" => {
                return failed("FatalTurnLimitedError", "The agent reached its limit of turns");
            }
            "refusal" => {
                self.facts.finish = Finish::Reason("REFUSAL".to_owned());
                return failed("INVALID_STREAM", "The model refused to answer");
            }
            other => self.warn(format!("The turn ended for a reason that is not known: {other:?}"), out),
        }
        ResultFacts { success: true, error: None }
    }

    /// What was seen of a turn has to do where the CLI's own measurements have not come.
    pub(super) fn settle_statistics(&mut self) {
        if let Some(acp) = self.acp.as_mut().filter(|_| self.outcome.statistics.is_none()) {
            self.outcome.statistics = std::mem::take(&mut acp.watch).finish();
        }
    }

    /// What the CLI asks models for beside the conversation, to choose one of them for example. The stream counts it; over ACP only its
    /// measurements do.
    pub(super) fn settle_aside(&mut self) {
        let Some(statistics) = self.outcome.statistics.as_ref().filter(|_| self.acp.is_some()) else {
            return;
        };
        for (model, calls) in &statistics.models {
            let (mut aside, known) = (Tokens::default(), self.joined.usage.models.get(model));
            let roles = calls.roles.iter().filter(|(role, _)| role.starts_with("utility_"));
            roles.for_each(|(_, calls)| aside.add(&calls.tokens));
            // Those that were told one by one are counted already.
            let untold = calls.all.tokens.without(&known.copied().unwrap_or_default());
            self.joined.usage.add(model, &aside.without(&aside.without(&untold)));
        }
    }

    pub(super) fn repeats_itself(&mut self) {
        if let Some(acp) = &mut self.acp {
            acp.repeats_itself = true;
        }
    }

    /// Gemini CLI has one word for a limit of turns and for a loop that it stopped (0.61.0). Before it stops one it tells the model.
    fn went_in_a_loop(&self) -> bool {
        let below_limit = |limit: u32| self.open.turns() < u64::from(limit);
        self.acp.as_ref().is_some_and(|acp| acp.repeats_itself && acp.max_turns.is_none_or(below_limit))
    }

    /// The tokens of a turn of which no session file tells.
    pub(super) fn settle_quota(&mut self) {
        let Some(acp) = &mut self.acp else { return };
        let quota = std::mem::take(&mut acp.quota);
        self.facts.called |= self.joined.usage.all.total > 0 || quota.iter().any(|quota| quota.input > 0);
        if self.joined.usage.all.total > 0 || self.outcome.usage.all.total > 0 || quota.is_empty() {
            return;
        }
        let tokens = |quota: &gemini::Quota| Tokens {
            prompt: quota.input,
            output: quota.output,
            total: quota.input.saturating_add(quota.output),
            ..Tokens::default()
        };
        self.take_usage(Usage::of_models(quota.iter().map(|quota| (quota.model.as_str(), tokens(quota)))));
    }
}

/// The names that the stream has for what went wrong before a call ran.
fn kind_of(message: &str) -> &'static str {
    if message.contains("not found in registry") {
        "tool_not_registered"
    } else if message.contains("was canceled by the user") {
        REJECTED
    } else {
        ""
    }
}

/// The arguments of a call, where the agent gives them.
fn given(told: &Told) -> Option<Value> {
    told.input.clone().filter(|input| input.as_object().is_none_or(|input| !input.is_empty()))
}

/// The arguments of a call, as far as its title and its diff show them.
fn shown(name: &str, told: &Told, dir: &str) -> Option<Value> {
    let class = tool::class(name);
    if let Some(diff) = told.diffs.first() {
        let path = relative(&diff.path, dir);
        return Some(match name {
            "write_file" => json!({"file_path": path, "content": diff.after}),
            _ => json!({"file_path": path, "old_string": diff.before, "new_string": diff.after}),
        });
    }
    if class == Class::Command || told.kind == Some(ToolKind::Execute) {
        return told.title.as_ref().map(|command| json!({"command": command}));
    }
    if class == Class::Mcp {
        let arguments = told.texts.first().and_then(|text| alhena_wire::from_slice(text.as_bytes()).ok());
        return arguments.filter(Value::is_object);
    }
    None
}

/// As the model would name it.
fn relative<'p>(path: &'p str, dir: &str) -> &'p str {
    let inside = path.strip_prefix(dir).and_then(|rest| rest.strip_prefix('/'));
    inside.filter(|rest| !dir.is_empty() && !rest.is_empty()).unwrap_or(path)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Agents say "Internal error", and what it was in the data.
fn refusal_text(message: String, data: &Value) -> String {
    let details = data.get("details").or_else(|| data.get("message")).and_then(Value::as_str);
    match details.or(data.as_str()).filter(|details| !message.contains(details)) {
        Some(details) => format!("{message}: {details}"),
        None => message,
    }
}
