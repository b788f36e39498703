//! `--offline`: the real CLI against Alhena's scripted model.
//!
//! Everything about it is private: a Gemini home of its own, so that nothing of the user's is needed or touched, and a
//! server on loopback that ends with the run.

use std::path::{Path, PathBuf};

use alhena_agent::env::{self, Environment};
use alhena_agent::{Approval, ResolvedRequest, RunError, Trust};
use alhena_model::{Failure, FailureKind};
use alhena_model::{RunOptions, Setting};
use alhena_scripted::{Scenario, Server, tour};
use alhena_sys::files;
use serde_json::json;

/// What stands in the outcome of every offline run.
pub const NOTICE: &str =
    "Offline: the answers come from Alhena's scripted model on this machine, not from Gemini";

/// What would send the CLI elsewhere, or make it say something else.
pub const IN_THE_WAY: [&str; 9] = [
    env::GOOGLE_GENAI_USE_GCA,
    env::GOOGLE_GENAI_USE_VERTEXAI,
    env::GEMINI_SYSTEM_MD,
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// The scripted model; it ends when this is dropped.
pub struct Offline {
    server: Server,
    home: PathBuf,
}

impl Offline {
    /// Starts it, with a home for runs.
    pub fn start(environment: &Environment) -> Result<Self, RunError> {
        let broken = |error: std::io::Error| match files::is_full(&error) {
            true => RunError::Failed(Box::new(Failure::new(
                FailureKind::DiskFull,
                format!("the scripted model has no home: {error}"),
            ))),
            false => RunError::usage(
                format!("the scripted model could not be started: {error}"),
                "It needs a free port on 127.0.0.1 and a directory to write to.",
            ),
        };
        let server = Server::start().map_err(broken)?;
        let dirs = alhena_agent::dirs::Dirs::of(environment).ok_or_else(|| {
            RunError::usage(
                "there is no home directory to work with",
                "Set HOME, or ALHENA_HOME to a directory of its own.",
            )
        })?;
        let home = dirs.offline_home();
        furnish(&home).map_err(broken)?;
        Ok(Self { server, home })
    }

    /// Plays a scenario under this name, from its beginning, and gives its address.
    pub fn play(&self, name: &str, scenario: Scenario) -> String {
        self.server.add(name, scenario)
    }

    /// Points a run at an address of it.
    pub fn point(
        &self,
        url: &str,
        approval: Option<Approval>,
        request: &mut ResolvedRequest,
        environment: &mut Environment,
    ) {
        environment.set(env::GEMINI_CLI_HOME, &self.home);
        environment.set(env::GEMINI_API_KEY, "offline");
        environment.set(env::GOOGLE_GEMINI_BASE_URL, url);
        for name in IN_THE_WAY {
            environment.remove(name);
        }
        // A tour without tools would show nothing, and this model only does what its scenario says.
        request.approval = approval.unwrap_or(Approval::Yolo);
        if request.trust == Trust::AsIs {
            request.trust = Trust::Run;
        }
        request.notices.push(NOTICE.to_owned());
    }
}

/// Starts the scripted model, if it is asked for, and points the run at it.
pub fn prepare(
    options: &RunOptions,
    request: &mut ResolvedRequest,
    environment: &mut Environment,
) -> Result<Option<Offline>, RunError> {
    let Some(offline) = &options.offline else { return Ok(None) };
    let scenario = chosen(offline.scenario())?;
    let offline = Offline::start(environment)?;
    let url = offline.play("offline", scenario);
    offline.point(&url, options.approval, request, environment);
    Ok(Some(offline))
}

/// The scenario of a file, or the tour.
pub fn chosen(scenario: Option<&Path>) -> Result<Scenario, RunError> {
    scenario.map_or_else(|| Ok(tour()), read_scenario).map_err(|error| match error {
        RunError::Usage { message, hint, source } => {
            RunError::Usage { message: format!("{}: {message}", Setting::Offline), hint, source }
        }
        error => error,
    })
}

/// Reads a scenario file.
pub fn read_scenario(path: &Path) -> Result<Scenario, RunError> {
    let failed = |message: String, hint: String| RunError::usage(message, hint);
    let example = "Give a scenario in JSON, for example {\"turns\": [{\"steps\": [{\"text\": \"Hi\"}]}]}.";
    let text = std::fs::read_to_string(path)
        .map_err(|error| failed(format!("{}: {error}", path.display()), example.into()))?;
    Scenario::from_json(&text).map_err(|error| {
        let place = format!("{}:{}:{}", path.display(), error.line(), error.column());
        let hint = error.suggestion().map_or(example.into(), |name| format!("Did you mean {name:?}?"));
        failed(format!("{place}: not a scenario: {}", error.what()), hint)
    })
}

/// Makes a home in which Gemini CLI takes a base URL: 0.61.0 refuses one where no sign-in is selected, and that cannot be
/// selected by the environment.
pub fn furnish(home: &Path) -> std::io::Result<()> {
    let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    let dir = home.join(".gemini");
    files::create_private_dir(&dir)?;
    let (path, text) = (dir.join("settings.json"), settings.to_string());
    match std::fs::read(&path) {
        Ok(there) if there == text.as_bytes() => Ok(()),
        _ => files::replace_own(&path, text.as_bytes()),
    }
}
