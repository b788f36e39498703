//! Builds the overlay: what is linked, what is copied, and what is the run's own.
//!
//! Tried on 0.61.0 with a home before and after runs: at start-up the CLI writes `settings.json` (keys of older
//! releases), `installation_id`, `state.json`, `trusted_hooks.json` and `projects.json`, and in `tmp/<project>` it wipes
//! checkpoints and deletes sessions. Those are copies or the run's own. Everything else in `.gemini` is a link.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alhena_session::registry::{BASES, MARKER, REGISTRY};
use serde_json::{Map, Value, json};

use super::imports::{imported, lost};
use super::merge::{KEPT, TRUSTED_FOLDERS};
use super::plan::{CONTEXT_RULE, ContextFile, Layout, OurContext};
use super::settings;
use alhena_session::fingerprint::Fingerprint;
use alhena_session::publish::CopiedFile;
use alhena_sys::files::{self, read_if_there, symlink, write_private};

/// The run's own in `.gemini`, never linked.
const OWN: &[&str] = &["settings.json", REGISTRY, "tmp", "history"];
/// Rewritten by the CLI as it likes, and of no value to the user afterwards.
const COPIED: &[&str] = &[
    "state.json",
    "installation_id",
    "user_id",
    "trusted_hooks.json",
    "policy_integrity.json",
    TRUSTED_FOLDERS,
];
/// Beside `.gemini` in the home: skills, and the user's environment.
const BESIDE: &[&str] = &[".agents", ".env"];

/// An overlay under construction.
pub(super) struct Overlay<'a> {
    /// The overlay, which stands for the user's home.
    pub(super) home: &'a Path,
    pub(super) user_home: &'a Path,
    pub(super) project: &'a str,
    pub(super) slug: &'a str,
    pub(super) layout: Layout,
}

