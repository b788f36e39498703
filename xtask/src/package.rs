//! `cargo xtask package`: builds the packages of other languages, installs each into an environment with nothing in it,
//! offline, and runs its example there, on the real CLI and the scripted API.
//!
//! To add an ecosystem: a file in `package/` with a function that gives its rows, and a line in [`all`].

mod action;
mod go;
mod npm;
mod platforms;
mod python;
mod versions;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_scripted::{Scenario, Server, Turn};
use alhena_testbed::{PrivateHome, RealCli, Trust, cache, versions};
use platforms::Platform;
use serde_json::json;
use tempfile::TempDir;

use crate::commands::{cargo, follow, target};

/// No step takes longer; the longest compiles everything with optimisations on busy cores.
const STEP_LIMIT: Duration = Duration::from_secs(90 * 60);

pub struct Package {
    pub name: &'static str,
    pub about: &'static str,
    /// Builds it into [`Job::out`] and gives the files to publish.
    pub build: fn(&Job) -> Result<Vec<PathBuf>, String>,
    /// Installs it where nothing is, runs its checks and its example.
    pub try_out: fn(&Job) -> Result<(), String>,
}

fn all() -> Vec<Package> {
    [python::packages(), npm::packages(), go::packages(), action::packages()].into_iter().flatten().collect()
}

pub struct Job {
    pub out: PathBuf,
    /// Cargo profile of the binary.
    pub profile: String,
    /// Platform of the binary, if it is another one than this machine's.
    pub target: Option<String>,
    pub binary: Option<PathBuf>,
    scratch: TempDir,
}

impl Job {
    fn new(options: &Options, out: &Path) -> Result<Self, String> {
        let scratch = tempfile::Builder::new().prefix("alhena-package-").tempdir();
        let scratch = scratch.map_err(|error| format!("no temporary directory: {error}"))?;
        let (profile, binary) = (options.profile.clone(), options.binary.clone());
        let here = platforms::here()?;
        let target = options.target.as_ref().map(|platform| platform.target.clone());
        let target = target.filter(|target| *target != here);
        Ok(Self { out: out.to_owned(), profile, target, binary, scratch })
    }

    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }
}

pub fn step(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match follow(command, STEP_LIMIT, |_| ())? {
        true => Ok(()),
        false => Err(format!("{program} failed")),
    }
}

/// The binary: the one that was given, or one built in the profile of the job.
fn alhena(job: &Job) -> Result<PathBuf, String> {
    if let Some(binary) = &job.binary {
        return Ok(binary.clone());
    }
    let mut build = cargo();
    build.args(["build", "--locked", "--package", "alhena-cli", "--profile", &job.profile]);
    let mut directory = target();
    if let Some(target) = &job.target {
        platforms::can_build(target).map_err(|why| format!("{why}, or give a binary by --binary"))?;
        build.args(["--target", target]);
        directory.push(target);
    }
    step(&mut build)?;
    Ok(directory.join(if job.profile == "dev" { "debug" } else { &job.profile }).join("alhena"))
}

#[derive(clap::Args)]
pub struct Options {
    /// Packages to build; all by default
    names: Vec<String>,
    /// Directory for finished packages [default: target/packages]
    #[arg(long, value_parser = absolute)]
    out: Option<PathBuf>,
    /// Cargo profile of the binary
    #[arg(long, default_value = "release")]
    profile: String,
    /// Platform of the binary, if it is another one than this machine's
    #[arg(long, value_name = "TRIPLE", value_parser = platforms::of)]
    target: Option<Platform>,
    /// Binary that is already built
    #[arg(long, value_parser = file)]
    binary: Option<PathBuf>,
    /// List the packages
    #[arg(long)]
    list: bool,
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| error.to_string())
}

fn file(path: &str) -> Result<PathBuf, String> {
    absolute(path).and_then(|path| if path.is_file() { Ok(path) } else { Err("it is no file".to_owned()) })
}

impl Options {
    fn choose(&self, all: Vec<Package>) -> Result<Vec<Package>, String> {
        let known: Vec<&str> = all.iter().map(|package| package.name).collect();
        // What people call them first.
        let full = |name: &String| match name.as_str() {
            "npm" => npm::ALHENA.to_owned(),
            "python" => "alhena".to_owned(),
            name => name.to_owned(),
        };
        let names: Vec<String> = self.names.iter().map(full).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("no package is called {unknown}; there are {}", known.join(", ")));
        }
        let chosen = |package: &Package| names.is_empty() || names.iter().any(|name| name == package.name);
        Ok(all.into_iter().filter(chosen).collect())
    }
}

