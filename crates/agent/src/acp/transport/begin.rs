//! The start of the process, and of the engine that follows it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak, mpsc};
use std::time::Instant;

use alhena_model::FailureKind;
use alhena_sys::sockets::Stream;
use alhena_wire::frame::Framer;

use super::{Acp, Prompt, Session};
use crate::acp::conversation::{Conversation, SharedOpened};
use crate::acp::gate::Gate;
use crate::acp::hooks::Deciders;
use crate::acp::hotline::Hotline;
use crate::acp::pipe::Pipe;
use crate::acp::process::{Opening, Purpose, Who};
use crate::acp::responses::{self, Responses};
use crate::engine::{self, Outlet, Process};
use crate::env::{self, Environment};
use crate::neighbours::Neighbours;
use crate::prepare::{Ready, RunError, prompt};
use crate::prices;
use crate::recording::{LONGEST_LINE, Recorder};
use crate::request::{ResolvedRequest, Transport};
use crate::run::{Queue, Run, Stopper};
use crate::start;
use crate::tail::SessionTail;
use crate::telemetry::{self, TelemetryTail};

/// A conversation, as a program gets it.
pub(in crate::acp) fn converse(
    who: Who<'_>,
    request: ResolvedRequest,
    environment: &Environment,
) -> Result<Conversation, RunError> {
    let started = Instant::now();
    let keeper = start::keeper(&request, environment)?;
    let request = prices::settle(request, environment)?;
    let (ready, pipe) = who.prepare(&request, environment, Purpose::One)?;
    let opening = who.opening(&request, ready.home.as_ref())?;
    let begin = || {
        let (bell, rung) = engine::bell()?;
        let (orders, taken) = mpsc::channel();
        let hotline = Arc::new(Hotline::new(orders, bell));
        let (closed, is_closed) = async_channel::bounded(1);
        let ends = Ends { bell: rung, orders: taken, hotline: Arc::downgrade(&hotline), closed };
        let recorder = None;
        let acp = begin(Parts { ready, opening, pipe, keeper, request, recorder, ends, started })?;
        let about = acp.process.about(Transport::Acp);
        let opened = acp.opened.clone();
        let hooked = acp.deciders.is_some();
        spawn(acp)?;
        Ok(Conversation::new(hotline, about, opened, is_closed, hooked))
    };
    begin().map_err(not_started)
}

/// One prompt as a run: the same events and outcome as a headless run, and nothing left before the last event is out.
pub(crate) fn run_once(
    who: Who<'_>,
    request: ResolvedRequest,
    environment: &Environment,
) -> Result<Run, RunError> {
    let started = Instant::now();
    let keeper = start::keeper(&request, environment)?;
    let text = prompt::text(&request)?;
    let request = prices::settle(request, environment)?;
    let (ready, pipe) = who.prepare(&request, environment, Purpose::One)?;
    let opening = who.opening(&request, ready.home.as_ref())?;
    let recorder = start::recorder(&request, &who.described(), &ready)?;
    let begin = || {
        let (bell, rung) = engine::bell()?;
        let (_nobody, taken) = mpsc::channel();
        let (closed, _nobody_waits) = async_channel::bounded(1);
        let ends = Ends { bell: rung, orders: taken, hotline: Weak::new(), closed };
        let mut acp = begin(Parts { ready, opening, pipe, keeper, request, recorder, ends, started })?;
        let (queue, items, queued) = Queue::new();
        acp.once = true;
        acp.prompts.push_back(Prompt {
            turn: 1,
            text,
            opens: None,
            outlet: Outlet::Run(queue),
            cancelled: false,
            terms: None,
        });
        let (about, sessions) = (acp.process.about(Transport::Acp), acp.process.sessions.clone());
        let stopper = Stopper::new(bell, acp.process.over.clone());
        spawn(acp)?;
        Ok(Run::new(items, queued, stopper, about, sessions))
    };
    begin().map_err(not_started)
}

/// The engine's ends of the ways to it.
pub(super) struct Ends {
    pub bell: Stream,
    pub orders: mpsc::Receiver<crate::acp::hotline::Order>,
    pub hotline: Weak<Hotline>,
    pub closed: async_channel::Sender<crate::acp::conversation::Closed>,
}

fn spawn(acp: Acp) -> io::Result<()> {
    std::thread::Builder::new().name("alhena-acp".to_owned()).spawn(move || engine::run(acp))?;
    Ok(())
}

pub(super) fn not_started(error: io::Error) -> RunError {
    RunError::failed(FailureKind::Crashed, format!("the agent could not be started: {error}"))
}

/// What an engine is made of.
pub(super) struct Parts {
    pub ready: Ready,
    pub opening: Opening,
    pub pipe: Pipe,
    pub keeper: Option<PathBuf>,
    pub request: ResolvedRequest,
    pub recorder: Option<Recorder>,
    pub ends: Ends,
    pub started: Instant,
}

/// Starts the process, and gives its transport.
pub(super) fn begin(parts: Parts) -> io::Result<Acp> {
    let Parts { ready, opening, pipe, keeper, request, recorder, ends, started } = parts;
    let dir = ready.dir.clone();
    let records = ready.launch.args.contains(&responses::option(&ready.run_dir));
    let is_ours = telemetry::is_ours(ready.run_dir.path(), &ready.environment);
    let traces = is_ours && ready.environment.is_true(env::GEMINI_TELEMETRY_TRACES_ENABLED);
    let process = Process::start(ready, keeper.as_deref(), ends.bell, started)?;
    let run_dir = &process.ward.run_dir;
    let tail = process.session_tail().map(SessionTail::with_calls);
    let neighbours = Neighbours::announce(run_dir.path(), &dir).ok();
    let measured = run_dir.path().join(telemetry::FILE);
    let telemetry = is_ours.then(|| TelemetryTail::open(&measured)).transpose()?;
    let responses = records.then(|| Responses::open(&responses::file(run_dir))).transpose()?;
    let deciders = Deciders::of(&request)?;
    Ok(Acp {
        process,
        pipe,
        framer: Framer::new(LONGEST_LINE),
        lines: VecDeque::new(),
        orders: ends.orders,
        hotline: ends.hotline,
        gate: Gate::of(&request, &opening.trusted),
        deciders,
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
        responses,
        traces,
        neighbours,
        recorder,
        note: None,
        warnings: Vec::new(),
        once: false,
        closing: false,
        turns: 0,
        opened: SharedOpened::default(),
        closed: ends.closed,
        serving: None,
    })
}
