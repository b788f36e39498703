//! The clocks of a turn, and what is waited for.

use std::time::Instant;

use alhena_model::Stop;
use alhena_sys::poll::Wanted;

use super::{Acp, Stage};
use crate::acp::hooks::Deciders;
use crate::acp::turn::Exchange;
use crate::engine::{READER_IS_BEHIND, Waits, first_alarm};
use crate::supervise::protocol::Gentle;

impl Acp {
    /// Waits until the agent, the keeper or somebody else has something to say, or a clock rings.
    pub(super) fn wait_for_news(&mut self) {
        let stopped = self.exchange.as_ref().is_some_and(|exchange| exchange.stop.is_some());
        let more = self.exchange.as_ref().is_some_and(|exchange| exchange.account.has_more_of_session());
        let ready = (more || !self.lines.is_empty()) && (stopped || !self.waits_for_fact());
        // A reader that is behind is waited for.
        if ready && self.hand_out() {
            return;
        }
        let exchange = self.exchange.as_ref();
        let leaving =
            exchange.is_some_and(|exchange| exchange.answered.is_some() || exchange.has_to_be_taken());
        let stopper = exchange.and_then(|exchange| exchange.terms.as_ref()?.bell.as_ref());
        let others = stopper.map(Wanted::readable).into_iter();
        let others = others.chain(self.deciders.as_ref().map(Deciders::wanted)).chain(self.pipe.wanted());
        self.process.wait(Waits {
            longest: (leaving || !self.departing.is_empty()).then_some(READER_IS_BEHIND),
            alarms: [self.next_alarm().map(|(at, _)| at), self.first_due().map(|(_, until)| until)],
            account: exchange.map(|exchange| &exchange.account),
            others: others.collect(),
            ignores_output: false,
        });
        self.pipe.go_on();
    }

    pub(super) fn check_clocks(&mut self) {
        self.process.ward.check(false);
        while let Some((question, _)) = self.first_due().filter(|(_, until)| *until <= Instant::now()) {
            self.give_up_on(question);
        }
        if self.closing || self.process.ward.ended.is_some() {
            return;
        }
        let said = self.process.stdout.len();
        let cancelled = self.exchange.as_mut().filter(|exchange| exchange.answered.is_none());
        if cancelled.is_some_and(|exchange| exchange.ignores_cancel(said)) {
            self.end_process(Gentle::AtOnce);
        }
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.may_be_silent()) {
            exchange.heard = Instant::now();
        }
        let unasked = self.exchange.as_mut().is_some_and(|exchange| exchange.account.hear_audit());
        if unasked || self.process.ward.is_over_budget() {
            self.stop_exchange(Stop::Cancelled);
        }
        let before = self.exchange.as_ref().map_or((0, 0), Exchange::written_before);
        match self.process.too_much_written((self.request.max_output, self.request.max_stderr), before) {
            Some(stop) => {
                self.stop_exchange(stop);
                self.end_process(Gentle::No);
            }
            None => self.ring(),
        }
    }

    /// Stops a turn whose time is over.
    pub(super) fn ring(&mut self) {
        if let Some((_, stop)) = self.next_alarm().filter(|(at, _)| *at <= Instant::now()) {
            self.stop_exchange(stop);
        }
    }

    /// The question that is to be answered first, and until when.
    fn first_due(&self) -> Option<(u64, Instant)> {
        self.exchange.as_ref()?.first_due(self.request.permission_timeout)
    }

    /// The clock that rings first.
    fn next_alarm(&self) -> Option<(Instant, Stop)> {
        let exchange = self.exchange.as_ref()?;
        if exchange.stop.is_some() || exchange.answered.is_some() {
            return None;
        }
        let quiet = match self.session.stage {
            Stage::Starting => self
                .request
                .first_event_timeout
                .map(|limit| (self.process.started + limit, Stop::NoFirstEvent(limit))),
            Stage::Ready | Stage::Failed => {
                self.request.stall_timeout.map(|limit| (exchange.heard + limit, Stop::Silence(limit)))
            }
        };
        first_alarm((exchange.began, self.request.timeout), quiet)
    }
}
