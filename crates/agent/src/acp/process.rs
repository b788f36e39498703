//! From a request to `gemini --acp`, or to another agent, under the keeper.
//!
//! Its standard output is a file, as that of a headless run: a reader that is slow or dead then costs nothing, and holds up nobody.
//! Its standard input is a named pipe.

use std::ffi::OsString;
use std::path::PathBuf;

use alhena_model::Setting;
use alhena_wire::release::{Feature, Version};
use serde_json::{Map, Value, json};

use super::gate::mode_of_agent;
use super::other::{self, AcpAgent};
use super::pipe::Pipe;
use super::responses;
use super::service::Kind;
use crate::env::Environment;
use crate::find::Gemini;
use crate::home::Home;
use crate::hooks;
use crate::prepare::{self, Common, Own, Ready, RunError, arguments, asking};
use crate::request::{ResolvedRequest, Transport};
use crate::run_dir::RunDir;
use crate::settings::read_settings;
use crate::supervise::protocol::{self, Launch, Stdin};
use crate::telemetry;

/// What the process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A run, or a conversation.
    One,
    /// Independent prompts, one after the other.
    Many(Kind),
}

/// Whom a request is for.
#[derive(Clone, Copy)]
pub(crate) enum Who<'a> {
    Gemini(&'a Gemini),
    Other(&'a AcpAgent),
}

impl Who<'_> {
    /// Everything that a conversation needs, ready to be handed to the keeper, and the way to talk to it.
    pub(super) fn prepare(
        self,
        request: &ResolvedRequest,
        base: &Environment,
        purpose: Purpose,
    ) -> Result<(Ready, Pipe), RunError> {
        match self {
            Who::Gemini(gemini) => prepare(gemini, request, base, purpose),
            Who::Other(agent) => agent.prepare(request, base),
        }
    }

    /// For recordings.
    pub(super) fn described(self) -> Value {
        match self {
            Who::Gemini(gemini) => gemini.described(),
            Who::Other(agent) => json!({ "agent": agent.name() }),
        }
    }

    /// How its session is opened.
    pub(super) fn opening(self, request: &ResolvedRequest, home: Option<&Home>) -> Result<Opening, RunError> {
        Ok(match self {
            // MCP servers are in its settings.
            Who::Gemini(_) => Opening {
                name: None,
                resumed: home.and_then(|home| home.resumed_id().map(str::to_owned)),
                servers: json!([]),
                trusted: home.map(|home| trusted_servers(request, home)).unwrap_or_default(),
            },
            Who::Other(agent) => Opening {
                name: Some(agent.name().to_owned()),
                resumed: other::resumed(request),
                servers: other::servers(&request.mcp_servers)?,
                trusted: Vec::new(),
            },
        })
    }
}

/// How a session is opened.
pub(super) struct Opening {
    /// The agent, if it is not Gemini CLI.
    pub name: Option<String>,
    /// The session to go on with.
    pub resumed: Option<String>,
    /// Its MCP servers.
    pub servers: Value,
    /// Those that need not ask.
    pub trusted: Vec<String>,
}

fn trusted_servers(request: &ResolvedRequest, home: &Home) -> Vec<String> {
    let user = read_settings(&home.user_home().join(".gemini/settings.json")).unwrap_or_default();
    asking::trusted_servers(request, &user)
}

/// Everything that a conversation needs, ready to be handed to the keeper, and the way to talk to it.
fn prepare(
    gemini: &Gemini,
    request: &ResolvedRequest,
    base: &Environment,
    purpose: Purpose,
) -> Result<(Ready, Pipe), RunError> {
    if request.session_id.is_some() {
        return Err(RunError::usage(
            format!("{} cannot be chosen over ACP: the agent names its sessions itself", Setting::SessionId),
            "Leave it out, or use `transport` headless.",
        ));
    }
    if request.schema.is_some() && gemini.version < AGENT_HOOKS_SINCE {
        return Err(RunError::usage(
            format!(
                "Gemini CLI {} cannot give an answer that fits a schema over ACP: it runs the hooks that takes since {AGENT_HOOKS_SINCE}",
                gemini.version
            ),
            "Use `transport` headless with `schema`, or a newer release: `alhena install` fetches it.",
        ));
    }
    let (own, heap_mb) = match purpose {
        Purpose::One => (Own::new(prepare::settings_of_run).over_acp(), None),
        Purpose::Many(Kind { heap_mb, reuse }) => {
            let settings = if reuse { settings_of_many } else { prepare::settings_of_run };
            (Own::new(settings).over_acp().without_sessions(), Some(heap_mb))
        }
    };
    let Common { mut environment, home, dir, run_dir, user_home, user_settings, warnings, .. } =
        prepare::common(gemini, request, base, own)?;
    // It costs time, and is written late: independent prompts have it only for the router, whose model nothing else names.
    if (purpose == Purpose::One || may_be_routed(request))
        && telemetry::switch_on(&run_dir.path().join(telemetry::FILE), &user_settings, &mut environment)
    {
        telemetry::trace(&gemini.version, &mut environment);
    }
    prepare::debug_log(&run_dir, &mut environment);
    let flag = if gemini.version.has(Feature::Acp) { "--acp" } else { "--experimental-acp" };
    let mut args: Vec<OsString> = vec![flag.into()];
    // A session to go on with is loaded by a message.
    let request = asking::asking(request, &user_home, &dir, &user_settings, &environment);
    let approval = mode_of_agent(request.approval, &request.rules);
    let mut request = ResolvedRequest { resume: None, approval, transport: Transport::Acp, ..request };
    if run_dir.meter().is_some() {
        asking::about_model_tools(&mut request);
    }
    let request = &request;
    args.extend(arguments::of(request, gemini, home.as_ref(), run_dir.path(), &user_home, &user_settings)?);
    let places = (user_home.as_path(), dir.as_path());
    if asking::about_everything(request)
        || responses::can_be_recorded(gemini, request, &user_settings, places, base)
    {
        args.push(responses::option(&run_dir));
        if let Some(meter) = run_dir.meter() {
            let traces = telemetry::traces(run_dir.path(), &environment);
            meter.record(&responses::file(&run_dir), traces.as_deref());
        }
    }
    let directories = prepare::Directories { work: &dir, run: run_dir.path(), home: &user_home };
    let (program, args) =
        prepare::command(gemini, request, directories, &user_settings, &mut environment, args, heap_mb)?;
    in_custody(request, (program, args), home, dir, run_dir, environment, warnings)
}

