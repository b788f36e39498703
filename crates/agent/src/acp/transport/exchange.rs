//! The start of each turn: its account, and its prompt.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use alhena_model::{Input, Malformed, Prompted, Stop};
use alhena_wire::acp::say;

use super::{Acp, Prompt, Purpose as Asked, Stage};
use crate::account::Account;
use crate::acp::turn::Exchange;
use crate::changes;
use crate::disk::Disk;
use crate::rate_limit::{OnRateLimit, Patience};
use crate::request::Transport;
use crate::start;

impl Acp {
    /// The next prompt gets its turn.
    pub(super) fn next_exchange(&mut self) {
        if self.exchange.is_some() {
            return;
        }
        let Some(Prompt { turn, text, opens, outlet, cancelled, terms }) = self.prompts.pop_front() else {
            return;
        };
        if let Some(terms) = &terms {
            self.agree(terms);
        }
        self.process.ward.run_dir.begin_turn();
        let account = self.account();
        let stderr_before = self.process.retries.written();
        let now = Instant::now();
        self.turns += 1;
        self.exchange = Some(Exchange {
            number: turn,
            text,
            opens,
            outlet,
            account,
            began: match (self.turns, self.session.stage) {
                _ if terms.is_some() => self.request.began.unwrap_or(now),
                (1, Stage::Starting) => self.request.began.unwrap_or(self.process.started),
                _ => now,
            },
            request: None,
            questions: BTreeMap::new(),
            asking: VecDeque::new(),
            heard: now,
            patience: Patience::of(&self.request),
            waits_until: now,
            dropped: Malformed::default(),
            stop: None,
            said: (0, now),
            answered: None,
            stderr_before,
            output_before: if terms.is_some() { self.process.stdout.len() } else { 0 },
            terms,
            told: false,
            did: false,
        });
        if cancelled {
            self.stop_exchange(Stop::Cancelled);
        }
    }

    fn account(&mut self) -> Account {
        let since = changes::scan_start(&self.dir, Instant::now());
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut self.process.ward.warnings);
        let late = self.late_warnings();
        warnings.extend(late.into_iter().map(|warning| format!("In a turn before: {warning}")));
        self.begin_to_count();
        let mut session = self.tail.take();
        if let Some(session) = session.as_mut().filter(|_| !self.session.id.is_empty()) {
            // What was written since the last turn is none of this one's.
            session.session(&self.session.id);
            session.begin_again();
        }
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.begin_again();
        }
        let mut account = Account {
            interpreter: start::interpreter(&self.request, self.process.ward.home.as_ref()),
            recorder: self.recorder.take(),
            disk: Disk::new(self.dir.clone(), since),
            session,
            neighbours: self.neighbours.take(),
            warnings,
            dir: self.dir.clone(),
            since,
            // A run hands out lines of stream-json, and there are none.
            raw_lines: self.request.raw_lines && !self.once && self.serving.is_none(),
            lines: 0,
            waiting: VecDeque::new(),
            audit: self.process.ward.run_dir.audit(Transport::Acp),
        };
        account.take_prices(&self.request, self.process.ward.run_dir.meter());
        if self.request.on_rate_limit != OnRateLimit::Fail {
            account.feed(Input::MayGoOn);
        }
        if let Some(name) = self.opening.name.clone() {
            account.feed(Input::Agent(name));
        }
        // Telemetry is too late for a turn of a process that goes on.
        let is_told = self.responses.is_some() || self.once && self.telemetry.is_some();
        if self.opening.name.is_none() && !is_told {
            account.feed(Input::FinishReasonUnavailable);
        }
        if !self.request.deny_tools.is_empty() {
            account.feed(Input::Denied(self.request.deny_tools.clone()));
        }
        account.tick();
        account.warn_all();
        account
    }

    /// Sends the prompt, as soon as the session is as it should be.
    pub(super) fn send_prompt(&mut self) {
        if self.session.stage != Stage::Ready || self.session.settling > 0 {
            return;
        }
        let Some(exchange) = &mut self.exchange else { return };
        let busy = exchange.request.is_some() || exchange.answered.is_some() || exchange.stop.is_some();
        if busy || Instant::now() < exchange.waits_until {
            return;
        }
        if exchange.opens.is_some() {
            return self.is_open();
        }
        let (session, text) = (self.session.id.clone(), exchange.text.clone());
        let note = self.note.take();
        let texts: Vec<&str> = note.iter().map(String::as_str).chain([text.as_str()]).collect();
        let request = self.ask(Asked::Prompt, |id| say::prompt(id, &session, &texts));
        self.tell_of_prompt(request, session);
    }

    /// Whoever waited for the session has it. There was no prompt, so there is no outcome.
    fn is_open(&mut self) {
        let Some(mut exchange) = self.exchange.take() else { return };
        if let Some(opens) = &exchange.opens {
            let opened = self.opened.lock().clone();
            *opens.lock() = opened;
        }
        self.tail = exchange.account.session.take();
        self.neighbours = exchange.account.neighbours.take();
        self.turns = self.turns.saturating_sub(1);
        self.departing.push((exchange.outlet, exchange.account.waiting));
        self.next_exchange();
    }

    /// The interpreter hears which request the prompt is. Where there is no session, that is the request that it failed with.
    pub(super) fn tell_of_prompt(&mut self, request: u64, session: String) {
        let Some(exchange) = &mut self.exchange else { return };
        exchange.request = Some(request);
        exchange.heard = Instant::now();
        exchange.account.tick();
        exchange.account.feed(Input::Prompted(Box::new(Prompted {
            request,
            session,
            model: self.session.model.clone(),
            dir: self.dir.to_string_lossy().into_owned(),
            text: exchange.text.clone(),
            is_gemini: self.session.is_gemini,
            max_turns: self.request.max_turns,
        })));
    }
}
