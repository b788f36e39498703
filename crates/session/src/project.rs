//! Projects: which directory of the store belongs to which folder.
//!
//! Since 0.29 a project's directory below `tmp` is a slug that `projects.json` gives out, with a marker `.project_root`
//! that is believed when the two disagree; before, it was the SHA-256 of the folder's real path. An upgrade copies the
//! old directory and leaves it there, so one folder can have several.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use crate::fingerprint::sha256_hex;
use crate::registry;

const CHATS: &str = "chats";

/// One directory of the store that can hold sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The directory's name: a slug, or the old hash.
    pub name: String,
    /// The folder that it belongs to, where that is known.
    pub root: Option<PathBuf>,
    /// Where its sessions are.
    pub chats: PathBuf,
}

/// The name that releases before 0.29 gave a folder's directory.
pub fn project_hash(root: &Path) -> String {
    sha256_hex(root.as_os_str().as_encoded_bytes())
}

/// Every directory below `tmp` that has a place for sessions, by name.
pub(crate) fn all(gemini: &Path) -> io::Result<Vec<Project>> {
    let registry = Registry::read(gemini);
    let mut projects = Vec::new();
    for entry in entries_in(&gemini.join("tmp"))? {
        let (name, dir) = (entry.file_name(), entry.path());
        let chats = dir.join(CHATS);
        if chats.is_dir() {
            let name = name.to_string_lossy().into_owned();
            let root = registry::owner_of(&dir).map(PathBuf::from).or_else(|| registry.root_of(&name));
            projects.push(Project { name, root, chats });
        }
    }
    projects.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(projects)
}

/// The directories that belong to one folder. None need exist.
pub(crate) fn of(gemini: &Path, folder: &Path) -> io::Result<Vec<Project>> {
    // The CLI asks the system for its working directory and so sees the real path. A folder that is gone can still
    // have sessions.
    let real = fs::canonicalize(folder).or_else(|_| std::path::absolute(folder))?;
    let hash = project_hash(&real);
    let registered = Registry::read(gemini).slugs.remove(&real);
    let mut projects = all(gemini)?;
    projects.retain(|project| {
        project.name == hash
            || project.root.as_deref() == Some(&real)
            || (project.root.is_none() && registered.as_deref() == Some(&project.name))
    });
    for project in &mut projects {
        project.root = Some(real.clone());
    }
    Ok(projects)
}

/// `projects.json`: folder to slug. A damaged one is as good as none, for the CLI too.
#[derive(Default)]
struct Registry {
    slugs: BTreeMap<PathBuf, String>,
}

impl Registry {
    fn read(gemini: &Path) -> Self {
        let slugs = registry::slugs(gemini).into_iter();
        Self { slugs: slugs.map(|(root, slug)| (PathBuf::from(root), slug)).collect() }
    }

    /// The folder of a directory without a marker: by its slug, or by the hash of a folder that is known.
    fn root_of(&self, name: &str) -> Option<PathBuf> {
        let is_hash = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut known = self.slugs.iter();
        let found = known.find(|(root, slug)| *slug == name || (is_hash && project_hash(root) == name));
        found.map(|(root, _)| root.clone())
    }
}

/// The names in a directory; none when it is not there.
pub(crate) fn names_in(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    Ok(entries_in(dir)?.iter().map(DirEntry::file_name).collect())
}

