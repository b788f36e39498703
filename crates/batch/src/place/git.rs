//! The program git, asked so that nothing of a repository runs: no hooks, no filters, no helpers, no configuration of anybody
//! where none is needed. Each question is bounded in time and output, can be stopped, and leaves no process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_agent::env::Environment;
use alhena_agent::supervise::errand::{Errand, ErrandFiles};
use alhena_agent::supervise::protocol::Gentle;
use alhena_model::{Failure, FailureKind};
use alhena_sys::{files, programs};
use alhena_wire::display::is_unsafe;

use super::{Made, cancelled, failed};
use crate::perform::Watch;

/// What is looked at on the way: whether to stop, and how much it has written.
const GLANCE: Duration = Duration::from_millis(50);
/// No answer but a patch is larger.
const MOST: u64 = 64 << 20;
/// So much of what it said is told.
const TOLD: usize = 600;

/// Said in every question, so that whatever a file says does not count.
const NEUTRAL: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.editor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.safecrlf=false",
    "core.quotePath=true",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    // A place is gone with its job: nothing of it has to survive the machine, or be small.
    "core.fsync=none",
    "core.compression=0",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "transfer.bundleURI=false",
    "protocol.ext.allow=never",
    "credential.interactive=false",
    "advice.addEmbeddedRepo=false",
];

/// Variables of git that say how a server is reached. All others would have a say in what is done.
const OF_THE_WAY: &[&str] = &[
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

/// The program.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    environment: Environment,
}

/// Whose configuration counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// Nobody's.
    Closed,
    /// The user's own: it says how servers are reached, and with which credentials.
    Open,
}

/// A question to git.
pub struct Question<'a> {
    git: &'a Git,
    world: World,
    args: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    dir: &'a Path,
    limit: Duration,
    most: u64,
    input: Option<Vec<u8>>,
    lock: Option<&'a File>,
}

/// What it answered.
#[derive(Debug)]
pub struct Answer {
    /// Whether it did what it was asked to.
    pub success: bool,
    /// All of it.
    pub stdout: Vec<u8>,
    /// The end of what it said beside it, in words.
    pub said: String,
    /// Whether there was more than it may say; then it was stopped.
    pub too_much: bool,
}

impl Git {
    /// The git on the `PATH` of an environment; none where there is none.
    pub fn find(environment: &Environment) -> Option<Self> {
        let program = programs::on_path(environment.get("PATH")?, "git")?;
        Some(Self { program, environment: environment.clone() })
    }

    /// Something that needs nobody's configuration and no server.
    pub fn ask<'a>(&'a self, dir: &'a Path) -> Question<'a> {
        self.question(dir, World::Closed)
    }

    /// Something that may need a server.
    pub fn ask_server<'a>(&'a self, dir: &'a Path) -> Question<'a> {
        self.question(dir, World::Open)
    }

    fn question<'a>(&'a self, dir: &'a Path, world: World) -> Question<'a> {
        Question {
            git: self,
            world,
            args: Vec::new(),
            variables: Vec::new(),
            dir,
            limit: match world {
                World::Closed => Duration::from_secs(20 * 60),
                World::Open => Duration::from_secs(60 * 60),
            },
            most: MOST,
            input: None,
            lock: None,
        }
    }
}

