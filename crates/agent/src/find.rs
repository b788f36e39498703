//! Finds Gemini CLI, tells its version and how to start it, and runs nothing for that where it can be helped.
//!
//! `gemini --version` takes 2.8 s on 0.61.0, so the version is read from the package behind the command. Only a command
//! that leads to no package (a standalone binary, a version manager's shim) is asked, once, and its answer is kept.

mod ask;
mod entry;
mod node;
mod not_found;
mod own;
mod places;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_sys::files::{self, exposed};
use alhena_sys::programs::{file_names, is_executable};
use alhena_wire::release::Version;
use serde::{Serialize, Serializer};

pub(crate) use ask::{Answers, NoAnswer, Patience, ask_in, scratch};
pub use entry::PACKAGE;
pub(crate) use node::version as node_version;
pub use node::{FastStart, NodeVersion};
pub use not_found::{NotFound, Tried, Why};
pub use own::DROP_IN_MARK;
pub use places::Place;

use crate::dirs::Dirs;
use crate::env::{self, Environment};
use crate::facts::{self, NotUsed};
use crate::install;
use crate::programs::{leave_out_relative, on_path};
use crate::request::Trust;
use entry::{EntryScript, Way};

/// How long a program may take to tell its version.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A Gemini CLI that can be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gemini {
    /// The command as it was found, links and all.
    pub path: PathBuf,
    /// How it was come upon.
    pub place: Place,
    /// Its version.
    #[serde(serialize_with = "as_text")]
    pub version: Version,
    /// How the version is known.
    pub version_source: VersionSource,
    /// The JavaScript file behind the command, where that can be seen.
    pub entry: Option<PathBuf>,
    /// The package that file belongs to.
    pub package_dir: Option<PathBuf>,
    /// The package's name: [`PACKAGE`], or a fork's.
    pub package_name: Option<String>,
    /// The Node that runs it.
    pub node: Option<PathBuf>,
    /// That Node's version; none where it depends on the directory.
    pub node_version: Option<NodeVersion>,
    /// The oldest Node that the package says it runs on.
    pub node_needed: Option<NodeVersion>,
    #[serde(skip)]
    start: Start,
}

/// Whether Node may be started on the entry instead of starting the command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Start {
    /// Yes, with these options of the entry's own first line.
    Direct { node_options: Vec<String> },
    /// No: the command may do more than start Node.
    ByCommand,
}

/// How a version is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionSource {
    /// Its package says so.
    PackageJson,
    /// The command was asked just now.
    Asked,
    /// The command was asked before, and its file is still the same.
    Remembered,
}

impl Gemini {
    /// Finds Gemini CLI for this process: its environment, its working directory.
    pub fn find() -> Result<Self, NotFound> {
        Finder::new().find()
    }

    /// How to start it in one process, where that is known to be the same as starting the command: the entry is known, the
    /// command does nothing else, and so does the heap that the CLI would choose for itself.
    ///
    /// `settings` are the user's (`advanced.autoConfigureMemory` false means Node's own heap limit).
    #[must_use]
    pub fn fast_start(&self, env: &Environment, settings: &serde_json::Value) -> Option<FastStart> {
        let (Start::Direct { node_options }, Some(node), Some(entry)) =
            (&self.start, &self.node, &self.entry)
        else {
            return None;
        };
        let automatic =
            settings.pointer("/advanced/autoConfigureMemory") != Some(&serde_json::Value::Bool(false));
        let heap_mb = if automatic { node::heap_mb(env, node::total_memory()?) } else { None };
        let caches = self.node_version.is_some_and(|version| version >= NodeVersion::COMPILE_CACHE);
        let compile_cache = Dirs::of(env)
            .filter(|_| caches && env.filled(env::NODE_COMPILE_CACHE).is_none())
            .map(|dirs| dirs.compile_cache());
        let (node, entry) = (node.clone(), entry.clone());
        Some(FastStart { node, node_options: node_options.clone(), heap_mb, entry, compile_cache })
    }
}

fn as_text<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

/// Looks for Gemini CLI: an explicit path, `GEMINI_CLI_PATH`, `node_modules/.bin` upwards from the working directory,
/// `PATH`, known places, Alhena's own installs.
///
/// What a folder brings along is taken only from a folder that is trusted, and never where others than the user and root
/// could have put it. What is passed over is neither run nor asked.
#[derive(Clone, Debug)]
pub struct Finder {
    explicit: Option<PathBuf>,
    here: PathBuf,
    dir: PathBuf,
    env: Environment,
    trust: Trust,
    deadline: Option<Instant>,
    stop_when: Option<fn() -> bool>,
}

impl Default for Finder {
    fn default() -> Self {
        Self::new()
    }
}

impl Finder {
    /// A search with this process's environment and working directory.
    #[must_use]
    pub fn new() -> Self {
        let dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self {
            explicit: None,
            here: dir.clone(),
            dir,
            env: Environment::of_process(),
            trust: Trust::AsIs,
            deadline: None,
            stop_when: None,
        }
    }