impl Overlay<'_> {
    fn own(&self) -> PathBuf {
        self.home.join(".gemini")
    }

    fn users(&self) -> PathBuf {
        self.user_home.join(".gemini")
    }

    /// The project's directory in the overlay.
    pub(super) fn project_dir(&self) -> PathBuf {
        self.own().join("tmp").join(self.slug)
    }

    /// Links and copies everything but settings, context and sessions. Gives the files that may have to go back.
    pub(super) fn build(&self, tools: &Path) -> io::Result<Vec<CopiedFile>> {
        let (own, users) = (self.own(), self.users());
        files::create_private_dir(&own)?;
        for name in BESIDE {
            let target = self.user_home.join(name);
            if target.symlink_metadata().is_ok() {
                symlink(target, self.home.join(name))?;
            }
        }
        for name in files::names_in(&users)? {
            if OWN.contains(&name.as_str()) || is_transient(&name) {
                continue;
            }
            let (source, target) = (users.join(&name), own.join(&name));
            if COPIED.contains(&name.as_str()) {
                if let Some(bytes) = read_if_there(&source)? {
                    write_private(&target, &bytes)?;
                }
            } else {
                symlink(source, target)?;
            }
        }
        self.build_project(tools)?;
        let mut linked = Vec::new();
        for name in KEPT {
            if let Some(fingerprint) = Fingerprint::of(&users.join(name))? {
                linked.push(CopiedFile { path: PathBuf::from(name), fingerprint });
            }
        }
        Ok(linked)
    }

    /// The project's directories: private, but for conversations saved by name.
    fn build_project(&self, tools: &Path) -> io::Result<()> {
        let own = self.own();
        for base in BASES {
            let dir = own.join(base).join(self.slug);
            files::create_private_dir(&dir)?;
            if self.layout == Layout::Slug {
                write_private(&dir.join(MARKER), self.project.as_bytes())?;
            }
        }
        if self.layout == Layout::Slug {
            write_private(&own.join(REGISTRY), self.registry().to_string().as_bytes())?;
        }
        let users = self.users().join("tmp").join(self.slug);
        for name in files::names_in(&users)? {
            if name.starts_with("checkpoint-") && name.ends_with(".json") {
                symlink(users.join(&name), self.project_dir().join(&name))?;
            }
        }
        // Releases up to 0.4x download a search tool on first use; that is once per machine, not once per run.
        let bin = self.users().join("tmp").join("bin");
        let bin = if bin.is_dir() { bin } else { files::create_private_dir(tools)?.to_owned() };
        symlink(bin, own.join("tmp").join("bin"))
    }

    /// The user's registry with this project in it, or this project alone if the user's is damaged.
    fn registry(&self) -> Value {
        let bytes = read_if_there(&self.users().join(REGISTRY)).unwrap_or_default().unwrap_or_default();
        let mut registry = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!({}));
        let slugs = registry.get("projects").and_then(Value::as_object);
        let is_valid = slugs.is_some_and(|slugs| slugs.values().all(Value::is_string));
        if !is_valid {
            registry = json!({"projects": {}});
        }
        if let Some(projects) = registry.get_mut("projects").and_then(Value::as_object_mut) {
            projects.insert(self.project.to_owned(), Value::String(self.slug.to_owned()));
        }
        registry
    }

    /// Writes the settings. They can hold secrets: environment variables of MCP servers.
    pub(super) fn write_settings(&self, settings: &Map<String, Value>) -> io::Result<()> {
        let text = serde_json::to_string_pretty(settings)?;
        write_private(&self.own().join("settings.json"), text.as_bytes())
    }

    /// Makes the context file work, with the run's instructions after the user's own.
    pub(super) fn write_context(
        &self,
        settings: &Map<String, Value>,
        context: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> io::Result<ContextFile> {
        let name = settings::context_names(settings).into_iter().find(|name| is_inside(Path::new(name)));
        let name = PathBuf::from(name.unwrap_or_else(|| "GEMINI.md".to_owned()));
        let users = read_if_there(&self.users().join(&name))?;
        for import in users.iter().flat_map(|text| imported(&self.users(), &name, text)) {
            let bytes = fs::read(self.users().join(&import))?;
            self.put(&import, &bytes)?;
        }
        let lost = lost(&self.users(), users.as_deref().unwrap_or_default());
        if !lost.is_empty() {
            let names = lost.join(", ");
            warnings.push(format!(
                "The run does without what {} imports from elsewhere: {names}",
                name.display()
            ));
        }
        let original = users.as_deref().map(Fingerprint::of_bytes);
        let Some(context) = context else { return Ok(ContextFile { name, original, ours: None }) };
        let rule = if users.is_some() { CONTEXT_RULE } else { "" };
        let text = format!("{rule}{context}\n");
        let mut whole = users.unwrap_or_default();
        whole.extend_from_slice(text.as_bytes());
        self.put(&name, &whole)?;
        Ok(ContextFile {
            name,
            original,
            ours: Some(OurContext { text, written: Fingerprint::of_bytes(&whole) }),
        })
    }

    /// Puts a file of the run's own into the overlay's `.gemini`, in the place of a link if there is one.
    fn put(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = self.own_parents(name)?;
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path)?;
        }
        write_private(&path, bytes)
    }

    /// The path of a file in the overlay whose directories are the overlay's own: a linked one is replaced by a directory
    /// of links, so that a file can be put there without putting it into the user's home.
    fn own_parents(&self, name: &Path) -> io::Result<PathBuf> {
        let (mut own, mut users) = (self.own(), self.users());
        for part in name.parent().into_iter().flat_map(Path::components) {
            own.push(part);
            users.push(part);
            if own.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
                fs::remove_file(&own)?;
                files::create_private_dir(&own)?;
                for entry in files::names_in(&users)? {
                    symlink(users.join(&entry), own.join(&entry))?;
                }
            }
            files::create_private_dir(&own)?;
        }
        Ok(own.join(name.file_name().unwrap_or_default()))
    }

    /// The folders that the user trusts, to see later what the run added.
    pub(super) fn trusted(&self) -> Map<String, Value> {
        settings::read_object(&self.own().join(TRUSTED_FOLDERS)).unwrap_or_default()
    }
}

/// Locks and half-written files of others.
fn is_transient(name: &str) -> bool {
    name.ends_with(".lock") || name.ends_with(".tmp") || name.contains(".tmp.") || name.contains(".alhena-")
}

/// Whether a relative path stays below the directory that it is joined to.
fn is_inside(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir))
}

#[cfg(test)]
mod tests;
