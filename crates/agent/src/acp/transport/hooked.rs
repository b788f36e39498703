//! Those who decide before a tool runs: they are asked before rules that allow, and before people.

use std::time::Instant;

use alhena_model::{Input, Stop};
use alhena_wire::acp::{Call, Status, gemini};

use super::Acp;
use crate::acp::hooks::Word;
use crate::acp::permission::{Decision, Permission};
use crate::budget;
use crate::supervise::protocol::Gentle;

/// What Gemini CLI begins without asking, whatever it is told: edits that it knows to fail, its own skills and documents (0.61.0).
const NEVER_ASKED_ABOUT: &[&str] = &["write_file", "replace", "activate_skill", "get_internal_docs"];

/// Of these only what fails may not have been asked about.
const EDITS: &[&str] = &["write_file", "replace"];

impl Acp {
    /// Asks those who decide about a question; false when there are none.
    pub(super) fn ask_deciders(&mut self, number: u64) -> bool {
        let (Some(deciders), Some(exchange)) = (&mut self.deciders, &mut self.exchange) else { return false };
        let Some(pending) = exchange.questions.get_mut(&number) else { return false };
        pending.deciding = true;
        if let Some(word) = deciders.ask(number, pending.recorded.take(), &self.session.id, &self.dir) {
            self.decided(number, word);
        }
        true
    }

    /// What those who decide have decided since.
    pub(super) fn hear_deciders(&mut self) {
        let words = self.deciders.as_mut().map(|deciders| deciders.words()).unwrap_or_default();
        for (number, word) in words {
            self.decided(number, word);
        }
    }

    /// A question that is not there any more was answered by the end of its turn.
    fn decided(&mut self, number: u64, word: Word) {
        let Some(exchange) = &mut self.exchange else { return };
        let Some(pending) = exchange.questions.get_mut(&number) else { return };
        (pending.deciding, pending.since) = (false, Instant::now());
        match word {
            Word::GoOn => self.settle_question(number),
            Word::No(why) => self.decide(number, Decision::Reject(why)),
            Word::Stop(why) => {
                exchange.account.feed(Input::Halted(why));
                self.stop_exchange(Stop::Cancelled);
            }
        }
    }

    /// A question is answered by what stands, by whoever is there, or by no.
    pub(super) fn settle_question(&mut self, number: u64) {
        let Some(exchange) = &mut self.exchange else { return };
        let Some(pending) = exchange.questions.get(&number) else { return };
        let (question, withdrawn) = (pending.question.clone(), pending.withdrawn.clone());
        match self.gate.decide(&question) {
            Some(decision) => self.decide(number, decision),
            None if exchange.outlet.can_be_asked() => {
                exchange.ask(Permission::new(question, number, self.hotline.clone(), withdrawn));
            }
            None => {
                // In the words of the CLI, which has them where it has nobody to ask.
                let reason = format!("{} requires user confirmation, and nobody can be asked", question.tool);
                self.decide(number, Decision::Reject(reason));
            }
        }
    }

    /// A call that the agent tells of. One that begins without a question, although everything is to be asked about, ends it all:
    /// nobody has decided about it.
    pub(super) fn look_at_call(&mut self, call: &Call) {
        self.look_at_model_tool(call);
        let (Some(deciders), Some(exchange)) = (&mut self.deciders, &mut self.exchange) else { return };
        if exchange.stop.is_some() {
            return;
        }
        let name = gemini::certain_tool_name(&call.id).unwrap_or(&call.id);
        // No other server's tool has a name that begins so.
        let answers = self.process.ward.run_dir.answer_tool();
        let is_answer = answers
            .and_then(|tool| call.id.strip_prefix(tool))
            .is_some_and(|rest| rest.starts_with("__") || rest.starts_with('-'));
        let why = match call.status {
            Status::Open if is_answer => return,
            Status::Open if NEVER_ASKED_ABOUT.contains(&name) => return deciders.began_unasked(&call.id),
            Status::Open => {
                format!("Gemini CLI began {name} without asking, so that no hook could decide about it")
            }
            Status::Completed if EDITS.contains(&name) && deciders.has_begun_unasked(&call.id) => {
                format!("Gemini CLI did {name} without asking, so that no hook could decide about it")
            }
            _ => return,
        };
        exchange.account.feed(Input::Halted(why));
        self.stop_exchange(Stop::Cancelled);
        self.end_process(Gentle::AtOnce);
    }

    /// A tool that calls a model has begun without a question, although a budget has to be asked before: a policy of an administrator
    /// may allow it.
    fn look_at_model_tool(&mut self, call: &Call) {
        let name = gemini::tool_name(&call.id).unwrap_or(&call.id);
        let unasked = call.status == Status::Open && budget::calls_of_tool(name).is_some();
        let metered = self.process.ward.run_dir.meter().is_some();
        let Some(exchange) = self.exchange.as_mut().filter(|_| unasked && metered) else { return };
        let why = format!(
            "The budget cannot be kept: Gemini CLI began {name}, which calls a model, without asking"
        );
        exchange.account.feed(Input::OverBudget(why));
        self.stop_exchange(Stop::Cancelled);
        self.end_process(Gentle::AtOnce);
    }
}
