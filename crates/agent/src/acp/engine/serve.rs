//! Independent prompts, one after the other: each gets a session that has nothing of those before in it.
//!
//! A session is used again for the same folder in the same state, if the prompt before was only answered and the CLI has cleared
//! its history since, which its session file says. After everything else a new one is opened: a tool leaves more behind than history
//! (todos, files that were seen, instructions that were loaded), and what was cancelled or failed may not be cleared at all.

use std::io::Read;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use alhena_model::{Outcome, Stop, Timestamp};
use alhena_session::ledger::Ledger;
use alhena_session::registry;
use alhena_sys::growth::Growth;
use alhena_sys::processes;

use super::begin::{Ends, EngineParts, begin, bell, not_started};
use super::{Engine, Prompt, Purpose, Session, Stage};
use crate::acp::gate::Gate;
use crate::acp::hotline::Hotline;
use crate::acp::process;
use crate::acp::service::{Free, Job, Kind, Service, SessionFolder, Slot, Terms, Told};
use crate::acp::turn::{Exchange, Outlet};
use crate::dirs::Dirs;
use crate::env::Environment;
use crate::find::Gemini;
use crate::neighbours::Neighbours;
use crate::prepare::RunError;
use crate::request::ResolvedRequest;
use crate::run::AT_ONCE;
use crate::supervise::custody::keeper_program;
use crate::supervise::protocol::Gentle;
use crate::tail::SessionTail;

/// A prompt is begun again so often when its process dies before anything has come of it.
const MOST_DEATHS: u32 = 1;

/// What an engine is that serves independent prompts.
pub(super) struct Serving {
    slot: Slot,
    tell: Box<dyn Fn(Told) + Send>,
    /// Whether the history is cleared after each prompt.
    clears: bool,
    sessions: u32,
    /// Where the session is, if it has nothing in it.
    clean: Option<SessionFolder>,
    /// Whether the agent has answered the greeting.
    is_there: bool,
    /// The session that is being opened is for a prompt that was stopped since.
    of_the_one_before: bool,
    /// What people should know of the process, whatever they ask it.
    pub warnings: Vec<String>,
    ledger: Option<Ledger>,
}

/// Starts a process that serves this prompt first. Nobody is waited for: it tells what becomes of it.
pub(crate) fn serve(
    gemini: &Gemini,
    environment: &Environment,
    kind: Kind,
    job: Box<Job>,
    tell: impl Fn(Told) + Send + 'static,
) -> Result<Service, (Box<Job>, RunError)> {
    let (bell, rung) = match bell() {
        Ok(both) => both,
        Err(error) => return Err((job, not_started(error))),
    };
    let (orders, taken) = mpsc::channel();
    let hotline = Arc::new(Hotline::new(orders, bell));
    let (closed, _nobody_waits) = async_channel::bounded(1);
    let ends = Ends { bell: rung, orders: taken, hotline: Arc::downgrade(&hotline), closed };
    let slot = Slot::default();
    let service = Service::new(slot.clone(), hotline);
    let (gemini, environment) = (gemini.clone(), environment.clone());
    // What the process is made for is asked for before the prompt is out of our hands.
    let request = ResolvedRequest { notices: Vec::new(), ..job.terms.request.clone() };
    // If there cannot be a thread, nobody takes it.
    if let Err(job) = slot.put(job) {
        return Err((job, not_started(std::io::Error::other("it is taken"))));
    }
    let begun = {
        let slot = slot.clone();
        std::thread::Builder::new().name("alhena-pooled".to_owned()).spawn(move || {
            match start(&gemini, request, &environment, kind, ends) {
                Ok((mut engine, clears)) => {
                    let warnings = std::mem::take(&mut engine.warnings);
                    engine.serving = Some(Serving {
                        slot,
                        tell: Box::new(tell),
                        clears,
                        sessions: 0,
                        clean: None,
                        is_there: false,
                        of_the_one_before: false,
                        warnings,
                        ledger: Dirs::of(&environment).map(|dirs| dirs.ledger()),
                    });
                    engine.take_job();
                    engine.run();
                }
                Err(error) => tell(Told::Gone { back: slot.close(), why: Some(error) }),
            }
        })
    };
    match begun {
        Ok(_thread) => Ok(service),
        Err(error) => match slot.close() {
            Some(job) => Err((job, not_started(error))),
            None => Ok(service),
        },
    }
}

