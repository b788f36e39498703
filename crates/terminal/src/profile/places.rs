//! Where profiles are looked for by name: Alhena's own, what CAO installed, and last the project's.
//!
//! A profile starts MCP servers, with the user's keys in their environment. So a project's is used only where the folder
//! may decide what runs, and never in front of one of the user's own.
//!
//! CAO (2.5) keeps them in `~/.aws/cli-agent-orchestrator`, or where `CAO_HOME_DIR` says: `agent-store/NAME.md`, then
//! `agent-context/NAME.md` or `agent-context/NAME/agent.md`. It fills in `${NAME}` from its own `.env` before it reads one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alhena_agent::Trust;
use alhena_agent::dirs::Dirs;
use alhena_agent::env::{CAO_HOME_DIR, Environment};
use alhena_agent::facts::may_use;

use super::{Cause, ProfileError, read_small};

/// Where profiles are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Alhena's own.
    pub own: Option<PathBuf>,
    /// CAO's home.
    pub cao: Option<PathBuf>,
    /// The project's.
    pub project: Option<Project>,
}

/// A project with profiles of its own, and what decides whether they are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its directory.
    pub dir: PathBuf,
    /// How far the caller trusts it.
    pub trust: Trust,
    /// Where the user's own trust is found.
    pub env: Environment,
}

pub(super) struct ProfileFile {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) of_cao: bool,
}

impl Places {
    /// The usual places for an environment and a project that is trusted so far.
    #[must_use]
    pub fn usual(env: &Environment, project: &Path, trust: Trust) -> Self {
        let chosen = env.filled(CAO_HOME_DIR).map(PathBuf::from);
        Self {
            own: Dirs::of(env).map(|dirs| dirs.data.join("profiles")),
            project: Some(Project { dir: project.to_path_buf(), trust, env: env.clone() }),
            cao: chosen.or_else(|| env.home().map(|home| home.join(".aws/cli-agent-orchestrator"))),
        }
    }

    /// Finds a file. What ends in `.md` or has a slash in it is a path.
    pub(super) fn find(&self, wanted: &str) -> Result<ProfileFile, Cause> {
        if wanted.contains('/') || wanted.ends_with(".md") {
            let path = PathBuf::from(wanted);
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let of_cao = self.cao.as_ref().is_some_and(|cao| path.starts_with(cao));
            return if path.exists() {
                Ok(ProfileFile { path, name, of_cao })
            } else {
                Err(Cause::NotFound(vec![path]))
            };
        }
        if wanted.is_empty() || wanted.contains("..") || wanted.contains(['\\', '\0']) {
            return Err(Cause::NotAName);
        }
        let candidates = self.candidates(wanted);
        let projects = self
            .project
            .as_ref()
            .map(|project| project.dir.join(".alhena/profiles").join(format!("{wanted}.md")));
        match candidates.iter().find(|(path, _)| path.is_file()) {
            Some((path, of_cao)) => {
                Ok(ProfileFile { path: path.clone(), name: wanted.to_owned(), of_cao: *of_cao })
            }
            None => match (projects, &self.project) {
                (Some(path), Some(project)) if path.is_file() => {
                    let path = std::path::absolute(&path).unwrap_or(path);
                    match may_use(&project.env, &project.dir, &path, project.trust) {
                        Ok(()) => Ok(ProfileFile { path, name: wanted.to_owned(), of_cao: false }),
                        Err(why) => Err(Cause::NotUsed { path, why }),
                    }
                }
                (projects, _) => {
                    let candidates = candidates.into_iter().map(|(path, _)| path);
                    Err(Cause::NotFound(candidates.chain(projects).collect()))
                }
            },
        }
    }