/// A command with a named pipe for its standard input.
pub(super) fn in_custody(
    request: &ResolvedRequest,
    (program, args): (OsString, Vec<OsString>),
    home: Option<Home>,
    dir: PathBuf,
    run_dir: RunDir,
    mut environment: Environment,
    warnings: Vec<String>,
) -> Result<(Ready, Pipe), RunError> {
    environment.set("TMPDIR", run_dir.temporary());
    let stdin = run_dir.path().join("stdin");
    let pipe = Pipe::create(&stdin).map_err(|error| {
        let message = format!("the agent could not be given a standard input: {error}");
        RunError::failed(alhena_model::FailureKind::Config, message)
    })?;
    let launch = Launch {
        version: protocol::VERSION,
        mark: run_dir.mark().to_owned(),
        program,
        args,
        env: environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        dir: dir.clone().into_os_string(),
        stdin: Stdin::File(stdin.into_os_string()),
        stdout: run_dir.path().join("stdout").into_os_string(),
        stderr: run_dir.path().join("stderr").into_os_string(),
        finish: home.as_ref().map(Home::plan),
        remove_when_abandoned: vec![run_dir.path().as_os_str().to_owned()],
        remove: vec![run_dir.temporary().as_os_str().to_owned()],
        require_keeper: request.require_keeper,
    };
    Ok((Ready { launch, home, dir, run_dir, environment, warnings }, pipe))
}

/// Whether the CLI may ask a model which model to ask. It does so for `auto` and its kin (0.61.0), and `auto` is what counts where nobody
/// names one, which settings and variables can.
fn may_be_routed(request: &ResolvedRequest) -> bool {
    request.model.as_deref().is_none_or(|model| model == "auto" || model.starts_with("auto-"))
}

/// The first release whose hooks of the agent are run over ACP as well.
const AGENT_HOOKS_SINCE: Version = Version::new(0, 45, 2);

/// Makes the agent forget what was said, when it has answered.
const CLEAR: &str =
    r#"printf '{"continue":false,"hookSpecificOutput":{"hookEventName":"AfterAgent","clearContext":true}}'"#;
const AFTER_AGENT: &str = "AfterAgent";

/// The settings of a process for independent prompts: its history is cleared after each, if that can be.
fn settings_of_many(request: &ResolvedRequest, gemini: &Gemini, user: &Value) -> Map<String, Value> {
    let mut settings = prepare::settings_of_run(request, gemini, user);
    if clears(gemini, user) {
        let hook = json!({"type": "command", "name": "alhena-clear", "command": CLEAR});
        settings.insert("hooks".to_owned(), json!({AFTER_AGENT: [{"hooks": [hook]}]}));
    }
    settings
}

/// The same for whoever has not read the user's settings.
pub(super) fn clears_in(gemini: &Gemini, ready: &Ready) -> bool {
    let path = ready.home.as_ref().map(|home| home.user_home().join(".gemini/settings.json"));
    path.and_then(|path| read_settings(&path).ok()).is_some_and(|user| clears(gemini, &user))
}

/// Whether the history can be cleared: hooks of the user's at the same moment could have another word.
fn clears(gemini: &Gemini, user: &Value) -> bool {
    gemini.version >= AGENT_HOOKS_SINCE
        && user.pointer("/hooks/AfterAgent").is_none()
        && user.as_object().is_none_or(|user| !hooks::switched_off(user))
}
