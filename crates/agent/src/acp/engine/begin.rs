//! The start: of the process, of the session, and of each turn.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, Weak, mpsc};
use std::time::Instant;

use alhena_model::{FailureKind, Input, Prompted, Stop, Timestamp};
use alhena_sys::growth::Growth;
use alhena_wire::acp::say;
use alhena_wire::frame::Framer;
use alhena_wire::rpc::Id;
use serde_json::Value;

use super::{Engine, Prompt, Purpose as Asked, Session, Stage};
use crate::account::Account;
use crate::acp::conversation::{Conversation, OfferedModel, Opened, SharedOpened};
use crate::acp::gate::Gate;
use crate::acp::hotline::Hotline;
use crate::acp::pipe::Pipe;
use crate::acp::process::{Opening, Purpose, Who};
use crate::acp::turn::{Exchange, Outlet};
use crate::changes;
use crate::disk::Disk;
use crate::env::{self, Environment};
use crate::follow::Follower;
use crate::neighbours::Neighbours;
use crate::prepare::{Ready, RunError, prompt};
use crate::prices;
use crate::recording::{LONGEST_LINE, Recorder};
use crate::request::{Approval, Request};
use crate::retries::Retries;
use crate::run::{About, Over, Queue, Run, Sessions, Stopper};
use crate::start;
use crate::supervise::custody::{Custody, Locks, keeper_program};
use crate::tail::SessionTail;
use crate::telemetry::{self, TelemetryTail};
use crate::ward::Ward;

/// A conversation, as a program gets it.
pub(in crate::acp) fn converse(
    who: Who<'_>,
    request: Request,
    environment: &Environment,
) -> Result<Conversation, RunError> {
    let started = Instant::now();
    let request = prices::settle(request, environment)?;
    let (ready, pipe) = who.prepare(&request, environment, Purpose::One)?;
    let opening = who.opening(&request, ready.home.as_ref())?;
    let keeper = keeper_program(environment);
    let begin = || {
        let (bell, rung) = bell()?;
        let (orders, taken) = mpsc::channel();
        let hotline = Arc::new(Hotline::new(orders, bell));
        let (closed, is_closed) = async_channel::bounded(1);
        let ends = Ends { bell: rung, orders: taken, hotline: Arc::downgrade(&hotline), closed };
        let engine = begin(ready, opening, pipe, keeper, request, None, ends, started)?;
        let about = engine.about();
        let opened = engine.opened.clone();
        spawn(engine)?;
        Ok(Conversation::new(hotline, about, opened, is_closed))
    };
    begin().map_err(not_started)
}

/// One prompt as a run: the same events and outcome as a headless run, and nothing left before the last event is out.
pub(crate) fn run_once(who: Who<'_>, request: Request, environment: &Environment) -> Result<Run, RunError> {
    let started = Instant::now();
    let text = prompt::text(&request)?;
    let request = prices::settle(request, environment)?;
    let (ready, pipe) = who.prepare(&request, environment, Purpose::One)?;
    let opening = who.opening(&request, ready.home.as_ref())?;
    let recorder = start::recorder(&request, &who.described(), &ready)?;
    let keeper = keeper_program(environment);
    let begin = || {
        let (bell, rung) = bell()?;
        let (_nobody, taken) = mpsc::channel();
        let (closed, _nobody_waits) = async_channel::bounded(1);
        let ends = Ends { bell: rung, orders: taken, hotline: Weak::new(), closed };
        let mut engine = begin(ready, opening, pipe, keeper, request, recorder, ends, started)?;
        let (queue, items, queued) = Queue::new();
        engine.once = true;
        engine.prompts.push_back(Prompt {
            turn: 1,
            text,
            opens: false,
            outlet: Outlet::Run(queue),
            cancelled: false,
            terms: None,
        });
        let (about, sessions) = (engine.about(), engine.sessions.clone());
        let stopper = Stopper::new(bell, engine.over.clone());
        spawn(engine)?;
        Ok(Run::new(items, queued, stopper, about, sessions))
    };
    begin().map_err(not_started)
}

/// The engine's ends of the ways to it.
pub(super) struct Ends {
    pub bell: UnixStream,
    pub orders: mpsc::Receiver<crate::acp::hotline::Order>,
    pub hotline: Weak<Hotline>,
    pub closed: async_channel::Sender<crate::acp::conversation::Closed>,
}

pub(super) fn bell() -> io::Result<(UnixStream, UnixStream)> {
    let (bell, rung) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    rung.set_nonblocking(true)?;
    Ok((bell, rung))
}

