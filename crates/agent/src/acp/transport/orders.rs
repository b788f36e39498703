//! What the engine is asked to do.

use std::time::Instant;

use alhena_model::{Decided, Input, Stop};
use alhena_wire::acp::say;

use super::{Acp, Prompt, Stage};
use crate::acp::hotline::Order;
use crate::run::Listener;
use crate::supervise::protocol::Gentle;

/// Why a question of a turn that is stopped is rejected.
const TURN_IS_OVER: &str = "The turn was cancelled";

impl Acp {
    /// Takes what was ordered.
    pub(super) fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order);
        }
        self.hear_stopper();
        self.take_job();
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Prompt { turn, text, outlet } => {
                self.prompts.push_back(Prompt {
                    turn,
                    text,
                    opens: None,
                    outlet,
                    cancelled: false,
                    terms: None,
                });
                self.next_exchange();
            }
            Order::Open { turn, outlet, opened } => {
                let text = String::new();
                self.prompts.push_back(Prompt {
                    turn,
                    text,
                    opens: Some(opened),
                    outlet,
                    cancelled: false,
                    terms: None,
                });
                self.next_exchange();
            }
            Order::Decide { question, decision } => self.decide(question, decision),
            Order::SetModel(model) => self.set_model(model),
            Order::SetMode(mode) => {
                self.gate.approval = mode;
                self.set_mode();
            }
            Order::Cancel { turn } => {
                if self.exchange.as_ref().is_some_and(|exchange| exchange.number == turn) {
                    self.stop_exchange(Stop::Cancelled);
                } else if let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.turn == turn) {
                    prompt.cancelled = true;
                }
            }
            Order::Close => self.close(),
        }
    }

    /// Ends everything.
    pub(super) fn close(&mut self) {
        self.stop_exchange(Stop::Cancelled);
        self.end_process(Gentle::No);
    }

    pub(super) fn end_process(&mut self, gentle: Gentle) {
        if !self.closing {
            self.closing = true;
            self.process.ward.stop(gentle);
        }
    }

    /// Stops the turn. The agent does not answer a cancel while it waits for an answer itself (0.61.0), so it gets that too; but not
    /// before, or it would go on and ask the model.
    pub(super) fn stop_exchange(&mut self, why: Stop) {
        // What it said before counts.
        self.listen();
        let Some(exchange) = &mut self.exchange else { return };
        if exchange.stop.is_some() || exchange.answered.is_some() {
            return;
        }
        exchange.stop = Some((why, Instant::now()));
        exchange.account.tick();
        exchange.account.feed(Input::Stop(why));
        match exchange.request {
            Some(_) => self.pipe.say(&say::cancel(&self.session.id)),
            // Nothing was asked yet.
            None => exchange.answered = Some(Instant::now()),
        }
        exchange.withdraw_all(TURN_IS_OVER);
        for pending in std::mem::take(&mut exchange.questions).into_values() {
            self.pipe.say(&say::cancelled(&pending.id));
            let rejected = Some(TURN_IS_OVER.to_owned());
            let call = pending.question.call_id;
            exchange.account.feed(Input::Decided(Box::new(Decided { call, rejected })));
        }
    }

    /// What follows from where things stand.
    pub(super) fn take_next_step(&mut self) {
        if self.exchange.as_ref().is_some_and(|exchange| exchange.outlet.listener() == Listener::Gone) {
            self.stop_exchange(Stop::Cancelled);
        }
        self.next_exchange();
        self.send_prompt();
        self.settle_exchange();
        if self.session.stage == Stage::Failed && self.exchange.is_none() {
            self.end_process(Gentle::No);
        }
    }
}
