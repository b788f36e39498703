//! From a request to a launch: which arguments, which environment, which standard input.
//!
//! Only flags that the found release accepts are emitted: yargs is strict, and an unknown flag ends the CLI with exit 1
//! (0.61.0). What the release cannot do is an error before anything starts.

mod again;
mod answer;
pub(crate) mod arguments;
pub(crate) mod asking;
mod hooks;
mod launch;
pub(crate) mod prompt;
pub(crate) mod servers;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_model::{Failure, FailureKind, Hint};
use alhena_sys::files;
use alhena_wire::release::{Feature, NEWEST_KNOWN, OLDEST_SUPPORTED, Version};
use serde_json::{Map, Value, json};

pub(crate) use self::again::{Again, Left, Restart};
use crate::budget::Meter;
use crate::dirs::Dirs;
use crate::env::{self, Environment};
use crate::facts;
use crate::find::Gemini;
use crate::home::{self, Home, HomeRequest, McpServer, Release};
use crate::hooks::{Deciders, Moment, Occasion};
use crate::programs;
use crate::rate_limit;
use crate::request::{ResolvedRequest, Sandbox, SystemPrompt, Transport, Trust};
use crate::run_dir::RunDir;
use crate::settings::read_settings;
use crate::supervise::protocol::Launch;
use crate::telemetry;

/// Where the CLI's debug log of a run is: only that names MCP servers that did not answer (0.61.0).
pub(crate) const DEBUG_LOG: &str = "debug.log";

/// The error under another one.
type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a run could not begin. Nothing has been started. [`Hint::hint`] says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The request makes no sense, or the found release cannot do it.
    Usage {
        /// What is wrong.
        message: String,
        /// What to do; may be empty.
        hint: String,
        /// The error under it, such as that of a file.
        source: Option<Source>,
    },
    /// Something that the run needs is not there.
    Failed(Box<Failure>),
}

impl RunError {
    /// A request that makes no sense, and what to do; the hint may be empty.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        RunError::Usage { message: message.into(), hint: hint.into(), source: None }
    }

    /// An error in the use of something else, which is kept.
    pub(crate) fn misuse(error: impl Hint + Send + Sync + 'static) -> Self {
        let hint = error.hint().unwrap_or_default().into_owned();
        RunError::usage(error.to_string(), hint).caused_by(error)
    }

    /// Keeps the error under a wrong use.
    pub(crate) fn caused_by(mut self, error: impl Into<Source>) -> Self {
        if let RunError::Usage { source, .. } = &mut self {
            *source = Some(error.into());
        }
        self
    }

    pub(crate) fn failed(kind: FailureKind, message: impl Into<String>) -> Self {
        RunError::Failed(Box::new(Failure::new(kind, message)))
    }

    /// As a failure of the run that never began.
    pub fn into_failure(self) -> Failure {
        match self {
            RunError::Usage { message, hint, .. } => {
                Failure::new(FailureKind::Input, message).with_hint(hint)
            }
            RunError::Failed(failure) => *failure,
        }
    }

    /// The exit code of `alhena` for it.
    pub fn exit_status(&self) -> u8 {
        match self {
            RunError::Usage { .. } => 2,
            RunError::Failed(failure) => failure.kind.exit_status(),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Usage { message, .. } => f.write_str(message),
            RunError::Failed(failure) => f.write_str(&failure.message),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Usage { source, .. } => source.as_ref().map(|source| &**source as _),
            RunError::Failed(_) => None,
        }
    }
}

impl Hint for RunError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            RunError::Usage { hint, .. } => Some(hint.into()).filter(|hint: &Cow<'_, str>| !hint.is_empty()),
            RunError::Failed(failure) => failure.hint(),
        }
    }
}

/// Everything that a run needs, ready to be handed to the keeper.
pub(crate) struct Ready {
    pub launch: Launch,
    pub home: Option<Home>,
    pub dir: PathBuf,
    pub run_dir: RunDir,
    pub environment: Environment,
    pub warnings: Vec<String>,
}

/// Gets a headless run ready, and what starts it once more where that may be needed.
pub(crate) fn prepare(
    gemini: &Gemini,
    request: &ResolvedRequest,
    base: &Environment,
) -> Result<(Ready, Option<Again>), RunError> {
    let prompt = prompt::deliver(request)?;
    let Common { mut environment, home, wanted, dir, run_dir, user_home, user_settings, warnings } =
        common(gemini, request, base, Own::new(settings_of_run))?;
    let measured =
        telemetry::switch_on(&run_dir.path().join(telemetry::FILE), &user_settings, &mut environment);
    if measured && run_dir.meter().is_some() {
        telemetry::trace(&gemini.version, &mut environment);
    }
    debug_log(&run_dir, &mut environment);
    let place = launch::Surroundings { dir: dir.clone(), user_home, user_settings };
    let launch = place.launch(gemini, request, prompt, home.as_ref(), &run_dir, &mut environment)?;
    let again = Again::of(gemini, request, wanted, &environment, place)?;
    Ok((Ready { launch, home, dir, run_dir, environment, warnings }, again))
}

