//! `--cassette`: what passes between Gemini CLI and the API, recorded into a file or played back from it.
//!
//! A run with a cassette has a home of its own: what is asked then depends on the folder and the request, and not on
//! whose machine it is.

use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::{self, Environment};
use alhena_agent::facts::{self, AuthMethod};
use alhena_agent::recording::Secrets;
use alhena_agent::{ResolvedRequest, RunError, Trust};
use alhena_model::options::{CassetteMode, Choice, RunOptions, Setting};
use alhena_model::{Outcome, Status};
use alhena_scripted::Server;
use alhena_scripted::cassette::{
    Cassette, CassetteError, Complaints, Normal, Player, Recorder, Secrecy, Upstream, can_be_written, secret,
};
use alhena_sys::files;

use crate::mock_home::MockHome;
use crate::offline::IN_THE_WAY;

/// Where the API is: the address that is built into Gemini CLI.
const API: &str = "https://generativelanguage.googleapis.com";

/// A cassette that is in.
pub struct Inserted {
    /// What was not on it, or did not get onto it.
    complaints: Complaints,
    pub is_recording: bool,
    /// What went wrong when the one that is there was recorded.
    trouble: Option<String>,
}

impl Inserted {
    /// What people should know of it beforehand.
    pub fn notice(&self, path: &Path) -> Option<String> {
        let (path, trouble) = (path.display(), self.trouble.as_ref()?);
        Some(match self.is_recording {
            true => format!("Recorded anew: the cassette {path} ended with an error of the API: {trouble}"),
            false => format!("Played back: the cassette {path} ends with an error of the API: {trouble}"),
        })
    }
}

/// What is to be done with a cassette.
enum Plan {
    /// Record; what went wrong the last time, where that is why.
    Record(Option<String>),
    Replay(Box<Cassette>),
}

/// Puts the cassette into a server, if one is asked for; what is recorded goes into the file itself or into another.
pub fn insert(
    options: &RunOptions,
    server: &Server,
    into: Option<&Path>,
    request: &ResolvedRequest,
    environment: &Environment,
    home: &MockHome,
) -> Result<Option<Inserted>, RunError> {
    let Some(path) = options.cassette.as_deref() else { return Ok(None) };
    let dir = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = dir.canonicalize().unwrap_or(dir);
    let normal = common_form(request, environment, &dir, home);
    match plan(options, path)? {
        Plan::Record(trouble) => {
            can_be_written(path).map_err(refused)?;
            let upstream =
                upstream(environment, &dir).map_err(|error| anew(error, path, trouble.as_deref()))?;
            let recorder = Recorder::open(into.unwrap_or(path), upstream, normal).map_err(refused)?;
            let complaints = recorder.complaints();
            server.record(recorder);
            Ok(Some(Inserted { complaints, is_recording: true, trouble }))
        }
        Plan::Replay(cassette) => {
            let trouble = cassette.trouble();
            let player = Player::of(*cassette, path, normal);
            let complaints = player.complaints();
            server.replay(player);
            Ok(Some(Inserted { complaints, is_recording: false, trouble }))
        }
    }
}

fn mode(options: &RunOptions) -> CassetteMode {
    options.cassette_mode.unwrap_or_default()
}

fn plan(options: &RunOptions, path: &Path) -> Result<Plan, RunError> {
    let mode = mode(options);
    if mode == CassetteMode::Record || !path.exists() && mode == CassetteMode::Auto {
        return Ok(Plan::Record(None));
    }
    let cassette = Box::new(Cassette::read(path).map_err(refused)?);
    Ok(match cassette.trouble() {
        Some(trouble) if mode == CassetteMode::Auto => Plan::Record(Some(trouble)),
        _ => Plan::Replay(cassette),
    })
}

pub fn is_recording(options: &RunOptions) -> Result<bool, RunError> {
    let plan = options.cassette.as_deref().map(|path| plan(options, path)).transpose()?;
    Ok(matches!(plan, Some(Plan::Record(_))))
}

/// The same options, for another process.
pub fn pass_on(options: &RunOptions, command: &mut Command) {
    if let Some(path) = &options.cassette {
        command.arg("--cassette").arg(path).args(["--cassette-mode", mode(options).name()]);
    }
}

/// A refusal, with why it is recorded at all.
fn anew(error: RunError, path: &Path, trouble: Option<&str>) -> RunError {
    match (error, trouble) {
        (RunError::Usage { message, hint, .. }, Some(trouble)) => RunError::usage(
            format!(
                "{} ends with an error of the API ({trouble}); to record it anew, {message}",
                path.display()
            ),
            format!("{hint} `cassette_mode` replay plays the error back."),
        ),
        (error, _) => error,
    }
}

