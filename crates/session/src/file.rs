//! Session files: what their names say before anything is read.
//!
//! How they are called is in [`crate::names`]; a sub-agent's is its whole id, in a directory named after its parent.
//! Two sessions of one minute whose ids begin alike share a file.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use alhena_sys::files;

use crate::names::{self, read_name};
use crate::project::{Project, entries_in, is_gone};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// One JSON object, rewritten as a whole (to 0.38).
    Json,
    /// A log of records, appended to (0.39 on).
    Jsonl,
}

impl Format {
    /// By the file's name.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|end| end == "json") { Self::Json } else { Self::Jsonl }
    }
}

/// A session file, as its name and the system describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whose it is.
    pub project: Arc<Project>,
    /// How it is written.
    pub format: Format,
    /// What the name says about the session's id: eight characters of it, or all of it for a sub-agent.
    pub id_start: String,
    /// The id of the session that started this one, for a sub-agent.
    pub parent: Option<String>,
    /// What it looked like when it was found.
    pub stamp: Stamp,
}

/// Size and time of a file: when they are the same, so is the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Its size.
    pub size: u64,
    /// Nanoseconds since 1970, when it was last written.
    pub modified: i64,
    /// The number that its name stands for.
    pub inode: u64,
}

impl Stamp {
    /// The file's own.
    pub fn of(data: &fs::Metadata) -> Self {
        let since = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(_) => 0,
        };
        Self { size: data.len(), modified: data.modified().map_or(0, since), inode: files::number(data) }
    }

    /// Milliseconds since 1970, when it was last written.
    pub fn modified_ms(&self) -> i64 {
        self.modified / 1_000_000
    }
}

impl SessionFile {
    /// The file at a path that is no part of the store.
    pub fn at(path: &Path) -> io::Result<Self> {
        let data = fs::metadata(path)?;
        if !data.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        let chats = path.parent().unwrap_or(path).to_path_buf();
        let project = Arc::new(Project { name: String::new(), root: None, chats });
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id_start = names::stem(name).and_then(|(stem, _)| stem.rsplit('-').next()).unwrap_or_default();
        let (id_start, format) = (id_start.to_owned(), Format::of(path));
        let path = path.to_path_buf();
        Ok(Self { path, project, format, id_start, parent: None, stamp: Stamp::of(&data) })
    }

    /// Whether the session may have this id, judged by the name alone.
    pub fn may_be(&self, id: &str) -> bool {
        id.starts_with(&self.id_start) || self.id_start.starts_with(id)
    }
}

/// Every session file of a project, sub-agents included. Files that vanish meanwhile are left out.
pub(crate) fn in_project(project: &Arc<Project>) -> io::Result<Vec<SessionFile>> {
    let mut files = Vec::new();
    for entry in entries_in(&project.chats)? {
        let name = entry.file_name();
        match name.to_str().and_then(read_name) {
            Some((id_start, format)) => files.extend(look(&entry, project, format, id_start, None)?),
            // Anything else with a dot is a temporary or a damaged file of the CLI.
            // A link would show the sessions of another directory a second time.
            None if name.to_str().is_some_and(|name| !name.contains('.'))
                && entry.file_type().is_ok_and(|kind| kind.is_dir()) =>
            {
                files.extend(children(&entry.path(), project, &name.to_string_lossy())?);
            }
            None => {}
        }
    }
    Ok(files)
}

fn children(dir: &Path, project: &Arc<Project>, parent: &str) -> io::Result<Vec<SessionFile>> {
    let mut files = Vec::new();
    for entry in entries_in(dir)? {
        let name = entry.file_name();
        if let Some((id, format)) = name.to_str().and_then(names::stem) {
            files.extend(look(&entry, project, format, id.to_owned(), Some(parent.to_owned()))?);
        }
    }
    Ok(files)
}

fn look(
    entry: &DirEntry,
    project: &Arc<Project>,
    format: Format,
    id_start: String,
    parent: Option<String>,
) -> io::Result<Option<SessionFile>> {
    let path = entry.path();
    // Of an entry this is half as much work as of a path. It does not follow a link.
    let data =
        entry.metadata().and_then(|data| if data.is_symlink() { fs::metadata(&path) } else { Ok(data) });
    match data {
        Ok(data) if data.is_file() => {
            let stamp = Stamp::of(&data);
            Ok(Some(SessionFile { path, project: Arc::clone(project), format, id_start, parent, stamp }))
        }
        Ok(_) => Ok(None),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_sub_agents_are_found_and_rubbish_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let chats = dir.path().to_path_buf();
        for name in [
            "session-2026-11-15T18-07-aaaaaaaa.jsonl",
            "session-2026-11-15T18-08-bbbbbbbb.json",
            "session-2026-11-15T18-07-aaaaaaaa.jsonl.tmp-12",
            "aaaaaaaa-1111/child-1.jsonl",
            "aaaaaaaa-1111/notes.txt",
        ] {
            fs::create_dir_all(chats.join(name).parent().unwrap()).unwrap();
            fs::write(chats.join(name), "x").unwrap();
        }
        fs::create_dir(chats.join("session-2026-11-15T18-09-dddddddd.jsonl")).unwrap();
        let project = Arc::new(Project { name: "p".into(), root: None, chats });
        let mut found: Vec<(String, Format, Option<String>)> = in_project(&project)
            .unwrap()
            .into_iter()
            .map(|file| (file.id_start, file.format, file.parent))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                ("aaaaaaaa".to_owned(), Format::Jsonl, None),
                ("bbbbbbbb".to_owned(), Format::Json, None),
                ("child-1".to_owned(), Format::Jsonl, Some("aaaaaaaa-1111".to_owned())),
            ]
        );
    }

    #[test]
    fn a_missing_directory_has_no_files() {
        let project =
            Arc::new(Project { name: "p".into(), root: None, chats: "/nowhere/at/all/chats".into() });
        assert_eq!(in_project(&project).unwrap(), []);
    }
}