/// Where the CLI writes its debug log: where the user wants it, or among the run's own files.
pub(crate) fn debug_log(run_dir: &RunDir, environment: &mut Environment) -> PathBuf {
    if let Some(chosen) = environment.filled(env::GEMINI_DEBUG_LOG_FILE) {
        return chosen.into();
    }
    let own = run_dir.path().join(DEBUG_LOG);
    environment.set(env::GEMINI_DEBUG_LOG_FILE, &own);
    own
}

/// What headless and interactive starts have in common.
pub(crate) struct Common {
    pub environment: Environment,
    pub home: Option<Home>,
    /// What the home was asked for with.
    pub wanted: HomeRequest,
    pub dir: PathBuf,
    pub run_dir: RunDir,
    pub user_home: PathBuf,
    pub user_settings: Value,
    pub warnings: Vec<String>,
}

/// The settings that a start changes: of the request, the found CLI and the user's own.
type SettingsOf = fn(&ResolvedRequest, &Gemini, &Value) -> Map<String, Value>;

/// What one kind of start does in its own way.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    settings: SettingsOf,
    keep_sessions: bool,
    transport: Transport,
}

impl Own {
    pub(crate) fn new(settings: SettingsOf) -> Self {
        Self { settings, keep_sessions: true, transport: Transport::Headless }
    }

    /// The CLI is talked to by ACP, where it runs other hooks.
    pub(crate) fn over_acp(self) -> Self {
        Self { transport: Transport::Acp, ..self }
    }

    /// What is said stays out of the user's store.
    pub(crate) fn without_sessions(self) -> Self {
        Self { keep_sessions: false, ..self }
    }
}

