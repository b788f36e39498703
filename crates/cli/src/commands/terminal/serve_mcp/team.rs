//! A supervisor's team: what its tools do.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena_agent::env::Environment;
use alhena_agent::home::McpServer;
use alhena_agent::{Approval, ResolvedRequest, Trust};
use alhena_terminal::profile::{Places, Profile};
use alhena_terminal::screen::Status;
use alhena_terminal::{
    Launch, OUTER_GEMINI_HOME, OUTER_TMPDIR, Options, Record, TERMINAL_ID, Terminal, TerminalError,
    TerminalErrorKind, Terminals, Until, status_name,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::Args;

const HANDOFF: Duration = Duration::from_secs(600);
/// How often a wait looks whether it is still wanted.
const SLICE: Duration = Duration::from_millis(500);
const LEAVE: Duration = Duration::from_secs(10);

pub struct Team {
    terminals: Terminals,
    options: Options,
    environment: Environment,
    /// The supervisor's own terminal, if it is in one of Alhena's.
    own: Option<Terminal>,
    supervisor: Option<Record>,
    approval: Option<Approval>,
    trust: Trust,
    model: Option<String>,
    /// Terminals that messages may wait for.
    receivers: Mutex<BTreeSet<String>>,
    closed: AtomicBool,
}

type Done = Result<String, String>;

impl Team {
    pub fn new(args: Args, mut options: Options) -> Result<Self, TerminalError> {
        let inside = Environment::of_process();
        options.environment = outside(&inside);
        let terminals = Terminals::open(options.clone())?;
        let id = inside.filled(TERMINAL_ID).map(|id| id.to_string_lossy().into_owned());
        let own = id.and_then(|id| terminals.find(&id).ok());
        // The CLI hides API keys from its servers; workers need them.
        let environment = own.as_ref().and_then(Terminal::environment).unwrap_or(inside);
        let environment = outside(&environment);
        options.environment = environment.clone();
        let terminals = Terminals::open(options.clone())?;
        let own = own.and_then(|own| terminals.find(own.id()).ok());
        let supervisor = own.as_ref().and_then(|own| own.record().ok());
        let trust = if args.trust { Trust::Run } else { Trust::AsIs };
        let receivers = Mutex::new(own.iter().map(|own| own.id().to_owned()).collect());
        Ok(Self {
            terminals,
            options,
            environment,
            own,
            supervisor,
            approval: args.approval,
            trust,
            model: args.model,
            receivers,
            closed: AtomicBool::new(false),
        })
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Delivers what waits, to the supervisor and to those it has written to, until the server ends.
    pub fn deliver(&self) {
        while !self.is_closed() {
            let ids = self.receivers.lock().clone();
            for id in ids {
                // A terminal that has gone takes nothing more; one that is busy does later.
                if let Ok(terminal) = self.terminals.find(&id) {
                    let _later = terminal.deliver_post();
                }
            }
            std::thread::sleep(SLICE);
        }
    }

    pub fn call(&self, tool: &str, arguments: &Map<String, Value>, cancelled: &dyn Fn() -> bool) -> Done {
        match tool {
            "handoff" => self.handoff(arguments, cancelled),
            "assign" => self.assign(arguments),
            "send_message" => self.send_message(arguments),
            "list" => self.list(),
            "status" => self.status(arguments),
            _ => Err(format!("there is no tool {tool:?}")),
        }
    }

    fn handoff(&self, arguments: &Map<String, Value>, cancelled: &dyn Fn() -> bool) -> Done {
        let seconds = arguments.get("timeout").and_then(Value::as_u64);
        let deadline = Instant::now() + seconds.map_or(HANDOFF, Duration::from_secs);
        let mut launch = self.worker(arguments, text(arguments, "message")?)?;
        launch.supervisor = self.own.as_ref().map(|own| own.id().to_owned());
        let worker = self.terminals.launch(launch).map_err(said)?;
        let answer = self.answer_of(&worker, deadline, cancelled);
        if !matches!(answer, Err(Unfinished::Asks(_))) {
            let _ended = worker.exit(LEAVE);
        }
        answer.map_err(|unfinished| unfinished.to_string())
    }

    fn supervisor_is_idle(&self) -> bool {
        let reading = self.own.as_ref().and_then(|own| own.status_now().ok());
        reading.is_some_and(|reading| Until::Idle.is_met(reading.status))
    }

    fn answer_of(
        &self,
        worker: &Terminal,
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<String, Unfinished> {
        let mut idle = 0;
        loop {
            // 0.61.0 does not tell its servers that a call was cancelled; but then it does not work any more.
            idle = if self.supervisor_is_idle() { idle + 1 } else { 0 };
            if self.is_closed() || cancelled() || idle > 3 {
                return Err(Unfinished::Said("cancelled".to_owned()));
            }
            let reading = match worker.wait(Until::Settled, SLICE) {
                Ok(reading) => reading,
                Err(error) if error.kind == TerminalErrorKind::Timeout => {
                    if Instant::now() < deadline {
                        continue;
                    }
                    return Err(Unfinished::Said(format!("{} did not finish in time", worker.name())));
                }
                Err(error) => return Err(Unfinished::Said(said(error))),
            };
            return match reading.status {
                Status::Waiting => {
                    let question = reading.waiting_for.map(|waiting| waiting.question).unwrap_or_default();
                    Err(Unfinished::Asks(format!(
                        "{} asks: {question} Somebody has to answer with `{}`.",
                        worker.name(),
                        worker.command_line("answer", &["..."])
                    )))
                }
                Status::Error => Err(Unfinished::Said(reading.error.unwrap_or_default())),
                Status::Exited => Err(Unfinished::Said(format!("{} has ended", worker.name()))),
                _ => worker
                    .last_answer()
                    .map(|answer| answer.text)
                    .map_err(|error| Unfinished::Said(said(error))),
            };
        }
    }

    fn assign(&self, arguments: &Map<String, Value>) -> Done {
        let mut message = text(arguments, "message")?.to_owned();
        if let Some(own) = &self.own {
            message.push_str(&format!(
                "\n\nWhen you have finished, report the result with the tool send_message, receiver \"{}\".",
                own.id()
            ));
        }
        let mut launch = self.worker(arguments, &message)?;
        launch.request.mcp_servers.push(self.own_server());
        let worker = self.terminals.launch(launch).map_err(said)?;
        Ok(json!({"terminal": worker.id(), "name": worker.name()}).to_string())
    }

    fn send_message(&self, arguments: &Map<String, Value>) -> Done {
        let receiver = self.terminals.find(text(arguments, "receiver")?).map_err(said)?;
        let message = text(arguments, "message")?;
        let from = self.own.as_ref().map_or("outside", |own| own.name());
        receiver.post(&format!("[Message from terminal {from}] {message}")).map_err(said)?;
        self.receivers.lock().insert(receiver.id().to_owned());
        Ok(format!("{} gets it as soon as it is free", receiver.name()))
    }

    fn list(&self) -> Done {
        let mut rows = Vec::new();
        for terminal in self.terminals.list().map_err(said)? {
            let status = terminal.status_now().map_or("unknown", |reading| status_name(reading.status));
            let own = self.own.as_ref().is_some_and(|own| own.id() == terminal.id());
            rows.push(
                json!({"terminal": terminal.id(), "name": terminal.name(), "status": status, "you": own}),
            );
        }
        Ok(json!({"terminals": rows}).to_string())
    }

    fn status(&self, arguments: &Map<String, Value>) -> Done {
        let terminal = self.terminals.find(text(arguments, "terminal")?).map_err(said)?;
        let reading = terminal.status().map_err(said)?;
        let mut status = json!({
            "terminal": terminal.id(),
            "name": terminal.name(),
            "status": status_name(reading.status),
            "waiting_messages": terminal.waiting_letters(),
        });
        let more = [
            ("answer", terminal.last_answer().ok().map(|answer| answer.text)),
            ("error", reading.error),
            ("asks", reading.waiting_for.map(|waiting| waiting.question)),
        ];
        for (name, value) in more {
            if let (Some(value), Some(status)) = (value, status.as_object_mut()) {
                status.insert(name.to_owned(), json!(value));
            }
        }
        Ok(status.to_string())
    }

    /// A worker like its supervisor, for a task.
    fn worker(&self, arguments: &Map<String, Value>, message: &str) -> Result<Launch, String> {
        let optional =
            |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let base = self.supervisor.as_ref().map_or_else(|| PathBuf::from("."), |record| record.dir.clone());
        let dir = optional("working_directory").map_or(base.clone(), |dir| base.join(dir));
        let prompt = Some(message.into());
        let mut request = ResolvedRequest {
            prompt,
            dir: Some(dir.clone()),
            trust: self.trust,
            ..ResolvedRequest::default()
        };
        let inherited = self.supervisor.as_ref().map(|record| record.approval.parse::<Approval>());
        request.approval = match (self.approval, inherited) {
            (Some(approval), _) => approval,
            (None, Some(inherited)) => inherited?,
            (None, None) => Approval::default(),
        };
        let profile = optional("agent_profile")
            .map(|name| match name.contains('/') || name.ends_with(".md") {
                // The model chooses here, and a profile says which programs run.
                true => Err("a worker's profile is given by its name, not by a path".to_owned()),
                false => {
                    let places = Places::usual(&self.environment, &dir, self.trust);
                    Profile::load(name, &places).map_err(|error| format!("{error}. {}", places.hint(&error)))
                }
            })
            .transpose()?;
        let model = self.model.clone();
        request.model = match profile.as_ref().and_then(|profile| profile.model.clone()) {
            Some(model) => Some(model),
            None => model.or_else(|| self.supervisor.as_ref().and_then(|record| record.model.clone())),
        };
        Ok(Launch {
            name: optional("name").map(str::to_owned),
            request,
            profile,
            gemini: self.supervisor.as_ref().map(|record| record.gemini.clone()),
            ..Launch::default()
        })
    }

    /// This server, for a worker.
    fn own_server(&self) -> McpServer {
        let program = std::env::current_exe()
            .map_or_else(|_| "alhena".into(), |path| path.to_string_lossy().into_owned());
        let mut args = vec!["terminal".to_owned(), "--server".to_owned(), self.options.server.clone()];
        if let Some(tmux) = &self.options.tmux {
            args.extend(["--tmux".to_owned(), tmux.to_string_lossy().into_owned()]);
        }
        args.push("serve-mcp".to_owned());
        let mut server = McpServer::process("alhena", &program, args);
        // Reporting is what it was launched for.
        server.trust = Some(true);
        server
    }
}

/// Why there is no answer.
enum Unfinished {
    /// The worker asks something, and stays.
    Asks(String),
    Said(String),
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Unfinished::Asks(text) | Unfinished::Said(text)) = self;
        f.write_str(text)
    }
}

/// The environment around the supervisor's agent: without what was set for that one alone.
fn outside(inside: &Environment) -> Environment {
    let mut environment = inside.clone();
    let own = [
        "GEMINI_CLI_HOME",
        "GEMINI_SYSTEM_MD",
        "GEMINI_CLI_TRUST_WORKSPACE",
        "GEMINI_SANDBOX",
        "ALHENA_RUN",
        "GEMINI_CLI_NO_RELAUNCH",
        "TMPDIR",
        "TMUX",
        "TMUX_PANE",
        TERMINAL_ID,
    ];
    for name in own {
        environment.remove(name);
    }
    for (outer, name) in [(OUTER_GEMINI_HOME, "GEMINI_CLI_HOME"), (OUTER_TMPDIR, "TMPDIR")] {
        if let Some(value) = inside.get(outer) {
            environment.set(name, value);
        }
    }
    environment
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let text = arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| format!("{name} is missing"))
}

fn said(error: TerminalError) -> String {
    if error.hint.is_empty() { error.to_string() } else { format!("{error}. {}", error.hint) }
}