fn start(
    gemini: &Gemini,
    request: ResolvedRequest,
    environment: &Environment,
    kind: Kind,
    ends: Ends,
) -> Result<(Engine, bool), RunError> {
    let started = Instant::now();
    let purpose = process::Purpose::Many(kind);
    let who = process::Who::Gemini(gemini);
    let (ready, pipe) = who.prepare(&request, environment, purpose)?;
    let opening = who.opening(&request, ready.home.as_ref())?;
    let clears = kind.reuse && process::clears_in(gemini, &ready);
    let keeper = keeper_program(environment);
    let recorder = None;
    let parts = EngineParts { ready, opening, pipe, keeper, request, recorder, ends, started };
    let engine = begin(parts).map_err(not_started)?;
    Ok((engine, clears))
}

impl Serving {
    pub(super) fn clears(&self) -> bool {
        self.clears
    }

    /// Nothing of the process is left.
    pub(super) fn gone(self, back: &mut Option<Box<Job>>) {
        let back = back.take().or_else(|| self.slot.close());
        (self.tell)(Told::Gone { back, why: None });
    }
}

impl Engine {
    /// Notes what a prompt used: no session file keeps it.
    pub(super) fn enter_usage(&self, terms: &Terms, outcome: &Outcome) {
        let ledger = self.serving.as_ref().and_then(|serving| serving.ledger.as_ref());
        let (Some(ledger), Some(home)) = (ledger, &self.ward.home) else { return };
        let project = terms.request.usage_dir.as_ref().unwrap_or(&terms.place.dir);
        if let Err(error) = ledger.add(&home.user_home().join(".gemini"), project, outcome) {
            tracing::warn!(%error, "the usage of a run could not be noted");
        }
    }

    /// Takes the next prompt, when the one before is over.
    pub(super) fn take_job(&mut self) {
        let Some(serving) = &self.serving else { return };
        let busy = self.exchange.is_some() || !self.prompts.is_empty();
        if busy || self.closing || self.ward.ended.is_some() {
            return;
        }
        let Some(job) = serving.slot.take() else { return };
        let Job { text, outlet, terms } = *job;
        let turn = self.turns + 1;
        let outlet = Outlet::Run(outlet);
        self.prompts.push_back(Prompt {
            turn,
            text,
            opens: None,
            outlet,
            cancelled: false,
            terms: Some(terms),
        });
        self.next_exchange();
    }

    /// Whoever has the run can stop it.
    pub(super) fn hear_stopper(&mut self) {
        let terms = self.exchange.as_mut().and_then(|exchange| exchange.terms.as_mut());
        let Some((terms, bell)) = terms.and_then(|terms| terms.bell.take().map(|bell| (terms, bell))) else {
            return;
        };
        let mut words = [0; 64];
        match (&bell).read(&mut words) {
            // Nobody has it any more.
            Ok(0) => self.stop_exchange(Stop::Cancelled),
            Ok(count) => {
                let at_once = words.iter().take(count).any(|word| *word == AT_ONCE);
                if !at_once {
                    terms.bell = Some(bell);
                }
                self.stop_exchange(Stop::Cancelled);
                if at_once {
                    self.end_process(Gentle::AtOnce);
                }
            }
            Err(_nobody_spoke) => terms.bell = Some(bell),
        }
    }

