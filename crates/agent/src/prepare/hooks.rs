//! Who decides for the CLI: where it is told of them, and why it cannot be.

use std::path::{Path, PathBuf};

use alhena_wire::release::Feature;
use serde_json::{Map, Value};

use super::RunError;
use crate::env::Environment;
use crate::facts;
use crate::find::Gemini;
use crate::hooks::{self, Deciders, Occasion, Server};
use crate::request::{ResolvedRequest, Sandbox};
use crate::run_dir::RunDir;
use crate::settings::read_settings;
use crate::supervise::custody::keeper_program;

/// Whether the CLI would ask. What it would let through unasked is refused here.
pub(super) fn check(
    request: &ResolvedRequest,
    gemini: &Gemini,
    others: &[PathBuf],
    who: &str,
) -> Result<(), RunError> {
    if !gemini.version.has(Feature::Hooks) {
        return Err(RunError::usage(
            match who {
                "hooks" => format!("Gemini CLI {} has no hooks", gemini.version),
                who => format!("Gemini CLI {} has no hooks, by which {who} is kept", gemini.version),
            },
            "`alhena install` fetches a release that has them.",
        ));
    }
    if matches!(request.sandbox, Sandbox::On | Sandbox::Engine(_)) {
        let message = format!("{who} cannot be kept in a sandbox: hooks do not reach out of it");
        return Err(RunError::usage(message, "Leave out one of the two."));
    }
    let off = others.iter().find(|path| {
        let read = read_settings(path).ok();
        read.as_ref().and_then(Value::as_object).is_some_and(hooks::switched_off)
    });
    off.map_or(Ok(()), |path| Err(switched_off(&path.display().to_string())))
}

/// Begins to listen, and puts our hooks beside the user's own into the settings of the run.
pub(super) fn begin(
    deciders: Deciders,
    occasions: &[Occasion],
    run_dir: &RunDir,
    user: &Value,
    wanted: &mut Map<String, Value>,
    environment: &mut Environment,
) -> Result<Server, RunError> {
    let program = keeper_program(environment).filter(|path| fits_into_quotes(path)).ok_or_else(|| {
        RunError::usage(
            "there is no alhena program that could carry the CLI's questions",
            "Put alhena on PATH, or name it in ALHENA_KEEPER.",
        )
    })?;
    let keys = ["hooks", "hooksConfig"].into_iter();
    let mut settings: Map<String, Value> =
        keys.filter_map(|key| Some((key.to_owned(), user.get(key)?.clone()))).collect();
    if !hooks::add_to(&mut settings, occasions) {
        return Err(switched_off("your settings"));
    }
    wanted.extend(settings.remove_entry("hooks"));
    let asked_at = |occasion: &Occasion| match occasion {
        Occasion::Decision(moment) => Some(*moment),
        Occasion::ModelTool(_) | Occasion::Submission(_) | Occasion::Answer => None,
    };
    let moments = occasions.iter().filter_map(asked_at).collect();
    let server = Server::start(run_dir.temporary(), run_dir.path(), deciders, moments).map_err(|error| {
        RunError::usage(format!("hooks cannot be listened for: {error}"), "").caused_by(error)
    })?;
    environment.set(hooks::PROGRAM, program);
    environment.set(hooks::SOCKET, server.socket());
    environment.set(hooks::FAILED, server.failed());
    Ok(server)
}

/// The settings files beside the user's that the CLI reads.
pub(super) fn other_settings(takes_folder: bool, dir: &Path, environment: &Environment) -> Vec<PathBuf> {
    let folder = takes_folder.then(|| dir.join(".gemini/settings.json"));
    folder.into_iter().chain([facts::system_settings(environment)]).collect()
}

fn switched_off(by: &str) -> RunError {
    RunError::usage(
        format!("hooks are switched off by {by}"),
        "Take `enabled: false`, or `alhena` in `disabled`, out of hooksConfig there.",
    )
}

/// The CLI's shell reads the path in double quotes.
fn fits_into_quotes(path: &Path) -> bool {
    path.to_str().is_some_and(|path| !path.contains(['"', '$', '`', '\\', '\n']))
}
