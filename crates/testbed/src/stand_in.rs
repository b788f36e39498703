//! The side of the stand-in that tests use: where the binary is, what it was told to do, what it saw, who of it lives.
//!
//! Cargo tells only a package's own tests where its binaries are, and tests of other packages need this one: it is looked
//! for beside the running test and built on demand.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use alhena_sys::processes::Signal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::bounded::run_bounded;
use crate::cache::{Lock, workspace};
use crate::processes::{alive, executable, signal};
use crate::script::{
    DUMP_VARIABLE, LIFETIME_VARIABLE, PIDS_VARIABLE, SCRIPT_VARIABLE, Script, VERSION_VARIABLE,
};

/// Set to the path of a stand-in that is already built; `cargo xtask test` does that.
pub const PATH_VARIABLE: &str = "ALHENA_TEST_HOSTILE";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// All arguments, with the program's name.
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: String,
    pub pid: u32,
    /// Stdin to its end, or nothing when it was not read.
    pub stdin: Option<StdinSeen>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdinSeen {
    pub bytes: u64,
    pub sha256: String,
    /// The text itself, if it is UTF-8 and not larger than 64 KiB.
    pub text: Option<String>,
}

impl StdinSeen {
    pub fn of(bytes: &[u8]) -> Self {
        let text =
            if bytes.len() <= 1 << 16 { std::str::from_utf8(bytes).ok().map(str::to_owned) } else { None };
        Self { bytes: bytes.len() as u64, sha256: sha256(bytes), text }
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path of the `hostile` binary, built if it is missing or older than its sources.
pub fn hostile_path() -> io::Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = FOUND.get() {
        return Ok(path.clone());
    }
    let path = match std::env::var_os(PATH_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => beside_this_test()?,
    };
    Ok(FOUND.get_or_init(|| path).clone())
}

fn beside_this_test() -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let parent = test.parent().unwrap_or(Path::new("."));
    let profile =
        if parent.ends_with("deps") || parent.ends_with("examples") { parent.parent() } else { Some(parent) };
    let profile = profile.unwrap_or(parent);
    let path = profile.join(format!("hostile{}", std::env::consts::EXE_SUFFIX));
    let target = profile.parent().unwrap_or(profile);
    if is_stale(&path)? {
        let _lock = Lock::take(&target.join(".hostile.lock"))?;
        if is_stale(&path)? {
            build(target, profile, &path)?;
        }
    }
    Ok(path)
}

fn build(target: &Path, profile: &Path, path: &Path) -> io::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--quiet", "--package", "alhena-testbed", "--bin", "hostile", "--target-dir"])
        .arg(target);
    // A directory has the name of its profile, but for the one of every day.
    if let Some(name) = profile.file_name().filter(|name| *name != "debug") {
        cargo.arg("--profile").arg(name);
    }
    cargo.current_dir(workspace());
    let built = run_bounded(&mut cargo, Duration::from_secs(600))?;
    if !built.succeeded() {
        return Err(io::Error::other(format!("building the stand-in failed: {}", built.stderr_text())));
    }
    // Cargo leaves a binary alone whose inputs did not change in content; touch it, or every test would ask again.
    std::fs::File::options().append(true).open(path)?.set_modified(SystemTime::now())
}

/// Whether the binary has to be built: it is missing, or a source of it is newer.
fn is_stale(binary: &Path) -> io::Result<bool> {
    let Ok(built) = binary.metadata().and_then(|data| data.modified()) else { return Ok(true) };
    let sources = workspace().join("crates/testbed/src");
    let bin = sources.join("bin/hostile");
    for directory in [sources, bin] {
        for entry in std::fs::read_dir(directory)? {
            let data = entry?.metadata()?;
            if data.is_file() && data.modified()? > built {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A stand-in for one test: its script, the files it reports to, and the end of all its processes when dropped.
#[derive(Debug)]
pub struct Hostile {
    directory: TempDir,
    path: PathBuf,
    script: Script,
    version: Option<String>,
    lifetime: Option<Duration>,
}

impl Hostile {
    pub fn new(script: Script) -> io::Result<Self> {
        Ok(Self {
            directory: tempfile::Builder::new().prefix("hostile-").tempdir()?,
            path: hostile_path()?,
            script,
            version: None,
            lifetime: None,
        })
    }

    pub fn version(mut self, text: &str) -> Self {
        self.version = Some(text.to_owned());
        self
    }

    /// Kills itself after this time (whole seconds) instead of the default.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// The program to launch in place of `gemini`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What has to be in the environment of the program.
    pub fn env(&self) -> Vec<(String, String)> {
        let file = |name: &str| self.directory.path().join(name).to_string_lossy().into_owned();
        let mut env = vec![
            (SCRIPT_VARIABLE.to_owned(), self.script.to_json()),
            (DUMP_VARIABLE.to_owned(), file("starts.jsonl")),
            (PIDS_VARIABLE.to_owned(), file("pids")),
        ];
        env.extend(self.version.iter().map(|text| (VERSION_VARIABLE.to_owned(), text.clone())));
        env.extend(
            self.lifetime.iter().map(|time| (LIFETIME_VARIABLE.to_owned(), time.as_secs().to_string())),
        );
        env
    }

    /// The program with its environment, ready to be started.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.envs(self.env());
        command
    }

    /// How it was started, each time, `--version` included.
    pub fn starts(&self) -> io::Result<Vec<Start>> {
        self.told("starts.jsonl")?
            .lines()
            .map(|line| serde_json::from_str(line).map_err(io::Error::other))
            .collect()
    }

    /// Every process that it ever was.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        Ok(self.told("pids")?.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// What it has written to one of its files so far.
    fn told(&self, file: &str) -> io::Result<String> {
        match std::fs::read_to_string(self.directory.path().join(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => other,
        }
    }

    /// Those of its processes that still live. A pid that now belongs to another program does not count.
    pub fn survivors(&self) -> io::Result<Vec<u32>> {
        let own = self.path.canonicalize()?;
        let lives = |pid: &u32| alive(*pid) && executable(*pid).is_none_or(|program| program == own);
        Ok(self.pids()?.into_iter().filter(lives).collect())
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        // A storm goes on while we look, hence more than one pass; what escapes ends by its lifetime.
        for _ in 0..50 {
            let survivors = self.survivors().unwrap_or_default();
            if survivors.is_empty() {
                return;
            }
            survivors.into_iter().for_each(|pid| signal(pid, Signal::KILL));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
