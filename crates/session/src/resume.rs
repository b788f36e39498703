//! Which session somebody means who wants to go on with one, as the CLI itself would choose (0.61.0).

use std::io;
use std::path::{Path, PathBuf};

pub use alhena_model::options::Resume;
use alhena_sys::files;

use crate::names::{is_session_name, may_hold};
use crate::survey::{Survey, survey_at, survey_header};

/// A session in the user's store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// What it says of itself.
    pub survey: Survey,
}

/// Finds the session among several stores, of which the first that has it counts.
pub fn find(stores: &[PathBuf], wanted: &Resume) -> io::Result<Option<Stored>> {
    for store in stores {
        let found = match wanted {
            Resume::Id(id) => match find_id(store, id)? {
                None => find_number(store, id)?,
                found => found,
            },
            Resume::Latest => find_latest(store)?,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The ids that begin like this, for somebody who has only the beginning: lists show eight characters.
pub fn ids_beginning(stores: &[PathBuf], start: &str) -> io::Result<Vec<String>> {
    let mut ids = Vec::new();
    for store in stores.iter().filter(|_| !start.is_empty()) {
        for id in ids_by_start(store)?.into_iter().filter(|id| id.starts_with(start)) {
            if !ids.contains(&id) && find_id(store, &id)?.is_some() {
                ids.push(id);
            }
        }
    }
    Ok(ids)
}

/// Several files can carry one id: the stub of an earlier resume, or two versions that were kept. The one with a
/// conversation counts, and of several the one that was written last.
pub fn find_id(chats: &Path, id: &str) -> io::Result<Option<Stored>> {
    let (likely, others): (Vec<String>, Vec<String>) = files::names_in(chats)?
        .into_iter()
        .filter(|name| is_session_name(name))
        .partition(|name| may_hold(name, id));
    let found = best_of(chats, &likely, id);
    // The CLI goes by what a file says, not by its name; somebody may have given it another one.
    let holds = |name: &&String| {
        let header = survey_header(&chats.join(name)).unwrap_or_default();
        header.is_some_and(|header| header.id.as_deref() == Some(id))
    };
    Ok(found.or_else(|| best_of(chats, others.iter().filter(holds), id)))
}

fn best_of<'a>(chats: &Path, names: impl IntoIterator<Item = &'a String>, id: &str) -> Option<Stored> {
    let mut best: Option<Stored> = None;
    for name in names {
        let path = chats.join(name);
        let Ok(survey) = survey_at(&path) else { continue };
        let newer = best.as_ref().is_none_or(|best| survey.updated >= best.survey.updated);
        if survey.header && survey.id.as_deref() == Some(id) && survey.has_conversation() && newer {
            best = Some(Stored { path, id: id.to_owned(), survey });
        }
    }
    best
}

/// By the time of the start, not of the last use. The headers tell the order, so only the newest is read as a whole.
fn find_latest(chats: &Path) -> io::Result<Option<Stored>> {
    for id in ids_by_start(chats)?.into_iter().rev() {
        if let Some(found) = find_id(chats, &id)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn find_number(chats: &Path, text: &str) -> io::Result<Option<Stored>> {
    let number = text.parse::<u32>().ok().filter(|number| *number > 0 && number.to_string() == text);
    let Some(mut left) = number else { return Ok(None) };
    for id in ids_by_start(chats)? {
        if let Some(found) = find_id(chats, &id)? {
            left -= 1;
            if left == 0 {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// The ids of all sessions, each once, the one that was started first at the front.
fn ids_by_start(chats: &Path) -> io::Result<Vec<String>> {
    let mut sessions = Vec::new();
    for name in files::names_in(chats)? {
        let path = chats.join(&name);
        if !is_session_name(&name) {
            continue;
        }
        let header = survey_header(&path).unwrap_or_default().filter(|header| header.started.is_some());
        let survey = header.or_else(|| survey_at(&path).ok().filter(|survey| survey.header));
        sessions.extend(survey.filter(|survey| !survey.subagent).and_then(|it| Some((it.started, it.id?))));
    }
    sessions.sort();
    let mut seen = std::collections::HashSet::new();
    Ok(sessions.into_iter().map(|(_, id)| id).filter(|id| seen.insert(id.clone())).collect())
}

#[cfg(test)]
mod tests;