pub fn command(options: &Options) -> Result<(), String> {
    let chosen = options.choose(all())?;
    if options.list {
        chosen.iter().for_each(|package| println!("{:32} {}", package.name, package.about));
        return Ok(());
    }
    versions::check()?;
    let out = options.out.clone().unwrap_or_else(|| cache::workspace().join("target/packages"));
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let (mut table, mut failures) = (Vec::new(), Vec::new());
    for package in chosen {
        match make(&package, options, &out) {
            Ok(row) => table.push(row),
            Err(message) => failures.push(format!("{}: {message}", package.name)),
        }
    }
    println!("\n{:32} {:>10} {:>8} {:>8}", "package", "size", "build", "try-out");
    table.iter().for_each(|row| println!("{row}"));
    println!("package: {} passed, {} failed", table.len(), failures.len());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn make(package: &Package, options: &Options, out: &Path) -> Result<String, String> {
    let job = Job::new(options, out)?;
    let begin = Instant::now();
    let files = (package.build)(&job)?;
    let built = begin.elapsed();
    match &job.target {
        None => (package.try_out)(&job)?,
        Some(target) => eprintln!("{}: not tried out, it is for {target}", package.name),
    }
    let bytes: u64 = files.iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum();
    let tried = begin.elapsed() - built;
    Ok(format!(
        "{:32} {:>10} {:>6.1} s {:>6.1} s",
        package.name,
        size(bytes),
        built.as_secs_f64(),
        tried.as_secs_f64()
    ))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Where an example runs: a home of its own, the real CLI, a scripted API.
pub struct Sample {
    home: PrivateHome,
    cli: RealCli,
    server: Server,
    url: String,
}

impl Sample {
    /// The model writes `haiku.txt` and says "Here it is.", however often it is asked.
    pub fn new() -> Result<Self, String> {
        let write = json!({"file_path": "haiku.txt", "content": "rivers\n"});
        let turns = |scenario: Scenario, _| {
            scenario.turn(Turn::new().call("write_file", write.clone())).turn(Turn::say("Here it is."))
        };
        Self::with((0..8).fold(Scenario::new(), turns))
    }

    pub fn with(scenario: Scenario) -> Result<Self, String> {
        let version = versions().into_iter().next().ok_or("no release of the CLI is named for tests")?;
        let tell = |error: std::io::Error| error.to_string();
        let server = Server::start().map_err(tell)?;
        let url = server.add("example", scenario);
        let home = PrivateHome::with(Trust::Untrusted).map_err(tell)?;
        Ok(Self { home, cli: RealCli::get(&version).map_err(tell)?, server, url })
    }

    pub fn workspace(&self) -> PathBuf {
        self.home.workspace()
    }

    pub fn requests(&self) -> usize {
        self.server.requests("example").len()
    }

    /// The example's file is there: the example ran on the real CLI and the model was asked.
    pub fn wrote_haiku(&self) -> Result<(), String> {
        let file = self.workspace().join("haiku.txt");
        match (std::fs::read_to_string(&file), self.requests()) {
            (Ok(text), asked) if text == "rivers\n" && asked > 0 => Ok(()),
            (found, asked) => {
                Err(format!("{}: {found:?}, the model was asked {asked} times", file.display()))
            }
        }
    }

    /// Gives a command this environment and nothing else, and the workspace to work in.
    pub fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(self.home.workspace())
            .env_clear()
            .envs(self.home.env(&self.url))
            .env("ALHENA_HOME", self.home.path().join("alhena"))
            .env("GEMINI_CLI_PATH", &self.cli.bin)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Options, Package, size};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn packages() -> Vec<Package> {
        ["alhena", "alhena-aiwf"]
            .map(|name| Package { name, about: "", build: |_| Ok(Vec::new()), try_out: |_| Ok(()) })
            .into()
    }

    #[test]
    fn packages_are_chosen_by_name_and_all_of_them_without() {
        let names = |names: &[&str]| -> Result<Vec<&str>, String> {
            let words = std::iter::once("package").chain(names.iter().copied());
            let chosen = Command::parse_from(words).options.choose(packages())?;
            Ok(chosen.iter().map(|package| package.name).collect())
        };
        assert_eq!(names(&[]), Ok(vec!["alhena", "alhena-aiwf"]));
        assert_eq!(names(&["alhena-aiwf", "--profile", "dev"]), Ok(vec!["alhena-aiwf"]));
        assert_eq!(names(&["python"]), Ok(vec!["alhena"]));
        let unknown = "no package is called alhna; there are alhena, alhena-aiwf";
        assert_eq!(names(&["alhna"]), Err(unknown.to_owned()));
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!((size(1234), size(12_345_678)), ("1.2 kB".to_owned(), "12.3 MB".to_owned()));
    }
}
