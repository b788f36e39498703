//! Starting a run.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use alhena_model::{FailureKind, Input, Interpreter, Outcome, RunOptions, Setting, Witnesses};
use alhena_sys::files;
use serde_json::{Value, json};

use crate::account::Account;
use crate::acp;
use crate::acp::responses;
use crate::changes;
use crate::disk::Disk;
use crate::engine::{self, Outlet, Process};
use crate::env::Environment;
use crate::find::Gemini;
use crate::headless::{Headless, Limits, RunState};
use crate::home::Home;
use crate::neighbours::Neighbours;
use crate::prepare::{self, Again, Ready, RunError};
use crate::prices;
use crate::rate_limit::Patience;
use crate::recording::{Header, Recorder, secrets};
use crate::request::{Prompt, ResolvedRequest, RunExtras, Transport};
use crate::run::{Queue, Run, Stopper};
use crate::supervise::custody::keeper_program;
use crate::tail::SessionTail;
use crate::telemetry;

impl Gemini {
    /// Starts a run.
    ///
    /// The options that choose the agent (`gemini`, `agent_command`, `offline`, `cassette`) are for the `alhena` binary and are refused.
    pub fn run(&self, prompt: impl Into<Prompt>, options: &RunOptions) -> Result<Run, RunError> {
        self.run_with(prompt, options, RunExtras::default())
    }

    /// Starts a run and waits for its outcome, without an async runtime.
    pub fn run_blocking(
        &self,
        prompt: impl Into<Prompt>,
        options: &RunOptions,
    ) -> Result<Arc<Outcome>, RunError> {
        Ok(self.run(prompt, options)?.outcome_blocking())
    }

    /// Starts a run with what is not an option, such as callbacks or another environment.
    pub fn run_with(
        &self,
        prompt: impl Into<Prompt>,
        options: &RunOptions,
        extras: RunExtras,
    ) -> Result<Run, RunError> {
        let environment = extras.environment.clone();
        self.start(ResolvedRequest::for_program(Some(prompt.into()), options, extras)?, &environment)
    }

    /// For recordings.
    pub(crate) fn described(&self) -> Value {
        json!({ "gemini": { "path": self.path, "version": self.version.to_string() } })
    }

    /// Starts a run whose options are resolved, for programs of this workspace.
    #[doc(hidden)]
    pub fn start(&self, request: ResolvedRequest, environment: &Environment) -> Result<Run, RunError> {
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
        let keeper = keeper(&request, environment)?;
        let request = prices::settle(request, environment)?;
        let (ready, again) = prepare::prepare(self, &request, environment)?;
        let recorder = recorder(&request, &self.described(), &ready)?;
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
    request: &ResolvedRequest,
    started: Instant,
) -> std::io::Result<Run> {
    let dir = ready.dir.clone();
    let is_recorded = ready.launch.args.contains(&responses::option(&ready.run_dir));
    let finish_is_known = is_recorded || telemetry::is_ours(ready.run_dir.path(), &ready.environment);
    let (stopper, bell) = engine::bell()?;
    let (queue, events, queued) = Queue::new();
    let began = request.began.unwrap_or(started);
    let since = changes::scan_start(&dir, began);
    let process = Process::start(ready, keeper.as_deref(), bell, started)?;
    let run_dir = &process.ward.run_dir;
    let mut account = Account {
        interpreter: interpreter(request, process.ward.home.as_ref()),
        recorder,
        disk: Disk::new(dir.clone(), since),
        session: process.session_tail().map(SessionTail::with_sub_agents),
        neighbours: Neighbours::announce(run_dir.path(), &dir).ok(),
        warnings: Vec::new(),
        dir,
        since,
        raw_lines: request.raw_lines,
        lines: 0,
        waiting: VecDeque::new(),
        audit: run_dir.audit(Transport::Headless),
    };
    account.take_prices(request, run_dir.meter());
    if !finish_is_known {
        account.feed(Input::FinishReasonUnavailable);
    }
    let run = Run::new(
        events,
        queued,
        Stopper::new(stopper, process.over.clone()),
        process.about(Transport::Headless),
        process.sessions.clone(),
    );
    let headless = Headless {
        process,
        outlet: Outlet::Run(queue),
        account,
        limits: Limits {
            timeout: request.timeout,
            began,
            first_event: request.first_event_timeout,
            stall: request.stall_timeout,
            output: request.max_output,
            stderr: request.max_stderr,
        },
        denied: request.deny_tools.clone(),
        patience: Patience::of(request),
        again,
        keeper,
        state: RunState::new(started),
    };
    std::thread::Builder::new().name("alhena-run".to_owned()).spawn(move || engine::run(headless))?;
    Ok(run)
}

/// The program that is to be the keeper, or the refusal to run without one.
pub(crate) fn keeper(
    request: &ResolvedRequest,
    environment: &Environment,
) -> Result<Option<PathBuf>, RunError> {
    match keeper_program(environment) {
        None if request.require_keeper => Err(RunError::usage(
            "no process can supervise the run: there is no keeper",
            "Install the alhena binary or name it in ALHENA_KEEPER, or call `keeper::run_if_keeper` at the start of `main`.",
        )),
        program => Ok(program),
    }
}

pub(crate) fn interpreter(request: &ResolvedRequest, home: Option<&Home>) -> Interpreter {
    let interpreter = Interpreter::with(witnesses(home));
    if request.conversation { interpreter.keeping_conversation() } else { interpreter }
}

/// The session file of a run is only known where the run has a home of its own.
fn witnesses(home: Option<&Home>) -> Witnesses {
    Witnesses { disk: true, session: home.is_some() }
}

pub(crate) fn recorder(
    request: &ResolvedRequest,
    who: &Value,
    ready: &Ready,
) -> Result<Option<Recorder>, RunError> {
    let Some(dir) = &request.record else { return Ok(None) };
    let mask = secrets(request, &ready.environment, &ready.dir);
    let witnesses = witnesses(ready.home.as_ref());
    let transport = if who.get("agent").is_some() { Transport::Acp } else { request.chosen_transport() };
    let header = Header::new(witnesses, transport, described(request, who, ready));
    Recorder::new(dir, &header, mask, ready.launch.stderr.as_ref(), request.max_stderr).map(Some).map_err(
        |error| match files::is_full(&error) {
            true => RunError::failed(FailureKind::DiskFull, format!("the recording cannot be kept: {error}")),
            false => {
                let message = format!("{}: {error}", Setting::Record);
                RunError::usage(message, "Give a new or empty directory.").caused_by(error)
            }
        },
    )
}

/// What was asked; of the environment only the names.
fn described(request: &ResolvedRequest, who: &Value, ready: &Ready) -> Value {
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    let launch = &ready.launch;
    let mut described = json!({
        "prompt": match &request.prompt {
            None => Value::Null,
            Some(Prompt::Text(text)) => json!(text),
            Some(Prompt::File(path)) => json!({ "file": path }),
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