    /// A prompt on terms of its own begins. What those before were allowed, or told, does not count.
    pub(super) fn agree(&mut self, terms: &Terms) {
        let Some(serving) = &mut self.serving else { return };
        self.request = terms.request.clone();
        self.gate = Gate::of(&self.request, &self.opening.trusted);
        self.note = None;
        self.started = Instant::now();
        self.warnings = self.request.notices.iter().chain(&serving.warnings).cloned().collect();
        if serving.clean.take().as_ref() == Some(&terms.place) {
            return;
        }
        self.dir.clone_from(&terms.place.dir);
        self.tail = None;
        self.neighbours = Neighbours::announce(self.ward.run_dir.path(), &self.dir).ok();
        self.session = Session { is_gemini: self.session.is_gemini, ..Session::default() };
        if !serving.is_there {
            return;
        }
        // Two at once would wait for each other (0.61.0).
        if self.asked.values().any(|purpose| *purpose == Purpose::Open) {
            serving.of_the_one_before = true;
        } else {
            self.open_session();
        }
    }

    /// The agent has answered the greeting.
    pub(super) fn is_there(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.is_there = true;
        }
    }

    /// Whether the session that is being opened is of no use any more, and another is to be opened when it is there.
    pub(super) fn opens_again(&self) -> bool {
        self.serving.as_ref().is_some_and(|serving| serving.of_the_one_before)
    }

    /// The same, when it is there.
    pub(super) fn is_of_the_one_before(&mut self) -> bool {
        self.serving.as_mut().is_some_and(|serving| std::mem::take(&mut serving.of_the_one_before))
    }

    /// The session is there: what its file says is followed from now on.
    pub(super) fn follow_new_session(&mut self) {
        let Some(serving) = &mut self.serving else { return };
        serving.sessions += 1;
        let (Some(home), Some(dir)) = (&self.ward.home, self.dir.to_str()) else { return };
        let slug = registry::registered_slug(&home.path().join(".gemini"), dir);
        let chats = slug.map_or_else(|| home.chats_dir(), |slug| home.chats_dir_of(&slug));
        let mut tail = SessionTail::new(chats, Timestamp::now(), Growth::new()).with_calls();
        tail.session(&self.session.id);
        match &mut self.exchange {
            Some(exchange) => exchange.account.session = Some(tail),
            None => self.tail = Some(tail),
        }
    }

    /// A prompt has been served. `place` is where, if its session can be used again.
    pub(super) fn served(&mut self, place: Option<SessionFolder>) {
        let Some(serving) = &mut self.serving else { return };
        if self.closing || self.session.stage == Stage::Failed || self.ward.ended.is_some() {
            return;
        }
        let cleared = serving.clears && self.tail.as_ref().is_some_and(SessionTail::is_cleared);
        serving.clean = place.filter(|_| cleared);
        (serving.tell)(Told::Free(Free {
            clean: serving.clean.clone(),
            sessions: serving.sessions,
            memory: self.ward.pid.map_or(0, processes::memory),
        }));
    }

    /// The process is dead: a prompt that nothing has come of yet can be begun again by another.
    pub(super) fn job_to_give_back(&mut self) -> Option<Box<Job>> {
        self.serving.as_ref()?;
        let began = |exchange: &mut Exchange| {
            // A tool may have run of which only the session file tells.
            if let Some(session) = &mut exchange.account.session {
                session.catch_up();
            }
            exchange.account.read_session();
            let terms = exchange.terms.as_ref()?;
            let spoilt = exchange.stop.is_some() || exchange.answered.is_some() || !exchange.is_held_back();
            (terms.deaths < MOST_DEATHS && !spoilt && !exchange.account.interpreter.tool_open()).then_some(())
        };
        self.exchange.as_mut().and_then(began)?;
        let Exchange { text, outlet: Outlet::Run(outlet), terms: Some(mut terms), .. } =
            self.exchange.take()?
        else {
            return None;
        };
        terms.deaths += 1;
        Some(Box::new(Job { text, outlet, terms }))
    }
}
