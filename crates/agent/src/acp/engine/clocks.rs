//! The clocks of a turn, and the one place that waits.

use std::time::{Duration, Instant};

use alhena_model::Stop;
use alhena_sys::growth::Growth;
use alhena_sys::poll::{self, Wanted};

use super::{Engine, Stage};
use crate::account::{Account, NOBODY_TELLS};
use crate::acp::hooks::Deciders;
use crate::acp::turn::Exchange;
use crate::supervise::protocol::Gentle;

/// How long to wait at the most, whatever was told.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// How long to wait for a reader that is behind, or for what others say of a turn that is over, before looking again.
const SOON: Duration = Duration::from_millis(5);

impl Engine {
    /// Waits until the agent, the keeper or somebody else has something to say, or a clock rings.
    pub(super) fn wait(&mut self) {
        let stopped = self.exchange.as_ref().is_some_and(|exchange| exchange.stop.is_some());
        let more = self.exchange.as_ref().is_some_and(|exchange| exchange.account.has_more_of_session());
        let ready = (more || !self.lines.is_empty()) && (stopped || !self.waits_for_fact());
        // A reader that is behind is waited for.
        let ready = ready && self.hand_out();
        if self.ward.custody.has_buffered_report() || ready {
            return;
        }
        let account = self.exchange.as_ref().map(|exchange| &exchange.account);
        let session = account.and_then(Account::session_growth);
        let growths = || [Some(&self.growth), session].into_iter().flatten();
        let mut longest = LONGEST_WAIT;
        if growths().any(|growth| growth.fd().is_none()) {
            longest = NOBODY_TELLS;
        }
        if let Some(wait) = account.and_then(Account::longest_wait_for_fact) {
            longest = longest.min(wait);
        }
        let leaving = self
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.answered.is_some() || exchange.has_to_be_taken());
        if leaving || !self.departing.is_empty() {
            longest = longest.min(SOON);
        }
        let alarm = self.next_alarm().map(|(at, _)| at);
        for at in alarm.into_iter().chain(self.first_due().map(|(_, until)| until)) {
            longest = longest.min(at.saturating_duration_since(Instant::now()));
        }
        let mut wanted = vec![Wanted::readable(self.ward.custody.socket())];
        if !self.nobody_rings {
            wanted.push(Wanted::readable(&self.bell));
        }
        let stopper = self.exchange.as_ref().and_then(|exchange| exchange.terms.as_ref()?.bell.as_ref());
        wanted.extend(stopper.map(Wanted::readable));
        wanted.extend(self.deciders.as_ref().map(Deciders::wanted));
        wanted.extend(self.pipe.wanted());
        wanted.extend(growths().filter_map(Growth::fd).map(Wanted::Readable));
        let _looked_at_anyway = poll::wait(&wanted, Some(longest));
        growths().for_each(Growth::clear);
        self.pipe.go_on();
    }

    pub(super) fn hear_keeper(&mut self) {
        while !self.ward.over && self.ward.custody.has_report_within(Duration::ZERO) {
            match self.ward.custody.report() {
                Ok(Some(report)) => self.ward.take_report(report),
                Ok(None) | Err(_) => self.ward.over = true,
            }
        }
    }

    pub(super) fn check_clocks(&mut self) {
        self.ward.check(false);
        while let Some((question, _)) = self.first_due().filter(|(_, until)| *until <= Instant::now()) {
            self.give_up_on(question);
        }
        if self.closing || self.ward.ended.is_some() {
            return;
        }
        let said = self.stdout.len();
        let cancelled = self.exchange.as_mut().filter(|exchange| exchange.answered.is_none());
        if cancelled.is_some_and(|exchange| exchange.ignores_cancel(said)) {
            self.end_process(Gentle::AtOnce);
        }
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.may_be_silent()) {
            exchange.heard = Instant::now();
        }
        let unasked = self.exchange.as_mut().is_some_and(|exchange| exchange.account.hear_audit());
        if unasked || self.ward.is_over_budget() {
            self.stop_exchange(Stop::Cancelled);
        }
        let before = self.exchange.as_ref().map_or((0, 0), Exchange::written_before);
        if self.stdout.len() - before.0 > self.request.max_output {
            self.stop_exchange(Stop::TooMuchOutput(self.request.max_output));
            self.end_process(Gentle::No);
        } else if self.retries.written() - before.1 > self.request.max_stderr {
            self.stop_exchange(Stop::TooMuchStderr(self.request.max_stderr));
            self.end_process(Gentle::No);
        } else {
            self.ring();
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
        let total = self.request.timeout.map(|limit| (exchange.began + limit, Stop::Timeout(limit)));
        let quiet = match self.session.stage {
            Stage::Starting => self
                .request
                .first_event_timeout
                .map(|limit| (self.started + limit, Stop::NoFirstEvent(limit))),
            Stage::Ready | Stage::Failed => {
                self.request.stall_timeout.map(|limit| (exchange.heard + limit, Stop::Silence(limit)))
            }
        };
        total.into_iter().chain(quiet).min_by_key(|(at, _)| *at)
    }
}
