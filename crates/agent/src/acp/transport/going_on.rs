//! A turn goes on after the API limited its requests: the same session gets another prompt, perhaps with another model.

use std::time::Instant;

use alhena_model::{End, Exit, Input, Stop};

use super::Acp;
use crate::rate_limit::{GO_ON, Meanwhile};
use crate::retries::Attempt;

impl Acp {
    /// Gemini CLI says that it tries again, perhaps after a while.
    pub(super) fn hear_of_attempt(&mut self, attempt: &Attempt) {
        let Some(exchange) = &mut self.exchange else { return };
        exchange.heard = Instant::now();
        let meanwhile = exchange.account.hear_attempt(&mut exchange.patience, attempt);
        match meanwhile {
            // To cancel what the CLI tries would make it forget the turn: another model takes over when it has given up.
            Meanwhile::Wait | Meanwhile::Move => {
                exchange.waits_until = Instant::now() + attempt.waits.unwrap_or_default();
            }
            Meanwhile::TooLong => {
                let retry_after_ms = attempt.asked.map(|time| time.as_millis() as u64);
                self.stop_exchange(Stop::RateLimit { retry_after_ms });
            }
        }
    }

    /// The agent has answered that it failed: whether the turn goes on all the same.
    pub(super) fn goes_on_limited(&mut self) -> bool {
        let over = self.closing || self.process.ward.ended.is_some() || self.process.ward.run_dir.is_spent();
        let Some(exchange) = self.exchange.as_mut().filter(|exchange| !over && exchange.stop.is_none())
        else {
            return false;
        };
        if !exchange.patience.may_go_on() {
            return false;
        }
        let stderr = self.process.ward.last_words_since(exchange.stderr_before);
        let end = End { exit: Exit::Unknown, stderr, duration_ms: None };
        let Some(next) = exchange.account.next_attempt(&mut exchange.patience, &end) else { return false };
        // A prompt that was never answered is not in the conversation any more (0.61.0).
        if exchange.account.interpreter.was_answered() {
            exchange.text = GO_ON.to_owned();
        }
        exchange.account.tick();
        exchange.account.feed(Input::Warning(next.told));
        exchange.account.feed(Input::GoesOn);
        (exchange.request, exchange.answered) = (None, None);
        exchange.waits_until = Instant::now() + next.after;
        exchange.stderr_before = self.process.retries.written();
        // It cannot be begun again by another process, nor is its session as it was.
        (exchange.told, exchange.did) = (true, true);
        if let Some(model) = next.model {
            self.set_model(model);
        }
        true
    }
}