pub(crate) fn common(
    gemini: &Gemini,
    request: &ResolvedRequest,
    base: &Environment,
    own: Own,
) -> Result<Common, RunError> {
    request.check()?;
    rate_limit::check(request)?;
    let mut warnings = request.notices.clone();
    warnings.extend(check_version(&gemini.version)?);
    let dir = working_directory(request)?;
    let mut environment = base.clone();
    for (name, value) in &request.env {
        environment.set(name.clone(), value.clone());
    }
    let dirs = Dirs::of(&environment).ok_or_else(no_home)?;
    // Without one the folder's own settings would stand in for the user's.
    let user_home = environment.gemini_home().ok_or_else(|| {
        RunError::usage("there is no home directory for Gemini CLI", "Set HOME, or GEMINI_CLI_HOME.")
    })?;
    warnings.extend(without_relative_programs(&mut environment));
    let mut run_dir = private_directories(&dirs.runs())?;
    let user_settings = read_settings(&user_home.join(".gemini/settings.json"))
        .map_err(|error| RunError::failed(FailureKind::Config, error.to_string()))?;

    let mut servers = servers::of(request, &user_home, &dir, &user_settings, &environment);
    servers.extend(servers::of_extensions(&user_home));
    warnings.extend(arguments::without_effect(request, &servers));
    let mut wanted = (own.settings)(request, gemini, &user_settings);
    let folder = takes_folder_settings(request, &user_home, &dir, &environment);
    let others = hooks::other_settings(folder, &dir, &environment);
    if asking::is_wanted(request, own.transport) {
        asking::check(request, gemini, &user_home, &user_settings, &others, &environment)?;
        asking::distrust(request, &user_settings, &mut wanted);
    }
    let offer = answer::offer(request, &servers, &user_settings, &mut wanted, &mut environment)?;
    let meter = Meter::of(request)?;
    let asks_behind = own.transport == Transport::Acp
        && request.hooks.as_ref().is_some_and(|hooks| hooks.moments.contains(&Moment::AfterTool));
    if asks_behind {
        arguments::needs(&gemini.version, Feature::HookMessages, "`hook` after-tool over ACP")?;
    }
    let deciders = Deciders {
        hooks: request.hooks.clone(),
        desk: offer.as_ref().map(|offer| Arc::clone(&offer.desk)),
        meter: meter.clone(),
        behind: asks_behind.then(Arc::default),
        can_tell: gemini.version.has(Feature::HookMessages),
    };
    let behind = deciders.behind.clone();
    let only_budget = deciders.hooks.is_none() && deciders.desk.is_none();
    let who = if only_budget { "a budget" } else { "hooks" };
    let needs_hooks = !only_budget || meter.is_some();
    if meter.is_some() && own.transport == Transport::Acp {
        asking::check_model_tools(request, &user_home, &user_settings)?;
    }
    if needs_hooks {
        hooks::check(request, gemini, &others, who)?;
        let mut moments: Vec<Moment> = request.hooks.iter().flat_map(|hooks| hooks.moments.clone()).collect();
        // Over ACP no hook is run behind a tool (0.61.0): what would be done there is done before the model is asked again.
        let in_its_place = asks_behind || (own.transport == Transport::Acp && offer.is_some());
        if (meter.is_some() || in_its_place) && !moments.contains(&Moment::BeforeModel) {
            moments.push(Moment::BeforeModel);
        }
        let around_model_tools = [Moment::BeforeTool, Moment::AfterTool].into_iter();
        let around_model_tools =
            around_model_tools.filter(|moment| meter.is_some() && !moments.contains(moment));
        let around_model_tools: Vec<_> = around_model_tools.map(Occasion::ModelTool).collect();
        let moments = moments.into_iter().map(Occasion::Decision).chain(around_model_tools);
        let of_offer = offer.iter().flat_map(|offer| offer.occasions(own.transport));
        let occasions: Vec<_> = moments.chain(of_offer).collect();
        let server =
            hooks::begin(deciders, &occasions, &run_dir, &user_settings, &mut wanted, &mut environment)?;
        run_dir.hold(server);
    }
    let mut wanted = home_request(gemini, request, &dir, &user_home, &dirs, wanted, &environment);
    if let Some(offer) = offer {
        let context = wanted.context.take().map(|context| format!("{context}\n\n")).unwrap_or_default();
        wanted.context = Some(context + &offer.instructions);
        run_dir.hold_answers(offer.desk, offer.server.zip(offer.tool));
    }
    wanted.mark = Some(run_dir.mark().to_owned());
    wanted.keep_sessions = own.keep_sessions;
    let home = home::prepare(&wanted).map_err(|error| {
        if error.kind() == FailureKind::Input {
            let hint = error.hint_in(&user_home).unwrap_or_default();
            return RunError::usage(error.to_string(), hint).caused_by(error);
        }
        let failure = Failure::new(error.kind(), error.to_string());
        RunError::Failed(Box::new(match error.hint_in(&user_home) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }))
    })?;
    let home = match home {
        home::Prepared::Overlay(home) => {
            warnings.extend_from_slice(home.warnings());
            Some(home)
        }
        home::Prepared::Direct { cost, .. } if needs_hooks => {
            let why = cost.join("; ");
            return Err(RunError::usage(
                format!("hooks, schemas and budgets need a home of the run's own: {why}"),
                "",
            ));
        }
        home::Prepared::Direct { cost, .. } => {
            warnings.extend(cost);
            None
        }
    };
    if let (Some(meter), Some(home)) = (&meter, &home) {
        meter.follow(home.chats_dir());
    }
    if let (Some(behind), Some(home)) = (&behind, &home) {
        behind.follow(home.chats_dir());
    }
    for (name, value) in home.iter().flat_map(Home::env) {
        environment.set(name, value);
    }
    if request.trust == Trust::Run {
        warnings.extend(leave_out_untrusted(&user_home, &dir, &mut environment)?);
    }
    set_variables(request, run_dir.path(), &gemini.version, &mut environment)?;
    Ok(Common { environment, home, wanted, dir, run_dir, user_home, user_settings, warnings })
}

pub(crate) fn no_home() -> RunError {
    RunError::usage(
        "there is no home directory to work with",
        "Set HOME, or ALHENA_HOME to a directory of its own.",
    )
}

/// Takes what depends on the folder out of `PATH`, and says so.
pub(crate) fn without_relative_programs(environment: &mut Environment) -> Option<String> {
    let relative = programs::leave_out_relative(environment);
    let named: Vec<String> =
        relative.iter().map(|entry| format!("{:?}", entry.display().to_string())).collect();
    (!named.is_empty()).then(|| {
        format!(
            "PATH has entries that mean whatever folder one is in ({}); the run does not get them",
            named.join(", ")
        )
    })
}

