//! Installs Gemini CLI into Alhena's own directory, for those who have none or want a certain version.
//!
//! Gemini CLI is an npm package with a few optional native parts. One of those (`node-pty` 1.0.0) compiles C++ for half a
//! minute as a mere fallback for another one, so no package's scripts are run, except the one that puts the ready-made
//! keychain library into place (0.61.0).
//!
//! An install is one directory per version. It is made beside its place and moved there when it is complete, so whatever
//! is there is whole.

mod npm;

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_model::Hint;
use alhena_sys::files;
use alhena_sys::locks::{self, Lock};
use alhena_sys::platform::{PLATFORM, Platform};
use alhena_wire::display::is_unsafe_in_text;
use alhena_wire::release::{NEWEST_KNOWN, Version};

use crate::dirs::Dirs;
use crate::env::Environment;
use crate::find::{
    Answers, Finder, Gemini, NoAnswer, NodeVersion, PACKAGE, Patience, Place, ask_in, node_version, scratch,
};
use crate::programs::{leave_out_relative, on_path};

/// The version that is installed when none is asked for.
pub const PINNED: Version = NEWEST_KNOWN;

/// How long npm may take to name a version.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How long an install may take altogether.
const LIMIT: Duration = Duration::from_secs(600);

/// What an install is doing, for people who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process is installing the same version; this one waits for it.
    Waiting,
    /// npm has been started.
    Started {
        /// The version.
        version: Version,
        /// Where it will be.
        dir: PathBuf,
    },
    /// npm says something: one line, printable.
    Line(String),
    /// Nothing new; comes several times a second, so that a spinner can turn.
    Tick {
        /// Since the install began.
        elapsed: Duration,
    },
}

/// Why there is no install.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// Node is not on `PATH`.
    NoNode,
    /// Node is too old for Gemini CLI.
    NodeTooOld {
        /// That Node.
        path: PathBuf,
        /// Its version.
        version: NodeVersion,
    },
    /// npm is not on `PATH`.
    NoNpm,
    /// There is no home directory to install into.
    NoHome,
    /// npm failed.
    Npm {
        /// How it ended, such as `exit status: 1`.
        status: String,
        /// The end of what it wrote.
        output: String,
    },
    /// It took too long and was stopped.
    TooLate {
        /// How long it was given.
        limit: Duration,
        /// The end of what npm wrote.
        output: String,
    },
    /// It was told to stop.
    Stopped,
    /// npm succeeded and what it left is not that version of Gemini CLI.
    Incomplete {
        /// What is wrong.
        detail: String,
    },
    /// The file system did not allow something.
    Io {
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        error: io::Error,
    },
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = NodeVersion::OLDEST.major;
        match self {
            Self::NoNode => write!(f, "Gemini CLI needs Node {node} or newer, and `node` is not on PATH"),
            Self::NodeTooOld { path, version } => {
                write!(f, "Gemini CLI needs Node {node} or newer, and {} is {version}", path.display())
            }
            Self::NoNpm => f.write_str("Gemini CLI is installed by npm, and `npm` is not on PATH"),
            Self::NoHome => f.write_str("there is no home directory to install Gemini CLI into"),
            Self::Npm { status, output } => write!(f, "npm failed ({status})\n{output}"),
            Self::Stopped => f.write_str("the install was stopped"),
            Self::TooLate { limit, output } => write!(f, "npm was stopped after {limit:?}\n{output}"),
            Self::Incomplete { detail } => write!(f, "npm left an install that does not work: {detail}"),
            Self::Io { doing, error } => write!(f, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for InstallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl Hint for InstallError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let node = NodeVersion::OLDEST.major;
        Some(match self {
            Self::NoNode | Self::NodeTooOld { .. } => {
                format!(
                    "Install Node {node} or newer, with npm, and make sure that `node` and `npm` are on PATH."
                ).into()
            }
            Self::NoNpm => {
                "Install npm, which usually comes with Node, and make sure that it is on PATH.".into()
            }
            Self::NoHome => "Set HOME, or ALHENA_HOME to a directory of your choice.".into(),
            Self::Npm { .. } => {
                format!(
                    "Check the network, the room on the disk and npm's configuration; `npm view {PACKAGE} versions` lists what there is."
                ).into()
            }
            Self::TooLate { .. } => "Check the network, and try again.".into(),
            Self::Stopped => "Nothing of it is left; the next time it begins anew.".into(),
            Self::Incomplete { .. } => {
                format!("Try again, or install it yourself: `npm install -g {PACKAGE}`.").into()
            }
            Self::Io { .. } => "Check the free space and the permissions of Alhena's directory.".into(),
        })
    }
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> InstallError {
    move |error| InstallError::Io { doing, error }
}

/// Installs a version, or [`PINNED`], unless Alhena has installed it before; gives back what can be started.
pub fn install(version: Option<Version>, progress: impl FnMut(Progress)) -> Result<Gemini, InstallError> {
    Installer::new().install(version, progress)
}

/// One of Alhena's own installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its version.
    pub version: Version,
    /// Its directory.
    pub dir: PathBuf,
}

