//! Where tools come from: npm, PyPI and crates.io, installed into the cache.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::bounded::{Finished, run_bounded};
use crate::real_cli::{Optional, npm_install};

/// Long enough to compile a tool on two busy cores.
const LIMIT: Duration = Duration::from_secs(1800);

/// What fills the directory of a tool. In names `{version}` is the tool's, and `{platform}` this machine's.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// Packages of npm, without the dependencies that they can do without.
    Npm(&'static [&'static str]),
    /// Packages of PyPI. Not in a virtual environment: that would not survive being moved to its place in the cache.
    Pip(&'static [&'static str]),
    /// A package of PyPI without what it depends on.
    PipAlone(&'static str),
    Cargo,
    /// Anything else, by the directory and the version.
    Other(fn(&Path, &str) -> io::Result<()>),
}

impl Source {
    pub(super) fn install(self, directory: &Path, name: &str, version: &str) -> io::Result<()> {
        let filled = |names: &[&str]| -> io::Result<Vec<String>> {
            names.iter().map(|name| filled(name, version)).collect()
        };
        match self {
            Self::Npm(packages) => filled(packages)?
                .iter()
                .try_for_each(|package| npm_install(directory, package, Optional::LeftOut)),
            Self::Pip(packages) => pip_install(directory, &filled(packages)?),
            Self::PipAlone(package) => {
                pip_install(directory, &["--no-deps".to_owned(), format!("{package}=={version}")])
            }
            Self::Cargo => cargo_install(directory, name, version),
            Self::Other(install) => install(directory, version),
        }
    }
}

/// A name or a path with what is different from version to version and from machine to machine.
pub(super) fn filled(text: &str, version: &str) -> io::Result<String> {
    let text = text.replace("{version}", version);
    Ok(if text.contains("{platform}") { text.replace("{platform}", npm_platform()?) } else { text })
}

/// This machine, as npm packages with binaries name it.
fn npm_platform() -> io::Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("linux-x64"),
        ("linux", "aarch64") => Ok("linux-arm64"),
        ("macos", "aarch64") => Ok("darwin-arm64"),
        (system, machine) => {
            Err(io::Error::other(format!("no binary packages are known for {system} on {machine}")))
        }
    }
}

/// Its optional dependencies are the SDKs of everybody, 1.6 GB; of them only the database's binary is needed.
pub(super) fn promptfoo_with_its_database(directory: &Path, version: &str) -> io::Result<()> {
    let platform = npm_platform()?;
    let libc = if platform.starts_with("linux") { "-gnu" } else { "" };
    npm_install(directory, &format!("promptfoo@{version}"), Optional::LeftOut)?;
    let database = std::fs::read(directory.join("node_modules/libsql/package.json"))?;
    let database: serde_json::Value = serde_json::from_slice(&database)?;
    let database = database.get("version").and_then(serde_json::Value::as_str).unwrap_or("latest");
    npm_install(directory, &format!("@libsql/{platform}{libc}@{database}"), Optional::LeftOut)
}

/// Without the command that comes with it, 350 MB: another one is what is tested.
pub(super) fn claude_sdk(directory: &Path, version: &str) -> io::Result<()> {
    pip_install(directory, &[format!("claude-agent-sdk=={version}")])?;
    std::fs::remove_dir_all(directory.join("claude_agent_sdk/_bundled"))
}

fn pip_install(directory: &Path, what: &[String]) -> io::Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--target"])
        .arg(directory)
        .args(what);
    check(&mut pip, &format!("pip install {}", what.join(" "))).map(|_| ())
}

fn cargo_install(directory: &Path, name: &str, version: &str) -> io::Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["install", name, "--locked", "--quiet", "--version", version, "--root"]).arg(directory);
    cargo.env("CARGO_TARGET_DIR", directory.join("target"));
    check(&mut cargo, &format!("cargo install {name}"))?;
    std::fs::remove_dir_all(directory.join("target"))
}

/// Runs a command that has to succeed.
pub(super) fn check(command: &mut Command, what: &str) -> io::Result<Finished> {
    let done = run_bounded(command, LIMIT)?;
    if done.succeeded() {
        return Ok(done);
    }
    Err(io::Error::other(format!("{what} failed ({}): {}", done.ending(), done.stderr_text().trim())))
}