/// The directories that a start depends on.
#[derive(Clone, Copy)]
pub(crate) struct Directories<'a> {
    /// Where the CLI works.
    pub work: &'a Path,
    /// The run's own.
    pub run: &'a Path,
    /// The user's home.
    pub home: &'a Path,
}

/// Returns the program and its arguments: one Node process where that is possible. Its heap is limited to so many MB, or as the CLI would.
pub(crate) fn command(
    gemini: &Gemini,
    request: &ResolvedRequest,
    directories: Directories<'_>,
    user_settings: &Value,
    environment: &mut Environment,
    args: Vec<OsString>,
    heap_mb: Option<u64>,
) -> Result<(OsString, Vec<OsString>), RunError> {
    let Directories { work, run, home } = directories;
    let hides = request.trust == Trust::Run
        && gemini.version.has(Feature::SkipTrust)
        && !takes_folder_settings(request, home, work, environment);
    let sandboxed = matches!(request.sandbox, Sandbox::On | Sandbox::Engine(_));
    let Some(mut fast) = gemini.fast_start(environment, user_settings).filter(|_| !sandboxed) else {
        if hides && request.transport == Transport::Acp && work.join(".gemini/settings.json").exists() {
            return Err(not_hidden(work));
        }
        return Ok((gemini.path.clone().into_os_string(), args));
    };
    fast.heap_mb = heap_mb.or(fast.heap_mb);
    for (name, value) in fast.variables() {
        environment.set(name, value);
    }
    let mut command = fast.command().into_iter();
    let program = command.next().unwrap_or_else(|| gemini.path.clone().into_os_string());
    let hidden = hides.then(|| hide_folder_settings(run)).transpose()?;
    let hidden = hidden.into_iter().flat_map(|file| ["--require".into(), file.into_os_string()]);
    Ok((program, hidden.chain(command).chain(args).collect()))
}

/// Writes the module that hides the settings of folders from a CLI, for `node --require`.
fn hide_folder_settings(run: &Path) -> Result<PathBuf, RunError> {
    let file = run.join("folder-settings.cjs");
    fs::write(&file, include_str!("prepare/folder_settings.cjs")).map_err(|error| {
        let kind = if files::is_full(&error) { FailureKind::DiskFull } else { FailureKind::Config };
        RunError::failed(kind, format!("{}: {error}", file.display()))
    })?;
    Ok(file)
}

fn not_hidden(work: &Path) -> RunError {
    let message = format!(
        "{} has settings that are not trusted, and this Gemini CLI would load them over ACP",
        work.display()
    );
    let failure = Failure::new(FailureKind::Untrusted, message);
    RunError::Failed(Box::new(failure.with_hint(
        "Use a Gemini CLI that Alhena can start by Node itself, without a sandbox; or remove .gemini/settings.json, or trust the folder.",
    )))
}

fn check_version(version: &Version) -> Result<Vec<String>, RunError> {
    if *version < OLDEST_SUPPORTED {
        return Err(RunError::usage(
            format!("Gemini CLI {version} cannot be driven: it has no stream-json output"),
            format!("Use {OLDEST_SUPPORTED} or newer; `alhena install` fetches a good one."),
        ));
    }
    Ok(match *version > NEWEST_KNOWN {
        true => {
            vec![format!("Gemini CLI {version} is newer than {NEWEST_KNOWN}, the newest that Alhena knows")]
        }
        false => Vec::new(),
    })
}

pub(crate) fn working_directory(request: &ResolvedRequest) -> Result<PathBuf, RunError> {
    let dir = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = fs::canonicalize(&dir).map_err(|error| {
        let message = format!("{}: {error}", dir.display());
        RunError::usage(message, "Give a directory that exists.").caused_by(error)
    })?;
    if !dir.is_dir() {
        return Err(RunError::usage(format!("{} is not a directory", dir.display()), "Give a directory."));
    }
    files::may_list(&dir).map_err(|error| {
        let message = format!("{}: {error}", dir.display());
        RunError::usage(message, "Give a directory that you may read.").caused_by(error)
    })?;
    Ok(dir)
}

/// The directories of one run, readable by nobody else.
pub(crate) fn private_directories(runs: &Path) -> Result<RunDir, RunError> {
    RunDir::create(runs).map_err(|error| {
        let kind = if files::is_full(&error) { FailureKind::DiskFull } else { FailureKind::Config };
        RunError::failed(kind, format!("the run has no directory of its own: {error}"))
    })
}