/// Installs with another environment or another limit.
#[derive(Clone, Debug)]
pub struct Installer {
    env: Environment,
    limit: Duration,
    stop_when: Option<fn() -> bool>,
}

impl Default for Installer {
    fn default() -> Self {
        Self::new()
    }
}

impl Installer {
    /// With this process's environment.
    #[must_use]
    pub fn new() -> Self {
        Self { env: Environment::of_process(), limit: LIMIT, stop_when: None }
    }

    /// With another environment: `PATH` for Node and npm, `ALHENA_HOME` or `HOME` for the place.
    #[must_use]
    pub fn env(mut self, env: Environment) -> Self {
        self.env = env;
        self
    }

    /// With another limit, ten minutes by default.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Stops when this says so; it is asked several times a second. Nothing of what was begun is left then.
    #[must_use]
    pub fn stop_when(mut self, stop: fn() -> bool) -> Self {
        self.stop_when = Some(stop);
        self
    }

    /// Alhena's own installs, newest first.
    #[must_use]
    pub fn installed(&self) -> Vec<Installed> {
        let Ok(directory) = self.installs() else { return Vec::new() };
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries
            .filter_map(|entry| {
                let version = entry.file_name().to_str()?.parse().ok()?;
                command_in(&entry.path()).exists().then(|| Installed { version, dir: entry.path() })
            })
            .collect();
        all.sort_by(|one, other| other.version.cmp(&one.version));
        all
    }

    /// See [`install`].
    pub fn install(
        &self,
        version: Option<Version>,
        mut progress: impl FnMut(Progress),
    ) -> Result<Gemini, InstallError> {
        let start = Instant::now();
        let version = version.unwrap_or(PINNED);
        let name = version.to_string();
        let installs = self.installs()?;
        let place = installs.join(&name);
        if let Ok(gemini) = self.check(&place, &version) {
            return Ok(gemini);
        }
        self.check_node()?;
        files::create_private_dir(&installs).map_err(io_error("making a directory for Gemini CLI"))?;
        let lock = self.lock(&installs, &name, start, &mut progress)?;
        if let Ok(gemini) = self.check(&place, &version) {
            return Ok(gemini);
        }
        sweep(&installs, &name);
        let making = tempfile::Builder::new()
            .prefix(&making_prefix(&name))
            .tempdir_in(&installs)
            .map_err(io_error("making a directory for Gemini CLI"))?;
        progress(Progress::Started { version: version.clone(), dir: place.clone() });
        let mut npm = npm::Npm {
            env: &self.env,
            dir: making.path(),
            start,
            limit: self.limit,
            lock: &lock,
            stop_when: self.stop_when,
            progress: &mut progress,
        };
        npm.install(&name)?;
        self.check(making.path(), &version)?;
        // What is in the way did not pass the check above.
        remove(&installs, &place, &name).map_err(io_error("removing a broken install"))?;
        fs::rename(making.keep(), &place).map_err(io_error("moving the install into place"))?;
        self.check(&place, &version)
    }

    /// The newest version that the registry has, by npm's word.
    pub fn latest(&self) -> Result<Version, InstallError> {
        self.check_node()?;
        // Where no project's configuration can send npm elsewhere.
        let here = scratch().map_err(io_error("asking npm"))?;
        fs::write(here.path().join("package.json"), "{\"private\": true}\n")
            .map_err(io_error("asking npm"))?;
        let mut env = self.env.clone();
        leave_out_relative(&mut env);
        let mut command = Command::new(on_path(&env, "npm").ok_or(InstallError::NoNpm)?);
        command.args(["view", &format!("{PACKAGE}@latest"), "version", "--no-color", "--no-update-notifier"]);
        command.current_dir(here.path()).env_clear().envs(env.iter());
        let limit = self.limit.min(ANSWER_LIMIT);
        let patience = Patience { limit, stop_when: self.stop_when };
        let answer = match ask_in(&here, &mut command, patience, 64 << 10) {
            Ok(answer) => answer,
            Err(NoAnswer::TooLate) => return Err(InstallError::TooLate { limit, output: String::new() }),
            Err(NoAnswer::Stopped) => return Err(InstallError::Stopped),
            Err(NoAnswer::NotStarted(error)) => return Err(io_error("asking npm")(error)),
        };
        let text = String::from_utf8_lossy(&answer.stdout);
        match text.trim().parse() {
            Ok(version) if answer.status.success() => Ok(version),
            _ => {
                let said = String::from_utf8_lossy(&answer.stderr);
                let output = said.chars().filter(|c| !is_unsafe_in_text(*c)).collect();
                Err(InstallError::Npm { status: answer.status.to_string(), output })
            }
        }
    }

