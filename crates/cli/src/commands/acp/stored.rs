//! The sessions that were there before: their list, and what was said in one.

use std::path::Path;

use alhena_agent::env::Environment;
use alhena_hosts::acp::Refusal;
use alhena_hosts::acp::say::Listed;
use alhena_model::{Event, Include, Timestamp};
use alhena_session::{FindError, Scope, Session, Store, Transcript, Which};
use alhena_wire::rpc::Fault;

use crate::commands::sessions::store_of;

/// So many characters of a title are told.
const TITLE: usize = 200;

/// The sessions of a folder, or all of them, the newest first.
pub fn list(environment: &Environment, dir: Option<&Path>) -> Result<Vec<Listed>, Refusal> {
    let scope = dir.map_or(Scope::All, folder);
    let sessions = store(environment)?.list(&scope).map_err(|error| broken(&error))?;
    Ok(sessions.iter().filter_map(listed).collect())
}

/// One that nobody can go on with is not told: an empty one, or one whose folder is not known.
fn listed(session: &Session) -> Option<Listed> {
    let dir = session.file.project.root.as_ref().filter(|_| session.survey.has_conversation())?;
    Some(Listed {
        id: session.id.clone(),
        dir: dir.to_string_lossy().into_owned(),
        title: session.survey.title.as_deref().map(title),
        updated: Timestamp::from_millis(session.updated()).to_string(),
    })
}

/// What a list says a session is about: the beginning of its first prompt.
pub fn title(prompt: &str) -> String {
    crate::style::one_line(prompt, TITLE)
}

/// What was said in a session of this folder.
pub fn history(environment: &Environment, dir: &Path, id: &str) -> Result<Vec<Event>, Refusal> {
    let found = store(environment)?.find(&folder(dir), &Which::Id(id.to_owned()));
    let session = match found {
        Ok(session) if session.id == id => session,
        Ok(_) | Err(FindError::Unknown(_) | FindError::Ambiguous(..)) => return Err(Refusal::no_session(id)),
        Err(error) => return Err(broken(&error)),
    };
    let transcript = Transcript::read(&session.file.path).map_err(|error| broken(&error))?;
    Ok(transcript.conversation(Include::Said).events())
}

fn store(environment: &Environment) -> Result<Store, Refusal> {
    store_of(environment).map_err(|_| {
        let hint = "Set HOME or GEMINI_CLI_HOME.";
        Refusal::of(Fault::Internal, "there is no home directory, so there are no sessions", hint)
    })
}

fn folder(dir: &Path) -> Scope {
    Scope::Folder(dir.canonicalize().unwrap_or_else(|_| dir.to_owned()))
}

fn broken(error: &dyn std::fmt::Display) -> Refusal {
    let hint = "`alhena doctor` checks the store.";
    Refusal::of(Fault::Internal, format!("the sessions could not be read: {error}"), hint)
}