/// What is in a directory; nothing when it is not there.
pub(crate) fn entries_in(dir: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.filter_map(Result::ok).collect()),
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether something is simply not there, or not there any more.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{MARKER, REGISTRY};

    fn store() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn make(gemini: &Path, name: &str, marker: Option<&Path>) {
        fs::create_dir_all(gemini.join("tmp").join(name).join("chats")).unwrap();
        if let Some(root) = marker {
            fs::write(gemini.join("tmp").join(name).join(MARKER), format!("{}\n", root.display())).unwrap();
        }
    }

    fn register(gemini: &Path, projects: &[(&Path, &str)]) {
        let projects: serde_json::Map<String, serde_json::Value> =
            projects.iter().map(|(root, slug)| (root.display().to_string(), (*slug).into())).collect();
        fs::write(gemini.join(REGISTRY), serde_json::json!({ "projects": projects }).to_string()).unwrap();
    }

    fn names(projects: &[Project]) -> Vec<&str> {
        projects.iter().map(|project| project.name.as_str()).collect()
    }

    // B-38
    #[test]
    fn the_hash_of_a_folder_is_that_of_its_path() {
        assert_eq!(
            project_hash(Path::new("/private/tmp/gemini-test")),
            "cde655816f6d3e439a10953ef9e111dbe460d7de3bc212c414a03ede4bf0b307"
        );
    }

    #[test]
    fn a_folder_has_its_slug_and_its_old_hash() {
        let (gemini, folder) = (store(), store());
        let folder = folder.path().canonicalize().unwrap();
        let hash = project_hash(&folder);
        make(gemini.path(), "app", None);
        make(gemini.path(), "other", Some(Path::new("/elsewhere")));
        make(gemini.path(), &hash, None);
        register(gemini.path(), &[(&folder, "app"), (Path::new("/elsewhere"), "other")]);
        let found = of(gemini.path(), &folder).unwrap();
        let mut expected = vec!["app", hash.as_str()];
        expected.sort_unstable();
        assert_eq!(names(&found), expected);
        assert!(found.iter().all(|project| project.root.as_deref() == Some(&*folder)));
    }

    #[test]
    fn a_marker_is_believed_more_than_the_registry() {
        let (gemini, folder) = (store(), store());
        let folder = folder.path().canonicalize().unwrap();
        make(gemini.path(), "app", Some(Path::new("/somebody/else")));
        make(gemini.path(), "app-1", Some(&folder));
        register(gemini.path(), &[(&folder, "app")]);
        assert_eq!(names(&of(gemini.path(), &folder).unwrap()), ["app-1"]);
    }

    #[test]
    fn a_link_leads_to_the_same_project() {
        let (gemini, folder) = (store(), store());
        let real = folder.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        let link = folder.path().join("link");
        alhena_sys::files::symlink(&real, &link).unwrap();
        make(gemini.path(), "real", Some(&real));
        assert_eq!(names(&of(gemini.path(), &link).unwrap()), ["real"]);
    }

    #[test]
    fn everything_with_sessions_is_a_project_even_when_nobody_knows_whose() {
        let gemini = store();
        let hash = project_hash(Path::new("/old/folder"));
        make(gemini.path(), "known", Some(Path::new("/a")));
        make(gemini.path(), "unknown", None);
        make(gemini.path(), &hash, None);
        fs::create_dir_all(gemini.path().join("tmp/bin")).unwrap();
        register(gemini.path(), &[(Path::new("/old/folder"), "gone")]);
        let found = all(gemini.path()).unwrap();
        let roots: BTreeMap<&str, Option<&str>> = found
            .iter()
            .map(|project| (project.name.as_str(), project.root.as_ref().and_then(|root| root.to_str())))
            .collect();
        let expected = [("known", Some("/a")), ("unknown", None), (hash.as_str(), Some("/old/folder"))];
        assert_eq!(roots, BTreeMap::from(expected));
    }

    #[test]
    fn no_store_and_a_damaged_registry_mean_no_projects() {
        let gemini = store();
        assert_eq!(all(gemini.path()).unwrap(), []);
        fs::write(gemini.path().join(REGISTRY), "{\"projects\": [").unwrap();
        make(gemini.path(), "app", None);
        assert_eq!(names(&all(gemini.path()).unwrap()), ["app"]);
        assert_eq!(of(gemini.path(), Path::new("/nowhere/at/all")).unwrap(), []);
    }
}