    /// Removes one of Alhena's own installs; says whether there was one.
    pub fn uninstall(&self, version: &Version) -> Result<bool, InstallError> {
        let name = version.to_string();
        let installs = self.installs()?;
        let place = installs.join(&name);
        if !place.exists() {
            return Ok(false);
        }
        let _lock = self.lock(&installs, &name, Instant::now(), &mut |_| {})?;
        sweep(&installs, &name);
        remove(&installs, &place, &name).map_err(io_error("removing an install"))?;
        Ok(true)
    }

    fn installs(&self) -> Result<PathBuf, InstallError> {
        Dirs::of(&self.env).map(|dirs| dirs.installs()).ok_or(InstallError::NoHome)
    }

    /// What can be started in a directory, if that is this version.
    fn check(&self, dir: &Path, version: &Version) -> Result<Gemini, InstallError> {
        let incomplete = |detail| InstallError::Incomplete { detail };
        let finder = Finder::new().env(self.env.clone()).dir(dir);
        let gemini = finder
            .examine(Place::Installed, &command_in(dir))
            .map_err(|why| incomplete(format!("{} {why}", command_in(dir).display())))?;
        if gemini.version == *version {
            Ok(gemini)
        } else {
            Err(incomplete(format!("{} is {}", dir.display(), gemini.version)))
        }
    }

    fn check_node(&self) -> Result<(), InstallError> {
        let here = Path::new("/");
        let node = on_path(&self.env, "node").ok_or(InstallError::NoNode)?;
        let answers = Answers::in_directory(Dirs::of(&self.env).map(|dirs| dirs.answers()));
        match node_version(&node, here, &answers) {
            Some(version) if version < NodeVersion::OLDEST => {
                Err(InstallError::NodeTooOld { path: node, version })
            }
            Some(_) => on_path(&self.env, "npm").map(drop).ok_or(InstallError::NoNpm),
            None => Err(InstallError::NoNode),
        }
    }

    /// Waits until no other process installs this version. The lock ends with the process that holds it.
    fn lock(
        &self,
        installs: &Path,
        name: &str,
        start: Instant,
        progress: &mut impl FnMut(Progress),
    ) -> Result<File, InstallError> {
        let file = File::options().create(true).truncate(false).write(true).open(lock_file(installs, name));
        let file = file.map_err(io_error("locking the install"))?;
        let mut waited = false;
        while locks::try_lock(&file).map_err(io_error("locking the install"))? == Lock::Others {
            if self.stop_when.is_some_and(|stop| stop()) {
                return Err(InstallError::Stopped);
            }
            if start.elapsed() > self.limit {
                let output = "another process is installing it".to_owned();
                return Err(InstallError::TooLate { limit: self.limit, output });
            }
            progress(if waited { Progress::Tick { elapsed: start.elapsed() } } else { Progress::Waiting });
            waited = true;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(file)
    }
}

/// The prefix of directories that are being made or removed.
const MAKING: &str = ".making-";

/// The same for a version: they belong to whoever holds the version's lock.
fn making_prefix(name: &str) -> String {
    format!("{MAKING}{name}-")
}

fn lock_file(installs: &Path, name: &str) -> PathBuf {
    installs.join(format!(".{name}.lock"))
}

/// Where the command of a version is, or would be.
pub(crate) fn command_of(version: &Version, dirs: &Dirs) -> PathBuf {
    command_in(&dirs.installs().join(version.to_string()))
}

fn command_in(dir: &Path) -> PathBuf {
    dir.join("node_modules/.bin").join(if PLATFORM == Platform::Windows { "gemini.cmd" } else { "gemini" })
}

/// Removes an install: out of its place at once, from the disk after that.
fn remove(installs: &Path, place: &Path, name: &str) -> io::Result<()> {
    if !place.exists() {
        return Ok(());
    }
    let aside = tempfile::Builder::new().prefix(&making_prefix(name)).tempdir_in(installs)?;
    fs::rename(place, aside.path().join("removed"))?;
    aside.close()
}

/// Removes what installs that were killed have left behind: those of `name`, whose lock we hold, and of versions whose lock
/// nobody holds. npm and its keeper hold it as well.
fn sweep(installs: &Path, name: &str) {
    for entry in fs::read_dir(installs).into_iter().flatten().flatten() {
        let entry_name = entry.file_name().to_string_lossy().into_owned();
        let Some((version, _)) = entry_name.strip_prefix(MAKING).and_then(|rest| rest.rsplit_once('-'))
        else {
            continue;
        };
        let lock = (version != name).then(|| File::options().write(true).open(lock_file(installs, version)));
        let free = match &lock {
            None => true,
            Some(Ok(lock)) => locks::try_lock(lock).is_ok_and(|lock| lock == Lock::Ours),
            Some(Err(_)) => false,
        };
        if free {
            let _next_time = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
