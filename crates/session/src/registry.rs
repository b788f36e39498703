//! The project's place in the user's Gemini home: its directory name, registered as the CLI itself would.
//!
//! Since 0.29 the directory of a project below `tmp` and `history` is a slug, given out by `projects.json`; a marker
//! `.project_root` in the directory is authoritative when the two disagree. Before that it was the SHA-256 of the path.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::lockfile::{LockDir, NotLocked};
use crate::project::project_hash;
use alhena_sys::files::{self, Existing, read_if_there, replace};

/// The registry's file in `.gemini`.
pub const REGISTRY: &str = "projects.json";
/// Says in a project's directory whose it is.
pub const MARKER: &str = ".project_root";
/// The directories that hold one directory per project.
pub const BASES: [&str; 2] = ["tmp", "history"];

/// How long another holder of the registry's lock is waited for: longer than a lock left behind takes to go stale.
const PATIENCE: Duration = Duration::from_secs(12);
/// How many projects of one name are told apart.
const MOST_NUMBERS: u32 = 10_000;

/// A project's directory name, and whether the user's registry knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name.
    pub slug: String,
    /// Whether the user's registry knows it.
    pub registered: bool,
    /// What people should know.
    pub warnings: Vec<String>,
}

/// Finds or makes the project's name in a `.gemini` directory, which is made if it is missing.
///
/// Where the registry cannot be written, the name is the one that the CLI would choose, and `registered` is false.
pub fn register(gemini_dir: &Path, project: &str) -> Registration {
    if let Some(slug) = registered_slug(gemini_dir, project) {
        return Registration { slug, registered: true, warnings: Vec::new() };
    }
    match register_locked(gemini_dir, project) {
        Ok((slug, warnings)) => Registration { slug, registered: true, warnings },
        Err(error) => {
            let (registry, _) = load(gemini_dir).unwrap_or_default();
            let slug = find_by_marker(gemini_dir, project)
                .unwrap_or_else(|| free_slug(gemini_dir, project, &projects_of(&registry)));
            let file = gemini_dir.join(REGISTRY);
            let why = match error {
                NotLocked::Held => format!("another program holds {}.lock", file.display()),
                NotLocked::Io(error) => format!("{}: {error}", file.display()),
            };
            let warning = format!("The project could not be registered in the Gemini home ({why})");
            Registration { slug, registered: false, warnings: vec![warning] }
        }
    }
}

/// What the registry says, if nothing needs to be written: the usual case, without a lock.
pub fn registered_slug(gemini_dir: &Path, project: &str) -> Option<String> {
    let (registry, _) = load(gemini_dir).ok()?;
    let slug = projects_of(&registry).get(project)?.as_str()?.to_owned();
    let all_marked =
        BASES.iter().all(|base| owner(&gemini_dir.join(base).join(&slug)) == Owner::Is(project.to_owned()));
    all_marked.then_some(slug)
}

fn register_locked(gemini_dir: &Path, project: &str) -> Result<(String, Vec<String>), NotLocked> {
    fs::create_dir_all(gemini_dir).map_err(NotLocked::Io)?;
    let file = gemini_dir.join(REGISTRY);
    create_empty(&file).map_err(NotLocked::Io)?;
    let _lock = LockDir::take(&file, PATIENCE)?;
    let (mut registry, valid) = load(gemini_dir).map_err(NotLocked::Io)?;
    let slug = settle(gemini_dir, project, &projects_of(&registry)).map_err(NotLocked::Io)?;
    migrate(gemini_dir, project, &slug);
    if !valid {
        // The CLI would start again from nothing. The markers suffice, and the user may want to look at the file.
        return Ok((slug, vec![format!("{} is damaged; it was left as it is", file.display())]));
    }
    let projects = registry.entry("projects").or_insert_with(|| Value::Object(Map::new()));
    if let Some(projects) = projects.as_object_mut()
        && projects.get(project).and_then(Value::as_str) != Some(&slug)
    {
        projects.insert(project.to_owned(), Value::String(slug.clone()));
        let text = serde_json::to_string_pretty(&registry).map_err(|error| NotLocked::Io(error.into()))?;
        replace(&file, text.as_bytes(), 0o644).map_err(NotLocked::Io)?;
    }
    Ok((slug, Vec::new()))
}

