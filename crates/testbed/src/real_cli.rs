//! The real Gemini CLI, any version, fetched by npm into the cache.
//!
//! Up to 0.36 or so the package was a tree of modules started at `dist/index.js`; later ones are one bundle,
//! `bundle/gemini.js`. The package's own `bin` entry says which.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::bounded::run_bounded;
use crate::cache;

/// The versions to test on, separated by commas or blanks, instead of [`DEFAULT_VERSIONS`].
pub const VERSIONS_VARIABLE: &str = "ALHENA_TEST_CLI_VERSIONS";

/// The versions that every run of the tests uses: the newest known, and the last with sessions as one JSON object.
pub const DEFAULT_VERSIONS: &[&str] = &["0.61.0", "0.38.2"];

/// Further versions that single tests ask for: each is the last or first of a format (no stream, module tree, bundle,
/// JSONL sessions, checkpoints in sessions, prefixed tool ids).
pub const OTHER_VERSIONS: &[&str] = &["0.10.0", "0.30.1", "0.36.0", "0.39.1", "0.44.0", "0.45.2"];

const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// The versions that tests with a version as parameter run on.
pub fn versions() -> Vec<String> {
    match std::env::var(VERSIONS_VARIABLE) {
        Ok(list) if !list.trim().is_empty() => {
            list.split([',', ' ']).filter(|version| !version.is_empty()).map(str::to_owned).collect()
        }
        _ => DEFAULT_VERSIONS.iter().map(|version| (*version).to_owned()).collect(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealCli {
    pub version: String,
    pub dir: PathBuf,
    /// The script to give to node.
    pub entry: PathBuf,
    /// The `gemini` command, as in a project that depends on the package.
    pub bin: PathBuf,
}

impl RealCli {
    /// The CLI of this version, installed if need be.
    pub fn get(version: &str) -> io::Result<Self> {
        let dir = cache::entry(&format!("gemini-cli/{version}"), |directory| install(directory, version))?;
        let entry = entry_of(&dir)?;
        Ok(Self { version: version.to_owned(), bin: dir.join("node_modules/.bin/gemini"), entry, dir })
    }
}

/// Installs a version into an empty directory.
pub(crate) fn install(directory: &Path, version: &str) -> io::Result<()> {
    npm_install(directory, &format!("@google/gemini-cli@{version}"), Optional::Included)?;
    entry_of(directory).map(|_| ())
}

fn entry_of(directory: &Path) -> io::Result<PathBuf> {
    let package = directory.join("node_modules/@google/gemini-cli");
    let manifest: Value = serde_json::from_slice(&std::fs::read(package.join("package.json"))?)?;
    let bin = manifest.get("bin").and_then(|bin| bin.get("gemini").or(Some(bin))).and_then(Value::as_str);
    let entry = package.join(bin.unwrap_or("bundle/gemini.js"));
    match entry.is_file() {
        true => Ok(entry),
        false => Err(io::Error::other(format!("the package has no {}", entry.display()))),
    }
}

/// Whether npm installs the dependencies that a package can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optional {
    Included,
    LeftOut,
}

/// Adds an npm package to a directory, without running their install scripts: nothing that the tests use needs a
/// compiler, and npm's own cache is kept in ours, so that an empty or read-only home is enough.
pub fn npm_install(directory: &Path, package: &str, optional: Optional) -> io::Result<()> {
    let manifest = directory.join("package.json");
    if !manifest.exists() {
        std::fs::write(manifest, "{\"private\":true}\n")?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--ignore-scripts",
        "--loglevel=error",
    ])
    .arg(package)
    .current_dir(directory)
    .env("npm_config_cache", cache::root().join("npm"));
    if optional == Optional::LeftOut {
        npm.arg("--omit=optional");
    }
    if std::env::var_os("HOME").is_none_or(|home| home.is_empty()) {
        npm.env("HOME", cache::root());
    }
    let done = run_bounded(&mut npm, INSTALL_LIMIT).map_err(|error| {
        io::Error::new(error.kind(), format!("npm could not be started (is it installed?): {error}"))
    })?;
    if done.succeeded() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`npm install {package}` failed ({}): {}",
        done.ending(),
        done.stderr_text().trim()
    )))
}