    /// The names of all profiles that are there.
    #[must_use]
    pub fn known(&self) -> Vec<String> {
        let project = self.project.as_ref().map(|project| project.dir.join(".alhena/profiles"));
        let caos = self.cao.iter().flat_map(|cao| [cao.join("agent-store"), cao.join("agent-context")]);
        let dirs = self.own.clone().into_iter().chain(caos).chain(project);
        let entries = dirs.flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
        let mut names: Vec<String> = entries.filter_map(|entry| profile_name(&entry.path())).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What to do where a profile could not be loaded: which one was probably meant, which there are, where one would be.
    #[must_use]
    pub fn hint(&self, error: &ProfileError) -> String {
        const NAMES: usize = 12;
        match &error.cause {
            Cause::NotFound(_) | Cause::NotAName => {}
            Cause::NotUsed { .. } | Cause::Unreadable { .. } | Cause::Invalid { .. } => return String::new(),
        }
        let known = self.known();
        if known.is_empty() {
            let own = self.own.as_ref().map(|dir| format!("put NAME.md into {}, or ", dir.display()));
            return format!("There are no profiles: {}give the path of one.", own.unwrap_or_default());
        }
        let close = |name: &&String| strsim::jaro_winkler(&error.name.to_lowercase(), &name.to_lowercase());
        let nearest = known.iter().max_by(|one, other| close(one).total_cmp(&close(other)));
        let meant = nearest.filter(|name| close(name) > 0.7).map(|name| format!("Did you mean {name}? "));
        let more = known.len().checked_sub(NAMES).filter(|more| *more > 0);
        format!(
            "{}There are: {}{}.",
            meant.unwrap_or_default(),
            known.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", "),
            more.map(|more| format!(" and {more} more")).unwrap_or_default()
        )
    }

    fn candidates(&self, name: &str) -> Vec<(PathBuf, bool)> {
        let file = format!("{name}.md");
        let ours = self.own.iter().map(|dir| (dir.join(&file), false));
        let caos = self.cao.iter().flat_map(|cao| {
            let context = cao.join("agent-context");
            [cao.join("agent-store").join(&file), context.join(&file), context.join(name).join("agent.md")]
        });
        ours.chain(caos.map(|path| (path, true))).collect()
    }

    /// `$NAME` and `${NAME}` by the values in CAO's `.env`, and `$$` for a dollar, as Python's templates have it. What
    /// has no value stays.
    pub(super) fn resolve_variables(&self, text: &str) -> String {
        let env = self.cao.as_ref().map(|cao| cao.join(".env"));
        let env = env.and_then(|path| read_small(&path).ok()).unwrap_or_default();
        let values = assignments(&String::from_utf8_lossy(&env));
        let mut output = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            output.push_str(before);
            rest = match reference(after) {
                _ if after.starts_with('$') => {
                    output.push('$');
                    after.strip_prefix('$').unwrap_or_default()
                }
                Some((name, next)) if values.contains_key(name) => {
                    output.push_str(values.get(name).map(String::as_str).unwrap_or_default());
                    next
                }
                _ => {
                    output.push('$');
                    after
                }
            };
        }
        output.push_str(rest);
        output
    }
}

fn profile_name(path: &Path) -> Option<String> {
    let named =
        if path.is_dir() { path.file_name().filter(|_| path.join("agent.md").is_file()) } else { None };
    let file = path.extension().is_some_and(|extension| extension == "md");
    let named = named.or_else(|| path.file_stem().filter(|_| file))?;
    Some(named.to_string_lossy().into_owned())
}

fn reference(text: &str) -> Option<(&str, &str)> {
    let (braced, inner) = match text.strip_prefix('{') {
        Some(inner) => (true, inner),
        None => (false, text),
    };
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
    let (name, next) = inner.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let next = if braced { next.strip_prefix('}')? } else { next };
    Some((name, next))
}

fn assignments(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(name, value)| {
        let name = name.trim();
        (name.strip_prefix("export ").unwrap_or(name).trim().to_owned(), unquoted(value.trim()))
    });
    pairs.collect()
}

fn unquoted(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    match inside('\'').or_else(|| inside('"')) {
        Some(value) => value.replace("\\'", "'").replace("\\\"", "\""),
        None => value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned(),
    }
}