impl<'a> Question<'a> {
    /// A word of the command line.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.args.push(word.as_ref().to_owned());
        self
    }

    /// Words of the command line.
    pub fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.args.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// A variable that git knows.
    pub fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// What it reads.
    pub fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// How much it may answer.
    pub fn most(mut self, bytes: u64) -> Self {
        self.most = bytes;
        self
    }

    /// A lock that is held until nothing of it is left, also when this process is killed.
    pub fn holding(mut self, lock: Option<&'a File>) -> Self {
        self.lock = lock;
        self
    }

    /// Asks, and takes an answer only if it did what it was asked to.
    pub fn get(self, watch: &Watch, scratch: &Path) -> Made<Vec<u8>> {
        let what = self.args.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let answer = self.try_get(watch, scratch)?;
        match answer.success {
            true => Ok(answer.stdout),
            false => Err(failed(FailureKind::Crashed, format!("git {what} failed: {}", answer.said))),
        }
    }

    /// Asks. What it writes meanwhile is in `scratch`.
    pub fn try_get(self, watch: &Watch, scratch: &Path) -> Made<Answer> {
        self.answer(watch, scratch).map_err(|error| match error {
            Unanswered::Io(error) => not_run(&error),
            Unanswered::Stopped => cancelled(),
            Unanswered::TooLate(limit) => {
                failed(FailureKind::Timeout, format!("git took longer than {} minutes", limit.as_secs() / 60))
            }
        })
    }

    fn answer(mut self, watch: &Watch, scratch: &Path) -> Result<Answer, Unanswered> {
        if watch.asked().is_some() {
            return Err(Unanswered::Stopped);
        }
        let own = tempfile::Builder::new().prefix("git-").tempdir_in(files::create_private_dir(scratch)?)?;
        let at = |name: &str| own.path().join(name);
        let (stdout, stderr) = (at("stdout"), at("stderr"));
        let stdin = match self.input.take() {
            Some(bytes) => {
                std::fs::write(at("stdin"), bytes)?;
                Some(at("stdin"))
            }
            None => None,
        };
        let command = self.command(own.path());
        let place = ErrandFiles {
            stdout: &stdout,
            stderr: &stderr,
            stdin: stdin.as_deref(),
            remove_when_abandoned: own.path(),
            lock: self.lock,
        };
        let mut errand = Errand::start(&command, &place)?;
        let (begun, mut too_much) = (Instant::now(), false);
        let status = loop {
            if let Some(status) = errand.wait(GLANCE)? {
                break Some(status);
            }
            too_much = stdout.metadata().is_ok_and(|data| data.len() > self.most);
            let stopped = watch.asked().is_some();
            let late = begun.elapsed() > self.limit;
            if !(too_much || stopped || late) {
                continue;
            }
            errand.stop(Gentle::AtOnce);
            match (stopped, late) {
                (true, _) => return Err(Unanswered::Stopped),
                (_, true) => return Err(Unanswered::TooLate(self.limit)),
                _ => break None,
            }
        };
        let mut answer = Vec::new();
        File::open(&stdout)?.take(self.most + 1).read_to_end(&mut answer)?;
        too_much |= answer.len() as u64 > self.most;
        let success = status.is_some_and(|status| status.success()) && !too_much;
        Ok(Answer { success, stdout: answer, said: end_of(&stderr).unwrap_or_default(), too_much })
    }

    fn command(&self, nowhere: &Path) -> Command {
        let mut command = Command::new(&self.git.program);
        command.current_dir(self.dir).env_clear();
        for (name, value) in self.git.environment.iter() {
            let text = name.to_string_lossy();
            let of_the_way = || OF_THE_WAY.iter().any(|kept| text.starts_with(kept));
            let kept = match self.world {
                World::Closed => matches!(&*text, "PATH" | "TMPDIR"),
                World::Open => !text.starts_with("GIT_") && text != "SSH_ASKPASS" || of_the_way(),
            };
            if kept {
                command.env(name, value);
            }
        }
        match self.world {
            World::Closed => {
                // There is nothing in it.
                command.env("HOME", nowhere).env("XDG_CONFIG_HOME", nowhere);
                command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
                command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ALLOW_PROTOCOL", "none");
            }
            World::Open => {
                command.env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");
                if self.git.environment.get("GIT_SSH_COMMAND").is_none()
                    && self.git.environment.get("GIT_SSH").is_none()
                {
                    command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
                }
            }
        }
        command.env("GIT_ATTR_NOSYSTEM", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_LITERAL_PATHSPECS", "1");
        // Nobody is asked: there is nobody.
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "");
        command.env("LC_ALL", "C.UTF-8").envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.args(NEUTRAL.iter().flat_map(|setting| ["-c", setting])).args(&self.args);
        command
    }
}

enum Unanswered {
    Io(io::Error),
    Stopped,
    TooLate(Duration),
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Unanswered::Io(error)
    }
}

fn not_run(error: &io::Error) -> Box<Failure> {
    let kind = if files::is_full(error) { FailureKind::DiskFull } else { FailureKind::Crashed };
    failed(kind, format!("git could not be run: {error}"))
}

/// The last that it said, in one line.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4 * TOLD as u64)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said: String = lines.join("; ").chars().filter(|character| !is_unsafe(*character)).collect();
    let skipped = said.chars().count().saturating_sub(TOLD);
    Ok(said.chars().skip(skipped).collect())
}