fn home_request(
    gemini: &Gemini,
    request: &ResolvedRequest,
    dir: &Path,
    user_home: &Path,
    dirs: &Dirs,
    settings: Map<String, Value>,
    environment: &Environment,
) -> HomeRequest {
    let mut wanted = HomeRequest::new(user_home, dir, dirs.state.join("homes"));
    wanted.settings = settings;
    wanted.context = match &request.system_prompt {
        Some(SystemPrompt::Append(text)) => Some(text.clone()),
        Some(SystemPrompt::Replace(_)) | None => None,
    };
    wanted.resume = request.resume.clone();
    wanted.session_id = request.session_id.clone();
    wanted.sandbox = matches!(request.sandbox, Sandbox::On | Sandbox::Engine(_));
    wanted.folder_settings = takes_folder_settings(request, user_home, dir, environment);
    wanted.release = Release {
        has_home_variable: gemini.version.has(Feature::CliHome),
        has_slugs: gemini.version.has(Feature::SlugDirectories),
    };
    wanted.environment = environment.clone();
    wanted
}

/// Whether the folder's own settings count.
pub(crate) fn takes_folder_settings(
    request: &ResolvedRequest,
    user_home: &Path,
    dir: &Path,
    environment: &Environment,
) -> bool {
    match request.trust {
        Trust::WithSettings => true,
        Trust::Run | Trust::AsIs => {
            matches!(facts::trust(user_home, dir, environment), facts::TrustState::Trusted(_))
        }
    }
}

/// What the run changes in the user's settings.
pub(crate) fn settings_of_run(
    request: &ResolvedRequest,
    gemini: &Gemini,
    user: &Value,
) -> Map<String, Value> {
    let mut settings = McpServer::settings(&request.mcp_servers);
    if request.mcp_servers.is_empty() {
        settings.clear();
    }
    // Its clean-up deletes sessions that it takes for broken, also those of others.
    let mut general = Map::from_iter([("sessionRetention".to_owned(), json!({"enabled": false}))]);
    let chosen = user.pointer("/general/maxAttempts");
    if let Some(attempts) = request.max_attempts.or_else(|| chosen.is_none().then_some(3)) {
        general.insert("maxAttempts".to_owned(), json!(attempts));
    }
    settings.insert("general".to_owned(), Value::Object(general));
    if let Some(turns) = request.max_turns {
        settings.insert("model".to_owned(), json!({"maxSessionTurns": turns}));
    }
    if !gemini.version.has(Feature::Policy) && !request.deny_tools.is_empty() {
        settings.insert("tools".to_owned(), json!({"exclude": request.deny_tools}));
    }
    settings
}

/// Keeps the variables of an untrusted folder's `.env` out: the CLI sets only what is not set, and counts an empty one as
/// set. Says which.
fn leave_out_untrusted(
    user_home: &Path,
    dir: &Path,
    environment: &mut Environment,
) -> Result<Option<String>, RunError> {
    let names = facts::untrusted_names(user_home, dir, environment).map_err(|(file, error)| {
        let failure = Failure::new(FailureKind::Config, format!("{}: {error}", file.display()));
        RunError::Failed(Box::new(failure.with_hint(
            "Gemini CLI takes variables from that file, and nobody trusts its folder: remove it, or make it a plain file.",
        )))
    })?;
    let names: Vec<String> = names.into_iter().filter(|name| environment.get(name).is_none()).collect();
    for name in &names {
        environment.set(name, "");
    }
    let listed = names.join(", ");
    Ok((!names.is_empty()).then(|| {
        format!("the folder's .env is not trusted, so these variables of it are left empty: {listed}")
    }))
}

fn set_variables(
    request: &ResolvedRequest,
    run_dir: &Path,
    version: &Version,
    environment: &mut Environment,
) -> Result<(), RunError> {
    if environment.filled(env::COLORTERM).is_none() {
        environment.set(env::COLORTERM, "truecolor");
    }
    if let Some(SystemPrompt::Replace(text)) = &request.system_prompt {
        let path = run_dir.join("system.md");
        fs::write(&path, text)
            .map_err(|error| RunError::failed(FailureKind::Config, format!("{}: {error}", path.display())))?;
        environment.set(env::GEMINI_SYSTEM_MD, path);
    }
    match &request.sandbox {
        Sandbox::Inherit | Sandbox::On => {}
        Sandbox::Off => {
            environment.set(env::GEMINI_SANDBOX, "false");
        }
        Sandbox::Engine(engine) => {
            environment.set(env::GEMINI_SANDBOX, engine);
        }
    }
    if request.trust == Trust::WithSettings && version.has(Feature::SkipTrust) {
        environment.set(env::GEMINI_CLI_TRUST_WORKSPACE, "true");
    }
    Ok(())
}
