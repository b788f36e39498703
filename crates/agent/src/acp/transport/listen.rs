//! What the agent says, and what is done about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alhena_model::{Called, Decided, Fact, Input, Malformed};
use alhena_wire::acp::{AgentMessage, Call, Choice, PermissionOptionKind, Update, gemini, say};
use alhena_wire::frame::Frame;
use alhena_wire::responses::FunctionCall;
use alhena_wire::rpc::{self, Fault, Id, Message};

use super::{Acp, Heard, Purpose, Stage};
use crate::acp::permission::{Decision, NOBODY_ANSWERED, Question, Withdrawn, exact_input, is_asked_about};
use crate::acp::turn::Pending;
use crate::budget::{self, Meter, ToolPermit};
use crate::engine::READ_AT_A_TIME;

/// So long the rest is heard of an agent that was stopped.
const REST_OF_STOPPED: Duration = Duration::from_secs(1);

impl Acp {
    /// Hands out what waits, then listens on: as far as the reader keeps up, and never for long.
    pub(super) fn listen(&mut self) {
        let until = Instant::now() + READ_AT_A_TIME;
        loop {
            let keeps_up = self.hand_out();
            let more_facts = self.read_beside();
            let stopped = self.exchange.is_none() || self.is_stopped();
            // Whoever has stopped a turn waits for its end alone.
            if !stopped && (!keeps_up || self.waits_for_fact()) {
                return;
            }
            match self.lines.pop_front() {
                Some(heard) => self.hear(heard),
                None if self.read_more() => {}
                // All that it said before those facts has been heard.
                None if more_facts => self.feed_facts(),
                None => return,
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    pub(super) fn waits_for_fact(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.account.interpreter.waits())
    }

    /// False when somebody has to take something first.
    pub(super) fn hand_out(&mut self) -> bool {
        self.departing.retain_mut(|(outlet, waiting)| {
            !outlet.hand_out(waiting) && outlet.listener() != crate::run::Listener::Gone
        });
        self.exchange.as_mut().is_none_or(super::Exchange::hand_out)
    }

    /// What others say of the turn: its session file, and standard error. Whether the file has told more than is waited for.
    fn read_beside(&mut self) -> bool {
        for attempt in self.process.retries.news() {
            self.hear_of_attempt(&attempt);
        }
        let Some(exchange) = &mut self.exchange else { return false };
        let more_facts = exchange.account.read_session_as_waited_for();
        exchange.account.hear_meter(&self.process.ward);
        exchange.account.hear_desk(&self.process.ward);
        if let Some(recorder) = &mut exchange.account.recorder {
            recorder.follow_stderr();
        }
        more_facts
    }

    fn feed_facts(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.account.feed_rest_of_session();
        }
    }

    fn read_more(&mut self) -> bool {
        let bytes = self.process.stdout.next().unwrap_or_default();
        let lines = &mut self.lines;
        self.framer.push(bytes, |frame| lines.push_back(Heard::from(frame)));
        let any = !bytes.is_empty();
        // A conversation can be long, and nobody reads it twice.
        self.process.stdout.forget();
        any
    }

    /// The agent will say nothing more: what is left of it is a line too. The clocks go on, because it may have written faster than
    /// anybody reads; of one that was stopped only as much is heard as can be in a moment.
    pub(super) fn hear_rest(&mut self) {
        let until = Instant::now() + REST_OF_STOPPED;
        loop {
            while let Some(heard) = self.lines.pop_front() {
                self.hear(heard);
            }
            if (self.is_stopped() && Instant::now() >= until) || !self.read_more() {
                break;
            }
            self.ring();
        }
        let (framer, lines) = (&mut self.framer, &mut self.lines);
        framer.finish(|frame| lines.push_back(Heard::from(frame)));
        while let Some(heard) = self.lines.pop_front() {
            self.hear(heard);
        }
    }

    fn is_stopped(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.stop.is_some())
    }

    fn hear(&mut self, heard: Heard) {
        let line = match heard {
            Heard::Line(line) => line,
            Heard::TooLong { bytes, .. } if self.is_stopped() => return self.drop_line(bytes),
            Heard::TooLong { bytes, sample } => {
                return self.tell(&[], |_| Input::TooLong { sample, bytes });
            }
        };
        let message = match Message::read(&line) {
            Ok(message) => message,
            Err(_) if self.is_stopped() => return self.drop_line(line.len() as u64),
            Err(_) => return self.tell(&line, |frame| Input::acp(frame)),
        };
        let said = AgentMessage::of(&message);
        if let AgentMessage::Answer { id, outcome: Err(_) } = &said {
            self.fails(id);
        }
        let recorded = match &said {
            AgentMessage::Update { update: Update::Call(call), .. } | AgentMessage::Asks { call, .. } => {
                self.read_before(&call.id)
            }
            _ => None,
        };
        self.read_unmentioned_calls();
        self.tell(&line, |_| Input::Acp(Box::new(message)));
        self.act_on(said, recorded);
    }

