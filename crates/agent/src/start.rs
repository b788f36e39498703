//! Starting a run.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use alhena_model::{FailureKind, Input, Interpreter, Outcome, Setting, Timestamp, Witnesses};
use alhena_sys::files;
use alhena_sys::growth::Growth;
use alhena_sys::processes;
use alhena_sys::sockets::Stream;
use serde_json::{Value, json};

use crate::account::Account;
use crate::acp;
use crate::acp::responses;
use crate::changes;
use crate::disk::Disk;
use crate::engine::{Engine, Limits};
use crate::env::Environment;
use crate::find::Gemini;
use crate::follow::Follower;
use crate::home::Home;
use crate::neighbours::Neighbours;
use crate::prepare::{self, Again, Ready, RunError};
use crate::prices;
use crate::rate_limit::Patience;
use crate::recording::{Header, Recorder, secrets};
use crate::request::{Prompt, Request, Transport};
use crate::run::{About, Over, Queue, Run, Sessions, Stopper};
use crate::supervise::custody::{Custody, Locks, keeper_program};
use crate::tail::SessionTail;
use crate::telemetry;
use crate::ward::Ward;

impl Gemini {
    /// Starts a run in the environment of this process.
    pub fn run(&self, request: Request) -> Result<Run, RunError> {
        self.run_in(request, &Environment::of_process())
    }

    /// Starts a run and waits for its outcome, without an async runtime.
    pub fn run_blocking(&self, request: Request) -> Result<Arc<Outcome>, RunError> {
        Ok(self.run(request)?.outcome_blocking())
    }

    /// For recordings.
    pub(crate) fn described(&self) -> Value {
        json!({ "gemini": { "path": self.path, "version": self.version.to_string() } })
    }

    /// Starts a run in an environment of the caller's making.
    pub fn run_in(&self, request: Request, environment: &Environment) -> Result<Run, RunError> {
        if request.chosen_transport() == Transport::Acp {
            return acp::run_once(acp::Who::Gemini(self), request, environment);
        }
        if !request.rules.is_empty() {
            return Err(RunError::usage(
                "headless, Gemini CLI asks nobody, so that rules cannot be kept",
                "Use `transport` acp with `allow`, `deny`, `ask` and `rules`, or `allow_tool` and `deny_tool` without.",
            ));
        }
        let started = Instant::now();
        let request = prices::settle(request, environment)?;
        let (mut ready, again) = prepare::prepare(self, &request, environment)?;
        let recorder = recorder(&request, &self.described(), &ready)?;
        let keeper = keeper_program(environment);
        if !processes::COMPLETE {
            ready
                .warnings
                .push("On this system processes that leave their group can outlive the run".to_owned());
        }
        launch(ready, again, recorder, keeper, &request, started).map_err(|error| {
            RunError::failed(FailureKind::Crashed, format!("the run could not be started: {error}"))
        })
    }
}