/// A run's cassette, with the home that it has meanwhile.
pub struct OfRun {
    inserted: Inserted,
    mode: CassetteMode,
    path: PathBuf,
    server: Server,
    home: MockHome,
}

impl OfRun {
    /// Takes the cassette out when the run is over, and tells what was not on it, or did not get onto it. A run that was stopped is
    /// not kept: half of it would be played back from then on. One that ended with an error of the API is kept where somebody
    /// asked for a recording whatever comes.
    pub fn take_out(self, outcome: Option<&Outcome>) -> Vec<String> {
        drop(self.server);
        // The failure says it already.
        let told =
            outcome.and_then(|outcome| outcome.failure.as_ref()).map_or("", |failure| &failure.message);
        let mut complaints = self.inserted.complaints.all();
        complaints.retain(|complaint| !told.contains(complaint.as_str()));
        complaints.dedup();
        if self.inserted.is_recording {
            complaints.extend(kept(&recorded_in(&self.home), &self.path, self.mode, outcome));
        }
        complaints
    }
}

/// Keeps what was recorded, and tells why not.
fn kept(recorded: &Path, path: &Path, mode: CassetteMode, outcome: Option<&Outcome>) -> Option<String> {
    let at = path.display();
    let stopped =
        |outcome: &Outcome| matches!(outcome.status, Status::Cancelled | Status::Timeout | Status::Stalled);
    if outcome.is_some_and(stopped) {
        return Some(format!("the run was stopped, and the cassette {at} is not written"));
    }
    let failed = |error: &dyn std::fmt::Display| format!("the cassette {at} could not be written: {error}");
    let bytes = match files::read_if_there(recorded) {
        Ok(bytes) => bytes?,
        Err(error) => return Some(failed(&error)),
    };
    let trouble = Cassette::read(recorded).ok().and_then(|cassette| cassette.trouble());
    match (trouble, mode) {
        (Some(trouble), CassetteMode::Auto) => Some(format!(
            "the API failed ({trouble}), and the cassette {at} is not written; `cassette_mode` record keeps errors too"
        )),
        // It may have become something else meanwhile.
        (trouble, _) => match can_be_written(path)
            .map_err(|error| error.to_string())
            .and_then(|()| files::replace_private(path, &bytes).map_err(|error| error.to_string()))
        {
            Err(error) => Some(failed(&error)),
            Ok(()) => {
                trouble.map(|trouble| format!("the cassette {at} ends with an error of the API: {trouble}"))
            }
        },
    }
}

/// Refuses a run whose folder has a say in how to sign in, and sends it elsewhere.
fn goes_by_way_of_us(
    request: &ResolvedRequest,
    environment: &Environment,
    home: &MockHome,
) -> Result<(), RunError> {
    let mut environment = environment.clone();
    if request.trust == Trust::WithSettings {
        environment.set(env::GEMINI_CLI_TRUST_WORKSPACE, "true");
    }
    let dir = request.dir.as_deref().unwrap_or(Path::new("."));
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    match facts::authentication(home.path(), &dir, &environment).method {
        Some(AuthMethod::GeminiApiKey) => Ok(()),
        method => Err(RunError::usage(
            format!(
                "the settings of this folder sign in by {}, and a cassette needs gemini-api-key",
                method.map_or_else(|| "nothing that is known".to_owned(), |method| method.to_string())
            ),
            "Run it with `trust`, which leaves the folder's settings alone.",
        )),
    }
}

/// While the run goes on the cassette is not in the folder: it would be one of the files that changed there.
fn recorded_in(home: &MockHome) -> PathBuf {
    home.path().join("cassette.json")
}

