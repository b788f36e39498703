//! What a turn took beside the conversation, and whether its answers are whole: by what the CLI records and traces of its calls.

use alhena_model::Input;

use super::Acp;
use crate::account::Account;
use crate::tail::SessionTail;
use crate::telemetry::TelemetryTail;

impl Acp {
    /// Another turn: what came of those before, and of their stops, is none of its own.
    pub(super) fn begin_to_count(&mut self) {
        if let Some(telemetry) = &mut self.telemetry {
            drop(telemetry.traced());
            if self.serving.is_some() {
                telemetry.forget();
            }
        }
        if let Some(responses) = &mut self.responses {
            responses.begin_again();
            if self.serving.is_some() {
                responses.forget();
            }
        }
    }

    /// The agent has answered: whether it will still be told what was asked for beside.
    pub(super) fn is_still_counting(&mut self) -> bool {
        let Some(responses) = &mut self.responses else { return false };
        responses.read();
        let Some(telemetry) = self.telemetry.as_mut().filter(|_| responses.is_incomplete()) else {
            return false;
        };
        responses.name_models(telemetry.traced());
        self.traces && responses.is_incomplete()
    }

    /// The turn is over: what is known by now is told.
    pub(super) fn count_last(&mut self, account: &mut Account) {
        let _nothing_more = self.is_still_counting();
        let Some(responses) = &mut self.responses else { return };
        responses.leave_unnamed();
        responses.aside().into_iter().for_each(|fact| account.feed(Input::Fact(fact)));
    }

    /// The same where the agent was ended before it told what it had measured.
    pub(super) fn count_without_goodbye(&mut self, account: &mut Account) {
        // Where no session tells of the rest, what was asked for beside would count for all.
        if self.telemetry.is_some() && account.session.as_ref().is_some_and(SessionTail::found) {
            self.count_last(account);
        }
    }

    /// What events tell late of answers that were cut off; where answers are recorded it is known before.
    pub(super) fn late_warnings(&mut self) -> Vec<String> {
        let late = self.telemetry.iter_mut().flat_map(TelemetryTail::late_warnings).collect::<Vec<_>>();
        if self.responses.is_some() { Vec::new() } else { late }
    }
}
