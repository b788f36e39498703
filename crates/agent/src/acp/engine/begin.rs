//! The start of the process, and of the engine that follows it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak, mpsc};
use std::time::Instant;

use alhena_model::{FailureKind, Timestamp};
use alhena_sys::growth::Growth;
use alhena_sys::sockets::Stream;
use alhena_wire::frame::Framer;

use super::{Engine, Prompt, Session};
use crate::acp::conversation::{Conversation, SharedOpened};
use crate::acp::gate::Gate;
use crate::acp::hooks::Deciders;
use crate::acp::hotline::Hotline;
use crate::acp::pipe::Pipe;
use crate::acp::process::{Opening, Purpose, Who};
use crate::acp::responses::{self, Responses};
use crate::acp::turn::Outlet;
use crate::env::{self, Environment};
use crate::follow::Follower;
use crate::neighbours::Neighbours;
use crate::prepare::{Ready, RunError, prompt};
use crate::prices;
use crate::recording::{LONGEST_LINE, Recorder};
use crate::request::ResolvedRequest;
use crate::retries::Retries;
use crate::run::{About, Over, Queue, Run, Sessions, Stopper};
use crate::start;
use crate::supervise::custody::{Custody, Locks};
use crate::tail::SessionTail;
use crate::telemetry::{self, TelemetryTail};
use crate::ward::Ward;

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
        let (bell, rung) = bell()?;
        let (orders, taken) = mpsc::channel();
        let hotline = Arc::new(Hotline::new(orders, bell));
        let (closed, is_closed) = async_channel::bounded(1);
        let ends = Ends { bell: rung, orders: taken, hotline: Arc::downgrade(&hotline), closed };
        let recorder = None;
        let engine = begin(EngineParts { ready, opening, pipe, keeper, request, recorder, ends, started })?;
        let about = engine.about();
        let opened = engine.opened.clone();
        let hooked = engine.deciders.is_some();
        spawn(engine)?;
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
        let (bell, rung) = bell()?;
        let (_nobody, taken) = mpsc::channel();
        let (closed, _nobody_waits) = async_channel::bounded(1);
        let ends = Ends { bell: rung, orders: taken, hotline: Weak::new(), closed };
        let mut engine =
            begin(EngineParts { ready, opening, pipe, keeper, request, recorder, ends, started })?;
        let (queue, items, queued) = Queue::new();
        engine.once = true;
        engine.prompts.push_back(Prompt {
            turn: 1,
            text,
            opens: None,
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
    pub bell: Stream,
    pub orders: mpsc::Receiver<crate::acp::hotline::Order>,
    pub hotline: Weak<Hotline>,
    pub closed: async_channel::Sender<crate::acp::conversation::Closed>,
}

pub(super) fn bell() -> io::Result<(Stream, Stream)> {
    let (bell, rung) = Stream::pair()?;
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

/// What an engine is made of.
pub(super) struct EngineParts {
    pub ready: Ready,
    pub opening: Opening,
    pub pipe: Pipe,
    pub keeper: Option<PathBuf>,
    pub request: ResolvedRequest,
    pub recorder: Option<Recorder>,
    pub ends: Ends,
    pub started: Instant,
}

/// Starts the process, and gives its engine.
pub(super) fn begin(parts: EngineParts) -> io::Result<Engine> {
    let EngineParts { ready, opening, pipe, keeper, request, recorder, ends, started } = parts;
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
    let is_ours = telemetry::is_ours(run_dir.path(), &environment);
    let telemetry = is_ours.then(|| TelemetryTail::open(&measured)).transpose()?;
    let records = launch.args.contains(&responses::option(&run_dir));
    let responses = records.then(|| Responses::open(&responses::file(&run_dir))).transpose()?;
    let retries = Retries::new(launch.stderr.as_ref());
    let deciders = Deciders::of(&request)?;
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
        traces: is_ours && environment.is_true(env::GEMINI_TELEMETRY_TRACES_ENABLED),
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
}