fn spawn(engine: Engine) -> io::Result<()> {
    std::thread::Builder::new().name("alhena-acp".to_owned()).spawn(move || engine.run())?;
    Ok(())
}

pub(super) fn not_started(error: io::Error) -> RunError {
    RunError::failed(FailureKind::Crashed, format!("the agent could not be started: {error}"))
}

#[allow(clippy::too_many_arguments)]
pub(super) fn begin(
    ready: Ready,
    opening: Opening,
    pipe: Pipe,
    keeper: Option<PathBuf>,
    request: Request,
    recorder: Option<Recorder>,
    ends: Ends,
    started: Instant,
) -> io::Result<Engine> {
    let Ready { launch, home, dir, run_dir, warnings, environment } = ready;
    let stdout = Follower::open(launch.stdout.as_ref())?;
    // Here already, so that it can be watched from the start.
    let _stderr = Follower::open(launch.stderr.as_ref())?;
    let growth = Growth::new();
    growth.watch(launch.stdout.as_ref());
    growth.watch(launch.stderr.as_ref());
    let tail = home
        .as_ref()
        .map(|home| SessionTail::new(home.chats_dir(), Timestamp::now(), Growth::new()).with_calls());
    let locks = Locks { home: home.as_ref().map(|home| home.lock()), run: Some(run_dir.lock()) };
    let custody = Custody::take(&launch, keeper.as_deref(), locks)?;
    let neighbours = Neighbours::announce(run_dir.path(), &dir).ok();
    let measured = run_dir.path().join(telemetry::FILE);
    let is_ours = environment.get(env::GEMINI_TELEMETRY_OUTFILE) == Some(measured.as_os_str());
    let telemetry = is_ours.then(|| TelemetryTail::new(measured));
    let retries = Retries::new(launch.stderr.as_ref());
    Ok(Engine {
        ward: Ward::new(custody, launch.stderr.into(), run_dir, home),
        pipe,
        stdout,
        framer: Framer::new(LONGEST_LINE),
        lines: VecDeque::new(),
        growth,
        retries,
        bell: ends.bell,
        orders: ends.orders,
        hotline: ends.hotline,
        gate: Gate::of(&request),
        request,
        dir,
        opening,
        session: Session::default(),
        asked: HashMap::new(),
        requests: 0,
        questions: 0,
        prompts: VecDeque::new(),
        exchange: None,
        departing: Vec::new(),
        tail,
        telemetry,
        neighbours,
        recorder,
        note: None,
        warnings,
        started,
        once: false,
        closing: false,
        nobody_rings: false,
        turns: 0,
        sessions: Sessions::default(),
        over: Over::default(),
        opened: SharedOpened::default(),
        closed: ends.closed,
        serving: None,
    })
}

impl Engine {
    fn about(&self) -> About {
        About::new(self.ward.run_dir.mark().to_owned(), self.ward.stderr.clone())
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, purpose: Asked, line: impl FnOnce(&Id) -> Vec<u8>) -> u64 {
        self.requests += 1;
        self.asked.insert(self.requests, purpose);
        self.pipe.say(&line(&Id::from(self.requests)));
        self.requests
    }

    pub(super) fn greet(&mut self) {
        self.next_exchange();
        self.ask(Asked::Initialize, |id| say::initialize(id, "alhena", env!("CARGO_PKG_VERSION")));
    }

    /// The agent is there: a session is opened.
    pub(super) fn open_session(&mut self) {
        let dir = self.dir.to_string_lossy().into_owned();
        let servers = self.opening.servers.clone();
        match self.opening.resumed.clone() {
            Some(session) => {
                self.session.id.clone_from(&session);
                self.ask(Asked::Open, |id| say::load_session(id, &session, &dir, &servers));
            }
            None => drop(self.ask(Asked::Open, |id| say::new_session(id, &dir, &servers))),
        }
    }

    /// The session is there. One that was loaded has the mode and the model of the process's directory (0.61.0).
    pub(super) fn opened(&mut self, answer: &Value) {
        let text =
            |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = text("/sessionId");
        if !id.is_empty() {
            self.session.id = id;
        }
        if self.opening.resumed.is_none() {
            self.session.mode = text("/modes/currentModeId");
            self.session.model = text("/models/currentModelId");
        }
        let modes = answer.pointer("/modes/availableModes").and_then(Value::as_array).into_iter().flatten();
        self.session.modes = modes.filter_map(|mode| mode.get("id")?.as_str()).map(str::to_owned).collect();
        self.session.stage = Stage::Ready;
        self.follow_new_session();
        let opened = Opened {
            session_id: self.session.id.clone(),
            model: text("/models/currentModelId"),
            models: models(answer),
        };
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        self.set_mode();
        if let Some(model) = self.request.model.clone() {
            self.set_model(model);
        }
    }