    /// Takes exactly this: a path, seen from this process's working directory, the name of a command on `PATH`, or the
    /// version of one of Alhena's own installs. Nothing else is looked for then.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.explicit = Some(path.into());
        self
    }

    /// Looks from another working directory.
    #[must_use]
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        let dir = self.dir.join(dir);
        self.dir = dir.canonicalize().unwrap_or(dir);
        self
    }

    /// Looks with another environment.
    #[must_use]
    pub fn env(mut self, env: Environment) -> Self {
        self.env = env;
        self
    }

    /// Says how far the folder is trusted: [`Trust::WithSettings`] takes its own CLI too, otherwise Gemini's own trust
    /// decides.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Asks nobody for a version after this time.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Gives up when this says so: who is being asked for its version is ended, and nobody is asked any more.
    #[must_use]
    pub fn stop_when(mut self, stop: fn() -> bool) -> Self {
        self.stop_when = Some(stop);
        self
    }

    /// The first that can be started.
    pub fn find(&self) -> Result<Gemini, NotFound> {
        let (found, tried) = self.find_first();
        found.ok_or(NotFound { tried })
    }

    /// The first that can be started, and what was passed over before it.
    #[must_use]
    pub fn find_first(&self) -> (Option<Gemini>, Vec<Tried>) {
        let mut tried = Vec::new();
        let first = self.search(&mut tried).next();
        (first, tried)
    }

    /// All that can be started, best first, each once, and what was passed over.
    #[must_use]
    pub fn find_all(&self) -> (Vec<Gemini>, Vec<Tried>) {
        let mut tried = Vec::new();
        let mut all: Vec<Gemini> = Vec::new();
        for gemini in self.search(&mut tried) {
            let same = |other: &Gemini| {
                other
                    .path
                    .canonicalize()
                    .ok()
                    .is_some_and(|path| gemini.path.canonicalize().ok() == Some(path))
            };
            if !all.iter().any(same) {
                all.push(gemini);
            }
        }
        (all, tried)
    }

    fn search<'a>(&'a self, tried: &'a mut Vec<Tried>) -> impl Iterator<Item = Gemini> + 'a {
        self.candidates().into_iter().filter_map(move |(place, path)| {
            let found = self.examine(place, &path);
            found.map_err(|why| tried.push(Tried { path, place, why })).ok()
        })
    }

    fn candidates(&self) -> Vec<(Place, PathBuf)> {
        let Some(explicit) = &self.explicit else {
            return places::candidates(&self.env, &self.dir, Dirs::of(&self.env).as_ref());
        };
        // As in a shell, a name without a slash is looked up, never taken from the folder one is in.
        let name = explicit.to_str().filter(|name| !name.contains(std::path::is_separator));
        let own = || Some(install::command_of(&name?.parse().ok()?, &Dirs::of(&self.env)?));
        let found = name.and_then(|name| on_path(&self.env, name)).or_else(own);
        let unknown = || if name.is_some() { explicit.clone() } else { self.here.join(explicit) };
        vec![(Place::Explicit, found.unwrap_or_else(unknown))]
    }

    /// Whether what a folder brings along may be used: the folder is trusted, and nobody else could have put it there.
    fn may_use(&self, place: Place, path: &Path) -> Result<(), Why> {
        let Some(folder) = path.ancestors().nth(3).filter(|_| place == Place::Project) else { return Ok(()) };
        facts::may_use(&self.env, folder, path, self.trust).map_err(Why::NotUsed)
    }

    /// Whether a path is a Gemini CLI that can be started.
    pub(crate) fn examine(&self, place: Place, path: &Path) -> Result<Gemini, Why> {
        check_file(path, place)?;
        self.may_use(place, path)?;
        if own::is_alhena(path) {
            return Err(Why::Alhena);
        }
        let entry = entry::entry(path);
        for file in entry.iter().flat_map(|entry| entry.through.iter().chain([&entry.file])) {
            if place == Place::Project {
                exposed::check(file).map_err(|exposed| Why::NotUsed(NotUsed::Exposed(exposed)))?;
            }
        }
        let node = entry.as_ref().and_then(|entry| self.node_for(place, path, entry));
        if node.is_none() && entry.as_ref().is_some_and(|entry| entry.way != Way::Wrapper) {
            return Err(Why::NoNode);
        }
        let package = entry.as_ref().and_then(|entry| entry::package(&entry.file));
        let node_version =
            node.as_ref().and_then(|node| node::settled_version(node, &self.answers(), self.patience()));
        let node_needed = package.as_ref().and_then(|package| package.node);
        if let (Some(node), Some(found), Some(needed)) = (&node, node_version, node_needed)
            && found < needed
        {
            return Err(Why::NodeTooOld { node: node.clone(), found, needed });
        }
        let stated = package.as_ref().and_then(|package| package.version.parse().ok());
        let (version, version_source) = match stated {
            Some(version) => (version, VersionSource::PackageJson),
            None => self.ask_version(path)?,
        };
        let start = match &entry {
            Some(EntryScript { way: Way::Link | Way::Shim, shebang, .. }) => {
                Start::Direct { node_options: shebang.iter().skip(1).cloned().collect() }
            }
            _ => Start::ByCommand,
        };
        let (package_dir, package_name) = package.map(|package| (package.dir, package.name)).unzip();
        let (path, entry) = (path.to_path_buf(), entry.map(|entry| entry.file));
        Ok(Gemini {
            path,
            place,
            version,
            version_source,
            entry,
            package_dir,
            package_name,
            node,
            node_version,
            node_needed,
            start,
        })
    }

    /// The Node that the command would run on: the one its first line names, the one beside a shim, the one on `PATH`, and
    /// last the one beside a link, where version managers install both.
    fn node_for(&self, place: Place, command: &Path, entry: &EntryScript) -> Option<PathBuf> {
        let named = entry.shebang.first().map(PathBuf::from).filter(|path| path.is_absolute());
        let beside = || {
            let directory = command.parent()?;
            let safe = |path: &PathBuf| place != Place::Project || exposed::check(path).is_ok();
            file_names("node")
                .into_iter()
                .map(|name| directory.join(name))
                .find(|path| is_executable(path) && safe(path))
        };
        let on_path = || on_path(&self.env, "node");
        named.filter(|path| is_executable(path)).or_else(|| match entry.way {
            Way::Shim => beside().or_else(on_path),
            Way::Link | Way::Wrapper => on_path().or_else(beside),
        })
    }

    fn ask_version(&self, path: &Path) -> Result<(Version, VersionSource), Why> {
        const QUESTION: &str = "gemini --version";
        let no_version = |detail: &str| Why::NoVersion { detail: detail.to_owned() };
        let parse = |text: &str| text.trim().parse::<Version>().ok();
        let answers = self.answers();
        if let Some(version) = answers.recall(path, QUESTION).as_deref().and_then(parse) {
            return Ok((version, VersionSource::Remembered));
        }
        // A script that leads back to Alhena would have it ask that script again.
        if self.env.get(env::ALHENA_ASKING).is_some() {
            return Err(no_version("it is being asked already"));
        }
        let home = ask::scratch().map_err(|error| match files::is_full(&error) {
            true => Why::NoRoom,
            false => no_version(&error.to_string()),
        })?;
        let mut env = self.env.clone();
        leave_out_relative(&mut env);
        let mut command = Command::new(path);
        command.arg("--version").current_dir(&self.dir).env_clear().envs(env.iter());
        command.env(env::GEMINI_CLI_HOME, home.path()).env(env::GEMINI_CLI_NO_RELAUNCH, "1");
        command.env(env::ALHENA_ASKING, "1");
        let patience = self.patience();
        let answer = match ask::ask_in(&home, &mut command, patience, 64 << 10) {
            Ok(answer) => answer,
            Err(NoAnswer::TooLate) => {
                let limit = patience.limit.as_secs_f64();
                return Err(no_version(&format!("it took more than {limit:.1} seconds and was stopped")));
            }
            Err(NoAnswer::Stopped) => return Err(no_version("it was not waited for")),
            Err(NoAnswer::NotStarted(error)) => return Err(no_version(&error.to_string())),
        };
        let text = String::from_utf8_lossy(&answer.stdout);
        let version = text.lines().rev().find_map(parse);
        let Some(version) = version.filter(|_| answer.status.success()) else {
            let complaint = String::from_utf8_lossy(&answer.stderr);
            let mut said = complaint.lines().rev().chain(text.lines().rev());
            let last = said.find(|line| !line.trim().is_empty()).unwrap_or("no output");
            let last: String = last.trim().chars().take(200).collect();
            return Err(no_version(&format!("{} ({last})", answer.status)));
        };
        answers.keep(path, QUESTION, &version.to_string());
        Ok((version, VersionSource::Asked))
    }

    /// How long a program may take to answer.
    fn patience(&self) -> Patience {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = left.map_or(ANSWER_LIMIT, |left| left.min(ANSWER_LIMIT));
        Patience { limit, stop_when: self.stop_when }
    }

    fn answers(&self) -> Answers {
        Answers::in_directory(Dirs::of(&self.env).map(|dirs| dirs.answers()))
    }
}

fn check_file(path: &Path, place: Place) -> Result<(), Why> {
    // A variable outlives the folder it was set for; only the user's own words of the moment are seen from here.
    if !path.is_absolute() {
        return Err(if place == Place::Environment { Why::Relative } else { Why::Missing });
    }
    let Ok(metadata) = path.metadata() else {
        return Err(if path.is_symlink() { Why::Dangling } else { Why::Missing });
    };
    if metadata.is_dir() {
        return Err(Why::Directory);
    }
    // Who names the JavaScript file itself means it, though only Node can start it.
    let named = matches!(place, Place::Explicit | Place::Environment);
    let is_script = path.extension().is_some_and(|extension| extension == "js");
    if is_executable(path) || named && is_script { Ok(()) } else { Err(Why::NotExecutable) }
}

#[cfg(test)]
mod tests;