fn launch(
    ready: Ready,
    again: Option<Again>,
    recorder: Option<Recorder>,
    keeper: Option<PathBuf>,
    request: &Request,
    started: Instant,
) -> std::io::Result<Run> {
    let Ready { launch, home, dir, run_dir, warnings, environment } = ready;
    let stdout = Follower::open(launch.stdout.as_ref())?;
    // Here already, so that it can be watched from the start.
    let _stderr = Follower::open(launch.stderr.as_ref())?;
    let growth = Growth::new();
    growth.watch(launch.stdout.as_ref());
    growth.watch(launch.stderr.as_ref());
    let (stopper, asked_to_stop) = Stream::pair()?;
    stopper.set_nonblocking(true)?;
    asked_to_stop.set_nonblocking(true)?;
    let over = Over::default();
    let (queue, events, queued) = Queue::new();
    let began = request.began.unwrap_or(started);
    let since = changes::scan_start(&dir, began);
    let locks = Locks { home: home.as_ref().map(|home| home.lock()), run: Some(run_dir.lock()) };
    let custody = Custody::take(&launch, keeper.as_deref(), locks)?;
    let about = About { mark: launch.mark.clone(), stderr: launch.stderr.clone().into() };
    let session = home
        .as_ref()
        .map(|home| SessionTail::new(home.chats_dir(), Timestamp::now(), Growth::new()).with_sub_agents());
    let sessions = Sessions::default();
    let limits = Limits {
        timeout: request.timeout,
        began,
        first_event: request.first_event_timeout,
        stall: request.stall_timeout,
        output: request.max_output,
        stderr: request.max_stderr,
    };
    let neighbours = Neighbours::announce(run_dir.path(), &dir).ok();
    let mut account = Account {
        interpreter: interpreter(request, home.as_ref()),
        recorder,
        disk: Disk::new(dir.clone(), since),
        session,
        neighbours,
        warnings,
        dir,
        since,
        raw_lines: request.raw_lines,
        lines: 0,
        waiting: VecDeque::new(),
        audit: run_dir.audit(Transport::Headless),
    };
    account.take_prices(request, run_dir.meter());
    let is_recorded = launch.args.contains(&responses::option(&run_dir));
    if !is_recorded && !telemetry::is_ours(run_dir.path(), &environment) {
        account.feed(Input::FinishReasonUnavailable);
    }
    let engine = Engine {
        stdout,
        growth,
        asked_to_stop,
        queue,
        account,
        limits,
        denied: request.deny_tools.clone(),
        started,
        patience: Patience::of(request),
        again,
        keeper,
        ward: Ward::new(custody, launch.stderr.into(), run_dir, home),
        sessions: sessions.clone(),
        over: over.clone(),
    };
    std::thread::Builder::new().name("alhena-run".to_owned()).spawn(move || engine.run())?;
    Ok(Run::new(events, queued, Stopper::new(stopper, over), about, sessions))
}

pub(crate) fn interpreter(request: &Request, home: Option<&Home>) -> Interpreter {
    let interpreter = Interpreter::with(witnesses(home));
    if request.conversation { interpreter.keeping_conversation() } else { interpreter }
}

/// The session file of a run is only known where the run has a home of its own.
fn witnesses(home: Option<&Home>) -> Witnesses {
    Witnesses { disk: true, session: home.is_some() }
}

pub(crate) fn recorder(request: &Request, who: &Value, ready: &Ready) -> Result<Option<Recorder>, RunError> {
    let Some(dir) = &request.record else { return Ok(None) };
    let mask = secrets(request, &ready.environment, &ready.dir);
    let witnesses = witnesses(ready.home.as_ref());
    let transport = if who.get("agent").is_some() { Transport::Acp } else { request.chosen_transport() };
    let header = Header::new(witnesses, transport, described(request, who, ready));
    Recorder::new(dir, &header, mask, ready.launch.stderr.as_ref(), request.max_stderr).map(Some).map_err(
        |error| match files::is_full(&error) {
            true => RunError::failed(FailureKind::DiskFull, format!("the recording cannot be kept: {error}")),
            false => {
                RunError::usage(format!("{}: {error}", Setting::Record), "Give a new or empty directory.")
            }
        },
    )
}

/// What was asked; of the environment only the names.
fn described(request: &Request, who: &Value, ready: &Ready) -> Value {
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    let launch = &ready.launch;
    let mut described = json!({
        "prompt": match &request.prompt {
            Prompt::Text(text) => json!(text),
            Prompt::File(path) => json!({ "file": path }),
        },
        "dir": ready.dir,
        "model": request.model,
        "approval": request.approval.flag(),
        "program": text(&launch.program),
        "args": launch.args.iter().map(text).collect::<Vec<_>>(),
        "env": request.env.iter().map(|(name, _)| text(name)).collect::<Vec<_>>(),
    });
    if let (Some(described), Some(who)) = (described.as_object_mut(), who.as_object()) {
        described.extend(who.clone());
    }
    described
}