    /// Feeds what is known of a call before the agent is heard on it. Returns the call as the API's answer has it, the first time.
    fn read_before(&mut self, call: &str) -> Option<FunctionCall> {
        self.exchange.as_mut()?.account.read_session_before(call);
        self.read_call(call)
    }

    /// Feeds the arguments of a call, as the API's answer has them, the first time.
    fn read_call(&mut self, call: &str) -> Option<FunctionCall> {
        let recorded = self.responses.as_mut()?.take_call(call)?;
        let FunctionCall { id, name, args } = recorded.clone();
        let call = Box::new(Called { name, input: Some(args) });
        self.exchange.as_mut()?.account.feed(Input::Fact(Fact::Call { id, call }));
        Some(recorded)
    }

    /// Feeds the arguments of calls that the agent does not mention itself.
    pub(super) fn read_unmentioned_calls(&mut self) {
        let Some(exchange) = &self.exchange else { return };
        for call in exchange.account.interpreter.calls_without_arguments() {
            self.read_call(&call);
        }
    }

    /// Nobody holds up what is said to whoever was stopped, so what makes no sense would fill the memory: it is counted.
    fn drop_line(&mut self, bytes: u64) {
        if let Some(exchange) = &mut self.exchange {
            exchange.dropped.add(Malformed { lines: 1, bytes });
        }
    }

    /// The interpreter hears a line. Between two turns nobody wants to know.
    fn tell<'l>(&mut self, line: &'l [u8], read: impl FnOnce(Frame<'l>) -> Input<'l>) {
        let Some(exchange) = &mut self.exchange else { return };
        exchange.heard = Instant::now();
        exchange.account.tick();
        if let Some(recorder) = &mut exchange.account.recorder {
            recorder.output(line);
            recorder.output(b"\n");
        }
        exchange.account.line(Frame::Line(line), read);
        exchange.account.ask_disk();
        exchange.account.claim();
        if exchange.account.interpreter.was_answered() {
            exchange.patience.answered();
        }
    }

    /// What a request was for that is answered now.
    fn purpose(&self, id: &Id) -> Option<(u64, Purpose)> {
        self.asked
            .iter()
            .find(|(number, _)| Id::from(**number) == *id)
            .map(|(number, purpose)| (*number, *purpose))
    }

    /// The agent refuses: where it was the start or a setting, the prompt that waits for it has failed.
    fn fails(&mut self, id: &Id) {
        let Some((number, purpose)) = self.purpose(id) else { return };
        if purpose == Purpose::Open && self.opens_again() {
            return;
        }
        let waits = self.exchange.as_ref().is_some_and(|exchange| exchange.request.is_none());
        if purpose != Purpose::Prompt && waits {
            self.tell_of_prompt(number, self.session.id.clone());
        }
    }

    fn act_on(&mut self, said: AgentMessage, recorded: Option<FunctionCall>) {
        match said {
            AgentMessage::Asks { id, session, call, options } => {
                self.asked(id, &session, (&call, recorded), options);
            }
            AgentMessage::Wants { id, method } => {
                let refusal = format!("{method} is not offered");
                self.pipe.say(&rpc::refusal(Some(&id), Fault::Method, &refusal));
            }
            AgentMessage::Answer { id, outcome } => {
                let Some((number, purpose)) = self.purpose(&id) else { return };
                self.asked.remove(&number);
                if purpose == Purpose::Open && self.is_of_the_one_before() {
                    return self.open_session();
                }
                if outcome.is_err() {
                    self.refused(number, purpose);
                }
                match (purpose, outcome) {
                    (Purpose::Initialize, Ok(answer)) => {
                        self.session.is_gemini = gemini::is_it(&answer);
                        self.is_there();
                        self.open_session();
                    }
                    (Purpose::Open, Ok(answer)) => self.opened(&answer),
                    (Purpose::Setting, _) => self.session.settling = self.session.settling.saturating_sub(1),
                    (Purpose::Prompt, Ok(_)) => self.answered(number),
                    (_, Err(_)) => {}
                }
            }
            AgentMessage::Update { update: Update::Call(call), .. } => self.look_at_call(&call),
            AgentMessage::Update { .. } | AgentMessage::Other(_) => {}
        }
    }

    fn refused(&mut self, number: u64, purpose: Purpose) {
        self.answered(number);
        if matches!(purpose, Purpose::Initialize | Purpose::Open) {
            self.session.stage = Stage::Failed;
        }
    }