/// Puts the cassette of a run in, and points the run at it.
pub fn prepare(
    options: &RunOptions,
    request: &mut ResolvedRequest,
    environment: &mut Environment,
) -> Result<Option<OfRun>, RunError> {
    let Some(path) = &options.cassette else { return Ok(None) };
    let elsewhere = request.env.iter().any(|(name, _)| name == env::GOOGLE_GEMINI_BASE_URL);
    if elsewhere {
        return Err(RunError::usage(
            format!("`env` {} would lead past the cassette", env::GOOGLE_GEMINI_BASE_URL),
            "Set it in the environment: what is recorded then comes from there.",
        ));
    }
    let failed = |error: std::io::Error| {
        RunError::usage(
            format!("the cassette cannot be put in: {error}"),
            "It needs a free port on 127.0.0.1 and a directory to write to.",
        )
    };
    let home = MockHome::new(environment).map_err(failed)?;
    let server = Server::start().map_err(failed)?;
    let into = recorded_in(&home);
    let inserted = insert(options, &server, Some(&into), request, environment, &home)?;
    let Some(inserted) = inserted else { return Ok(None) };
    if !inserted.is_recording {
        environment.set(env::GEMINI_API_KEY, "replay");
        request.notices.push(format!("Played back: the answers come from the cassette {}", path.display()));
    }
    request.notices.extend(inserted.notice(path));
    environment.set(env::GEMINI_CLI_HOME, home.path());
    environment.set(env::GOOGLE_GEMINI_BASE_URL, server.url());
    for name in IN_THE_WAY {
        environment.remove(name);
    }
    goes_by_way_of_us(request, environment, &home)?;
    Ok(Some(OfRun { inserted, mode: mode(options), path: path.clone(), server, home }))
}

/// What differs from run to run without a meaning.
fn common_form(request: &ResolvedRequest, environment: &Environment, dir: &Path, home: &MockHome) -> Normal {
    let secrets = Known { of_run: Arc::new(Secrets::of(request, environment, dir)), keys: None };
    let mut normal = Normal::new().place("dir", dir).place("gemini-home", home.path());
    if let Some(dirs) = Dirs::of(environment) {
        normal = normal.place("state", &dirs.state);
    }
    if let Some(home) = environment.home() {
        normal = normal.place("home", &home);
    }
    let temporary = environment.filled("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    normal.place("tmp", &temporary).secrecy(secrets)
}

/// What is secret: all that a recording would take out, and the keys of a request, which may be somebody else's.
struct Known {
    of_run: Arc<Secrets>,
    keys: Option<Secrets>,
}

impl Secrecy for Known {
    fn hide(&self, text: &str) -> String {
        let text = self.of_run.hide_as(text, &secret);
        match &self.keys {
            Some(keys) => keys.hide_as(&text, &secret),
            None => text,
        }
    }

    fn with_keys(&self, keys: &[String]) -> Arc<dyn Secrecy> {
        Arc::new(Known { of_run: Arc::clone(&self.of_run), keys: Some(Secrets::of_keys(keys)) })
    }
}

/// The real API, if what signs in to it can be sent by way of us.
fn upstream(environment: &Environment, dir: &Path) -> Result<Upstream, RunError> {
    let given = environment.filled(env::GOOGLE_GEMINI_BASE_URL).map(|url| url.to_string_lossy().into_owned());
    let mut without = environment.clone();
    without.remove(env::GOOGLE_GEMINI_BASE_URL);
    let method =
        environment.gemini_home().and_then(|home| facts::authentication(&home, dir, &without).method);
    if let Some(method) =
        method.filter(|method| !matches!(method, AuthMethod::GeminiApiKey | AuthMethod::Gateway))
    {
        return Err(RunError::usage(
            format!(
                "a sign-in by {method} cannot be recorded: its requests go to an address that cannot be set"
            ),
            "Select gemini-api-key in Gemini CLI's settings, and give the key in GEMINI_API_KEY.",
        ));
    }
    if environment.filled(env::GEMINI_API_KEY).is_none() {
        return Err(RunError::usage(
            "recording needs a key, and GEMINI_API_KEY is not set",
            "Set it; the key is not written into the cassette. Playing back needs none.",
        ));
    }
    let further = environment.filled(env::NODE_EXTRA_CA_CERTS).map(PathBuf::from);
    Upstream::new(given.as_deref().unwrap_or(API), further.as_deref()).map_err(refused)
}

/// Whether only the file is missing.
fn has_place(path: &Path) -> bool {
    path.parent().is_none_or(|dir| dir.as_os_str().is_empty() || dir.is_dir())
}

fn refused(error: CassetteError) -> RunError {
    let hint = match &error {
        CassetteError::Io(path, error) if error.kind() == NotFound && has_place(path) => {
            "Record it first: `cassette_mode` record."
        }
        CassetteError::TooLarge(..) => "Record shorter conversations, each on a cassette of its own.",
        CassetteError::Io(..) => "Give a file that can be read and written to.",
        CassetteError::NotOne(..) => {
            "Give a file that `cassette` has recorded, or the name of a new one: nothing else is replaced."
        }
        CassetteError::Upstream(_) => "SSL_CERT_FILE and NODE_EXTRA_CA_CERTS name certificates to trust.",
    };
    let message = match &error {
        CassetteError::Upstream(_) => error.to_string(),
        _ => format!("{}: {error}", Setting::Cassette),
    };
    RunError::usage(message, hint)
}
