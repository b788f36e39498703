//! Finds the session that a run continues in the user's store, and brings it into the overlay.
//!
//! Gemini CLI 0.61.0 writes a stub `session-<this minute>-<id8>.jsonl` when it resumes. In the minute in which the
//! session was created that is the session's own file, and the stub's checkpoint wipes the conversation out. So the copy
//! gets the name of another minute.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fingerprint::Fingerprint;
use super::plan::{CopiedFile, CopiedSession};
use super::scan::{SessionFacts, scan, scan_header};
use alhena_sys::files;

/// Which session to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The one that was started last, as the CLI's own `latest`.
    Latest,
    /// The one with exactly this id; or, as for the CLI, a number that counts from the one that was started first; or the
    /// only one whose id begins like this.
    Id(String),
}

/// What the file names of sessions start with.
pub(super) const PREFIX: &str = "session-";
/// The minute in the name of a copy: none in which the CLI can run.
const OTHER_MINUTE: &str = "2001-01-01T00-00";

/// A session in the user's store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) path: PathBuf,
    pub(super) facts: SessionFacts,
}

/// Whether a file name is that of a session.
pub(super) fn is_session_name(name: &str) -> bool {
    name.starts_with(PREFIX) && (name.ends_with(".jsonl") || name.ends_with(".json"))
}

/// Finds the session among several stores, of which the first that has it counts.
pub(super) fn find(stores: &[PathBuf], wanted: &Resume) -> io::Result<Option<Stored>> {
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
pub(super) fn ids_beginning(stores: &[PathBuf], start: &str) -> io::Result<Vec<String>> {
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
pub(super) fn find_id(chats: &Path, id: &str) -> io::Result<Option<Stored>> {
    let (likely, others): (Vec<String>, Vec<String>) = files::names_in(chats)?
        .into_iter()
        .filter(|name| is_session_name(name))
        .partition(|name| may_hold(name, id));
    let found = best_of(chats, &likely, id);
    // The CLI goes by what a file says, not by its name; somebody may have given it another one.
    let holds = |name: &&String| {
        let header = scan_header(&chats.join(name)).unwrap_or_default();
        header.is_some_and(|facts| facts.id == id)
    };
    Ok(found.or_else(|| best_of(chats, others.iter().filter(holds), id)))
}

fn best_of<'a>(chats: &Path, names: impl IntoIterator<Item = &'a String>, id: &str) -> Option<Stored> {
    let mut best: Option<Stored> = None;
    for name in names {
        let path = chats.join(name);
        let Ok(Some(facts)) = scan(&path) else { continue };
        let newer = best.as_ref().is_none_or(|best| facts.last_updated >= best.facts.last_updated);
        if facts.id == id && facts.has_conversation && newer {
            best = Some(Stored { path, facts });
        }
    }
    best
}

/// The name carries the first eight characters of the id, after those the CLI does not allow in file names are replaced.
fn may_hold(name: &str, id: &str) -> bool {
    let short: String = id.chars().take(8).map(|c| if is_name_character(c) { c } else { '_' }).collect();
    let stem = name.trim_end_matches(".jsonl").trim_end_matches(".json");
    stem.ends_with(&format!("-{short}"))
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-' || character == '_'
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
        let header = scan_header(&path).unwrap_or_default().filter(|facts| !facts.start.is_empty());
        let facts = header.or_else(|| scan(&path).unwrap_or_default());
        sessions.extend(facts.filter(|facts| !facts.is_subagent).map(|facts| (facts.start, facts.id)));
    }
    sessions.sort();
    let mut seen = std::collections::HashSet::new();
    Ok(sessions.into_iter().map(|(_, id)| id).filter(|id| seen.insert(id.clone())).collect())
}

/// Copies the session into the overlay's store, and what belongs to it into the overlay's project directory.
pub(super) fn copy_in(
    stored: &Stored,
    user_project: &Path,
    project: &Path,
    copied: &mut Vec<CopiedFile>,
) -> io::Result<CopiedSession> {
    let name = stored.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = with_minute(name, OTHER_MINUTE).unwrap_or_else(|| name.to_owned());
    let target = project.join("chats").join(&name);
    fs::create_dir_all(project.join("chats"))?;
    fs::copy(&stored.path, &target)?;
    let fingerprint = Fingerprint::of(&target)?.ok_or(io::ErrorKind::NotFound)?;
    let session =
        CopiedSession { id: stored.facts.id.clone(), original: stored.path.clone(), name, fingerprint };

    if is_plain_name(&session.id) {
        copy_dir_in(user_project, project, Path::new(&session.id), copied)?;
        let outputs = Path::new("tool-outputs").join(format!("{PREFIX}{}", session.id));
        link_files_in(&user_project.join(&outputs), &project.join(&outputs))?;
    }
    Ok(session)
}

/// An id that is one component of a path, and none of the names that mean something in a project's directory.
pub(super) fn is_plain_name(id: &str) -> bool {
    const RESERVED: [&str; 6] = ["chats", "logs", "tool-outputs", "checkpoints", "memory", "bin"];
    !id.is_empty()
        && id.chars().all(is_name_character)
        && !RESERVED.contains(&id.to_ascii_lowercase().as_str())
}

/// Plans, task lists and memories are changed in place by the CLI, so they are copies.
pub(super) fn copy_dir_in(
    from: &Path,
    to: &Path,
    relative: &Path,
    copied: &mut Vec<CopiedFile>,
) -> io::Result<()> {
    for name in files::names_in(&from.join(relative))? {
        let path = relative.join(name);
        let source = from.join(&path);
        if files::is_plain_dir(&source) {
            copy_dir_in(from, to, &path, copied)?;
        } else if files::is_plain_file(&source) {
            fs::create_dir_all(to.join(relative))?;
            fs::copy(&source, to.join(&path))?;
            let fingerprint = Fingerprint::of(&to.join(&path))?.ok_or(io::ErrorKind::NotFound)?;
            copied.push(CopiedFile { path, fingerprint });
        }
    }
    Ok(())
}

/// The long outputs of earlier tools are never written again, so links do.
fn link_files_in(from: &Path, to: &Path) -> io::Result<()> {
    let names = files::names_in(from).unwrap_or_default();
    if !names.is_empty() {
        fs::create_dir_all(to)?;
    }
    for name in names {
        std::os::unix::fs::symlink(from.join(&name), to.join(&name))?;
    }
    Ok(())
}

/// The name with another minute in it: `session-<minute>-<id8>.jsonl`. None when it has another form.
pub(super) fn with_minute(name: &str, minute: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let (old, tail) = rest.split_at_checked(minute_length())?;
    let is_minute = old.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'T'));
    (is_minute && tail.starts_with('-')).then(|| format!("{PREFIX}{minute}{tail}"))
}

/// The minute in a session's file name.
pub(super) fn minute_of(name: &str) -> Option<&str> {
    let (minute, _) = name.strip_prefix(PREFIX)?.split_at_checked(minute_length())?;
    with_minute(name, minute).is_some().then_some(minute)
}

const fn minute_length() -> usize {
    OTHER_MINUTE.len()
}

#[cfg(test)]
mod tests;