/// The CLI makes an empty registry before it locks, and only if there is none; a later one would wipe out ours.
fn create_empty(file: &Path) -> io::Result<()> {
    match files::create(file, b"{\n  \"projects\": {}\n}", 0o644) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The registry, and whether the CLI would accept it; an unacceptable one counts as empty.
fn load(gemini_dir: &Path) -> io::Result<(Map<String, Value>, bool)> {
    let Some(bytes) = read_if_there(&gemini_dir.join(REGISTRY))? else { return Ok((Map::new(), true)) };
    // What a full disk left of it holds nothing that could be lost; the CLI (0.61.0) writes a new one too.
    if bytes.trim_ascii().is_empty() {
        return Ok((Map::new(), true));
    }
    let Ok(Value::Object(registry)) = serde_json::from_slice(&bytes) else { return Ok((Map::new(), false)) };
    let slugs = registry.get("projects").and_then(Value::as_object);
    let valid = slugs.is_some_and(|slugs| slugs.values().all(|slug| slug.as_str().is_some_and(is_slug)));
    Ok(if valid { (registry, true) } else { (Map::new(), false) })
}

fn projects_of(registry: &Map<String, Value>) -> Map<String, Value> {
    registry.get("projects").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The folders that the registry knows, with their names. A damaged one is as good as none, for the CLI too.
pub(crate) fn slugs(gemini_dir: &Path) -> Vec<(String, String)> {
    let (registry, _) = load(gemini_dir).unwrap_or_default();
    let known = projects_of(&registry).into_iter();
    known.filter_map(|(root, slug)| Some((root, slug.as_str()?.to_owned()))).collect()
}

fn is_slug(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Chooses the slug as the CLI does: the registered one unless its marker names another project, else the one whose
/// marker names this project, else a free one; and marks it.
fn settle(gemini_dir: &Path, project: &str, known: &Map<String, Value>) -> io::Result<String> {
    let mut known = known.clone();
    if let Some(slug) = known.get(project).and_then(Value::as_str).map(str::to_owned) {
        if is_unclaimed_by_others(gemini_dir, &slug, project) {
            mark(gemini_dir, &slug, project)?;
            return Ok(slug);
        }
        known.remove(project);
    }
    if let Some(slug) = find_by_marker(gemini_dir, project) {
        mark(gemini_dir, &slug, project)?;
        return Ok(slug);
    }
    let slug = free_slug(gemini_dir, project, &known);
    mark(gemini_dir, &slug, project)?;
    Ok(slug)
}

fn free_slug(gemini_dir: &Path, project: &str, known: &Map<String, Value>) -> String {
    let stem = slugify(project.rsplit('/').next().unwrap_or_default());
    let taken: HashSet<&str> = known.values().filter_map(Value::as_str).collect();
    let numbered = (1..MOST_NUMBERS).map(|number| format!("{stem}-{number}"));
    let mut candidates = std::iter::once(stem.clone()).chain(numbered);
    let free = candidates
        .find(|slug| !taken.contains(slug.as_str()) && is_unclaimed_by_others(gemini_dir, slug, project));
    // Nobody has that many projects of one name: the directories cannot be read. Then this one is as good as any.
    free.unwrap_or_else(|| project_hash(Path::new(project)))
}

/// The CLI's rule: lower case, everything else a dash, no two in a row, none at the ends, never empty.
fn slugify(name: &str) -> String {
    let mut slug = String::new();
    for character in name.to_lowercase().chars() {
        if character.is_ascii_lowercase() || character.is_ascii_digit() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "project".to_owned() } else { slug.to_owned() }
}

#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Is(String),
    Unreadable,
}

fn owner(slug_dir: &Path) -> Owner {
    match read_if_there(&slug_dir.join(MARKER)) {
        Ok(None) => Owner::Nobody,
        Ok(Some(bytes)) => {
            String::from_utf8(bytes).map_or(Owner::Unreadable, |text| Owner::Is(text.trim().to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Owner::Nobody,
        Err(_) => Owner::Unreadable,
    }
}

/// The project that a directory below `tmp` or `history` is marked for.
pub fn owner_of(slug_dir: &Path) -> Option<String> {
    match owner(slug_dir) {
        Owner::Is(project) => Some(project).filter(|project| !project.is_empty()),
        Owner::Nobody | Owner::Unreadable => None,
    }
}

fn is_unclaimed_by_others(gemini_dir: &Path, slug: &str, project: &str) -> bool {
    BASES.iter().all(|base| match owner(&gemini_dir.join(base).join(slug)) {
        Owner::Nobody => true,
        Owner::Is(owner) => owner == project,
        Owner::Unreadable => false,
    })
}

fn find_by_marker(gemini_dir: &Path, project: &str) -> Option<String> {
    BASES.iter().find_map(|base| {
        let base = gemini_dir.join(base);
        let names = files::names_in(&base).unwrap_or_default();
        names.into_iter().find(|name| owner(&base.join(name)) == Owner::Is(project.to_owned()))
    })
}

/// Puts the markers there; `AlreadyExists` when the slug turns out to be another project's.
pub fn mark(gemini_dir: &Path, slug: &str, project: &str) -> io::Result<()> {
    for base in BASES {
        let dir = gemini_dir.join(base).join(slug);
        fs::create_dir_all(&dir)?;
        match files::create(&dir.join(MARKER), project.as_bytes(), 0o644) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if owner(&dir) != Owner::Is(project.to_owned()) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The CLI copies a project's directory of the time before 0.29 when the new one holds nothing but the marker. It would
/// not do so any more once a session is published there, and the user's old sessions would be out of sight.
fn migrate(gemini_dir: &Path, project: &str, slug: &str) {
    for base in BASES {
        let base = gemini_dir.join(base);
        let (old, new) = (base.join(project_hash(Path::new(project))), base.join(slug));
        let untouched = files::names_in(&new).is_ok_and(|names| names.iter().all(|name| name == MARKER));
        if old.is_dir() && untouched {
            // As in the CLI, a failure here is not the run's failure.
            if let Err(error) = copy_tree(&old, &new) {
                tracing::warn!(%error, from = %old.display(), to = %new.display(), "old project directory not copied");
            }
        }
    }
}

/// Copies what is missing in `to`; links stay links.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if target.symlink_metadata().is_err() {
            if kind.is_symlink() {
                files::symlink(fs::read_link(&source)?, &target)?;
            } else if kind.is_file() {
                files::copy_file(&source, &target, Existing::Keep)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
