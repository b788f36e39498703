//! The end of a turn, and of everything.

use std::time::Duration;

use alhena_model::{Change, End, Event, EventKind, Exit, Input, Outcome, Reported};

use super::Acp;
use super::serve::Serving;
use crate::account::Account;
use crate::acp::conversation::Closed;
use crate::acp::turn::{Exchange, is_deed};
use crate::run::Item;
use crate::supervise::protocol::Gentle;

/// How long what others say of a turn is waited for when the agent has answered.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Why a question is withdrawn whose agent is gone.
const AGENT_HAS_ENDED: &str = "The agent has ended";

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departed {
    /// It was answered, and nothing else was done.
    Talked,
    /// Something was done, or went wrong.
    Acted,
}

impl Acp {
    /// The agent has answered: when all is known that will be, the turn is over.
    pub(super) fn settle_exchange(&mut self) {
        let Some(exchange) = &mut self.exchange else { return };
        let Some(since) = exchange.answered else { return };
        let account = &mut exchange.account;
        if let Some(session) = &mut account.session {
            session.catch_up();
        }
        account.read_session();
        let incomplete = account.interpreter.waits()
            || (account.session.is_some() && account.interpreter.untold_tokens() > 0);
        let incomplete = incomplete || self.is_still_counting();
        let Some(exchange) = &self.exchange else { return };
        let incomplete =
            incomplete || (self.serving.as_ref().is_some_and(Serving::clears) && !exchange.is_cleared());
        if incomplete && exchange.stop.is_none() && since.elapsed() < LAST_WORDS && !self.closing {
            return;
        }
        if self.goes_on_limited() {
            return;
        }
        if self.once {
            return self.end_process(Gentle::No);
        }
        if let Some(exchange) = self.exchange.take() {
            let stopped = exchange.stop.is_some();
            let place = exchange.terms.as_ref().map(|terms| terms.place.clone());
            let departed = self.conclude(exchange, Exit::Unknown);
            self.served(place.filter(|_| !stopped && departed == Departed::Talked));
        }
        self.next_exchange();
    }

    fn conclude(&mut self, mut exchange: Exchange, exit: Exit) -> Departed {
        let account = &mut exchange.account;
        account.feed(Input::SessionEnded);
        if self.serving.is_some() {
            account.feed(Input::SessionLost);
        }
        account.ask_disk_at_last(exchange.request.is_some());
        account.hear_desk(&self.process.ward);
        account.settle(&self.process.ward);
        account.warnings.append(&mut self.process.ward.warnings);
        self.hear_last(account);
        self.tail = account.session.take();
        self.neighbours = account.neighbours.take();
        let stderr = self.process.ward.last_words_since(exchange.stderr_before);
        self.depart(exchange, exit, stderr)
    }

    /// What else is known of a turn that is over.
    fn hear_last(&mut self, account: &mut Account) {
        let late = self.late_warnings();
        account.warnings.extend(late);
        self.count_last(account);
        if let Some(responses) = &mut self.responses {
            account.hear_finishes(responses.finishes());
        }
        if self.turns == 1 {
            let complaints = self.process.ward.complaints();
            if let Some(serving) = &mut self.serving {
                serving.warnings.extend_from_slice(&complaints);
            }
            account.warnings.extend(complaints);
        }
        account.warn_all();
    }

    fn depart(&mut self, mut exchange: Exchange, exit: Exit, stderr: String) -> Departed {
        exchange.note_deeds();
        let did = exchange.did;
        let duration_ms = Some(exchange.began.elapsed().as_millis() as u64);
        if exchange.dropped.lines > 0 {
            exchange.account.feed(Input::Dropped(exchange.dropped));
        }
        let waiting = exchange.account.conclude(&End { exit, stderr, duration_ms });
        let mut departed = Departed::Acted;
        if let Some(Item::Event(Event { kind: EventKind::Finished { outcome }, .. })) = waiting.back() {
            self.note = note(outcome);
            if let Some(terms) = &exchange.terms {
                self.enter_usage(terms, outcome);
            }
            if outcome.is_success() && !did && !waiting.iter().any(is_deed) {
                departed = Departed::Talked;
            }
        }
        if let Some(terms) = exchange.terms {
            terms.over.set();
        }
        self.departing.push((exchange.outlet, waiting));
        departed
    }

    /// The process is gone and nothing of it is left: what remains is to read the rest and to judge.
    pub(super) fn judge_the_rest(mut self) {
        // From now on a prompt is refused, and whoever wants to can begin again.
        self.orders = std::sync::mpsc::channel().1;
        let finished = self.process.ward.end();
        self.hear_rest();
        let (exit, stderr) = self.process.ward.exit();
        let mut back = self.job_to_give_back();
        while let Some(mut exchange) = self.exchange.take() {
            exchange.withdraw_all(AGENT_HAS_ENDED);
            let account = &mut exchange.account;
            account.warnings.append(&mut self.process.ward.warnings);
            account.take_sessions(&finished, &self.process.sessions);
            account.read_session_to_its_end();
            account.say_if_lost(&finished.sessions);
            account.ask_disk_at_last(self.process.ward.has_started());
            match self.once {
                true => {
                    let has_measured = account.hear_last_of(&self.process.ward);
                    if !has_measured {
                        self.count_without_goodbye(account);
                    }
                }
                // What the CLI measured is of all turns.
                false => self.hear_last(account),
            }
            account.hear_desk(&self.process.ward);
            account.settle(&self.process.ward);
            // Who has been answered is not concerned by how the process ends: we end it.
            let exit = if exchange.answered.is_some() { Exit::Unknown } else { exit };
            self.depart(exchange, exit, stderr.clone());
            self.next_exchange();
        }
        self.process.sessions.lock().clone_from(&finished.published);
        let mut warnings = self.process.ward.warnings.split_off(0);
        warnings.extend(finished.warnings);
        warnings.extend(self.late_warnings());
        let serving = self.serving.take();
        let Self { process, departing, closed, .. } = self;
        process.close(departing, || {
            if let Some(serving) = serving {
                serving.gone(&mut back);
            }
            let _nobody_waits = closed.try_send(Closed { session_files: finished.published, warnings });
        });
    }
}

/// So much is told of a turn that the agent has forgotten.
const MOST_TOLD: usize = 30;

/// A turn that did not end well is taken out of the history, although its tools ran (0.61.0): the next one is told what they did.
fn note(outcome: &Outcome) -> Option<String> {
    // One whose answer was cut off is a success to the CLI, and stays in the history.
    if outcome.is_success() || outcome.reported == Some(Reported::Success) {
        return None;
    }
    let commands = outcome.commands.iter().map(|run| match run.exit_code {
        Some(code) => format!("ran `{}`, which exited with code {code}", run.command),
        None => format!("ran `{}`, which may not have finished", run.command),
    });
    let files = outcome.files.iter().map(|file| {
        let verb = match file.change {
            Change::Created => "created",
            Change::Modified => "changed",
            Change::Deleted => "deleted",
        };
        format!("{verb} {}", file.path)
    });
    let done: Vec<String> = commands.chain(files).take(MOST_TOLD).map(|what| format!("- {what}\n")).collect();
    (!done.is_empty()).then(|| {
        let done = done.concat();
        format!("(The turn before was cut short and is not in this conversation. Before it ended, it had:\n{done})\n")
    })
}