    fn answered(&mut self, request: u64) {
        let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.request == Some(request))
        else {
            return;
        };
        exchange.answered.get_or_insert_with(Instant::now);
    }

    /// A question: what a rule denies nobody is asked about, then come those who decide, then all the others.
    fn asked(
        &mut self,
        id: Id,
        session: &str,
        (call, recorded): (&Call, Option<FunctionCall>),
        options: Vec<Choice>,
    ) {
        let of_this_turn = session == self.session.id;
        let Some(exchange) =
            self.exchange.as_mut().filter(|exchange| of_this_turn && exchange.stop.is_none())
        else {
            return self.pipe.say(&say::cancelled(&id));
        };
        let mut question = Question::of(call, &self.dir, self.session.is_gemini);
        let recorded = recorded.filter(|recorded| is_asked_about(&recorded.args, &question));
        if let Some(recorded) = &recorded {
            question.input = exact_input(&recorded.args, &question);
        }
        self.questions += 1;
        let number = self.questions;
        let decision = self.gate.decide(&question);
        let since = Instant::now();
        let withdrawn = Withdrawn::default();
        exchange
            .questions
            .insert(number, Pending { id, question, recorded, options, since, deciding: false, withdrawn });
        if matches!(decision, Some(Decision::Reject(_))) || !self.ask_deciders(number) {
            self.settle_question(number);
        }
    }

    /// Answers a question: once, or no. "Always" is never said: what the CLI remembers, it remembers for other sessions too.
    pub(super) fn decide(&mut self, number: u64, decision: Decision) {
        let Some(exchange) = &mut self.exchange else { return };
        let Some(pending) = exchange.questions.remove(&number) else { return };
        exchange.heard = Instant::now();
        let meter = self.process.ward.run_dir.meter();
        let decision = within_budget(decision, &pending.question, meter, &self.session.id);
        let (kind, rejected) = match decision {
            Decision::AllowOnce => (PermissionOptionKind::AllowOnce, None),
            Decision::AllowForConversation => {
                self.gate.remember(&pending.question);
                (PermissionOptionKind::AllowOnce, None)
            }
            Decision::Reject(reason) => (PermissionOptionKind::RejectOnce, Some(reason)),
        };
        let choice = pending.options.iter().find(|choice| choice.kind == kind);
        let takes_reason = self.session.is_gemini && gemini::takes_reason(&pending.question.call_id);
        let reason = rejected.as_deref().filter(|reason| takes_reason && !reason.is_empty());
        let rejected = match choice {
            Some(choice) => {
                self.pipe.say(&match reason {
                    Some(reason) => gemini::rejection(&pending.id, reason),
                    None => say::choose(&pending.id, &choice.id),
                });
                rejected
            }
            None => {
                self.pipe.say(&say::cancelled(&pending.id));
                Some(rejected.unwrap_or_else(|| "The agent does not offer to be allowed it once".to_owned()))
            }
        };
        let rejected = rejected.map(|reason| if reason.is_empty() { "Rejected".to_owned() } else { reason });
        exchange.account.tick();
        let call = pending.question.call_id;
        exchange.account.feed(Input::Decided(Box::new(Decided { call, rejected })));
    }

    /// Nobody has answered a question in time.
    pub(super) fn give_up_on(&mut self, number: u64) {
        if let Some(exchange) = &mut self.exchange {
            exchange.withdraw(number, NOBODY_ANSWERED);
        }
        self.decide(number, Decision::Reject(NOBODY_ANSWERED.to_owned()));
    }
}

/// Rejects a tool that calls a model where the budget has no room for it. Over ACP tools run one after the other.
fn within_budget(
    decision: Decision,
    question: &Question,
    meter: Option<&Arc<Meter>>,
    session: &str,
) -> Decision {
    let tool = question.tool.as_str();
    let calls_models = budget::calls_of_tool(tool).is_some();
    // Without a name it may be such a tool.
    let asks = (calls_models || !question.named) && !matches!(decision, Decision::Reject(_));
    let Some(meter) = meter.filter(|_| asks) else { return decision };
    let permit = meter.ask_for_tool(tool, Some(session));
    meter.tool_ended(tool);
    match permit {
        ToolPermit::Refused(why) => Decision::Reject(why),
        ToolPermit::Denied(why) if calls_models => Decision::Reject(why),
        ToolPermit::Denied(_) | ToolPermit::Granted => decision,
    }
}

impl From<Frame<'_>> for Heard {
    fn from(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => Heard::Line(line.to_vec()),
            Frame::TooLong { bytes, sample } => Heard::TooLong { bytes, sample },
        }
    }
}