    pub(super) fn set_mode(&mut self) {
        if self.session.stage != Stage::Ready {
            return;
        }
        let mode = self.gate.mode();
        let known = match self.session.is_gemini {
            true => Some(mode_id(mode).to_owned()),
            false => self.session.modes.iter().find(|id| mode.names().contains(&id.as_str())).cloned(),
        };
        let Some(id) = known else { return self.say_mode_is_missing(mode) };
        if self.session.mode != id {
            self.session.mode.clone_from(&id);
            self.session.settling += 1;
            let session = self.session.id.clone();
            self.ask(Asked::Setting, |request| say::set_mode(request, &session, &id));
        }
    }

    /// What another agent asks about is answered as the mode says; what it does not ask about nobody can keep back.
    fn say_mode_is_missing(&mut self, mode: Approval) {
        // One without modes asks, as the protocol has it, and one that may do everything need not.
        let asks = self.session.modes.is_empty() && mode == Approval::Default;
        if asks || mode == Approval::Yolo {
            return;
        }
        let (name, modes) = (mode.names().first().unwrap_or(&""), self.session.modes.join(", "));
        let who = self.opening.name.as_deref().unwrap_or("The agent");
        let warning = match modes.is_empty() {
            true => format!("{who} has no mode {name}: what it does without asking is not kept back"),
            false => {
                format!(
                    "{who} has no mode {name}, only {modes}: what it does without asking is not kept back"
                )
            }
        };
        match &mut self.exchange {
            Some(exchange) => exchange.account.feed(Input::Warning(warning)),
            None => self.warnings.push(warning),
        }
    }

    pub(super) fn set_model(&mut self, model: String) {
        self.request.model = Some(model.clone());
        if self.session.stage == Stage::Ready && self.session.model != model {
            self.session.settling += 1;
            let session = self.session.id.clone();
            self.ask(Asked::Setting, |id| say::set_model(id, &session, &model));
            self.session.model = model;
        }
    }

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
        let account = self.account();
        let stderr_before = self.retries.written();
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
                (1, Stage::Starting) => self.request.began.unwrap_or(self.started),
                _ => now,
            },
            request: None,
            questions: BTreeMap::new(),
            asking: VecDeque::new(),
            heard: now,
            stop: None,
            answered: None,
            stderr_before,
            output_before: if terms.is_some() { self.stdout.len() } else { 0 },
            terms,
            told: false,
            did: false,
        });
        if cancelled {
            self.stop_exchange(Stop::Cancelled);
        }
    }

    fn account(&mut self) -> Account {
        let since = changes::scan_start(&self.dir);
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut self.ward.warnings);
        let late = self.telemetry.iter_mut().flat_map(TelemetryTail::warnings);
        warnings.extend(late.map(|warning| format!("In a turn before: {warning}")));
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
            interpreter: start::interpreter(&self.request, self.ward.home.as_ref()),
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
        };
        account.take_prices(&self.request);
        if let Some(name) = self.opening.name.clone() {
            account.feed(Input::Agent(name));
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
        if exchange.request.is_some() || exchange.answered.is_some() || exchange.stop.is_some() {
            return;
        }
        if exchange.opens {
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
        })));
    }
}

/// The models that an agent offers with a session.
fn models(answer: &Value) -> Vec<OfferedModel> {
    let offered = answer.pointer("/models/availableModels").and_then(Value::as_array);
    let text = |model: &Value, name: &str| model.get(name).and_then(Value::as_str).map(str::to_owned);
    let read = |model: &Value| {
        let id = text(model, "modelId")?;
        let name = text(model, "name").unwrap_or_else(|| id.clone());
        Some(OfferedModel { id, name, description: text(model, "description") })
    };
    offered.into_iter().flatten().filter_map(read).collect()
}

/// Gemini CLI's name for the mode.
fn mode_id(approval: Approval) -> &'static str {
    match approval {
        Approval::Default => "default",
        Approval::AutoEdit => "autoEdit",
        Approval::Yolo => "yolo",
        Approval::Plan => "plan",
    }
}
