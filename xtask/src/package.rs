//! `cargo xtask package`: builds the packages of other languages, installs each into an environment with nothing in it,
//! offline, and runs its example there, on the real CLI and the scripted API.
//!
//! To add an ecosystem: a file in `package/` with a function that gives its rows, and a line in [`all`].

mod action;
mod go;
mod npm;
mod platforms;
mod python;
mod sample;
mod versions;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_testbed::cache;
use tempfile::TempDir;

use crate::commands::{cargo, follow, target};

pub use sample::Sample;

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
    /// The profile of cargo that the binary is built with.
    pub profile: String,
    /// What the binary is for, if it is not for this machine.
    pub target: Option<String>,
    pub binary: Option<PathBuf>,
    scratch: TempDir,
}

impl Job {
    fn new(options: &Options) -> Result<Self, String> {
        let scratch = tempfile::Builder::new().prefix("alhena-package-").tempdir();
        let scratch = scratch.map_err(|error| format!("no temporary directory: {error}"))?;
        let Options { out, profile, binary, .. } = options.clone();
        let here = platforms::here()?;
        let target = options.target.clone().filter(|target| *target != here);
        Ok(Self { out, profile, target, binary, scratch })
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

#[derive(Clone, Debug, PartialEq, Eq)]
struct Options {
    names: Vec<String>,
    out: PathBuf,
    profile: String,
    target: Option<String>,
    binary: Option<PathBuf>,
    list: bool,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self, String> {
        let out = cache::workspace().join("target/packages");
        let profile = "release".to_owned();
        let mut options = Self { names: Vec::new(), out, profile, target: None, binary: None, list: false };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{word} needs a value"));
            let path = |text: &str| std::path::absolute(text).map_err(|error| error.to_string());
            match *word {
                "--out" => options.out = path(value()?)?,
                "--profile" => options.profile = (*value()?).to_owned(),
                "--target" => options.target = Some(platforms::of(value()?)?.target),
                "--binary" => options.binary = Some(path(value()?)?),
                "--list" => options.list = true,
                word if word.starts_with('-') => return Err(format!("unknown option {word}")),
                // What people call them first.
                "npm" => options.names.push(npm::ALHENA.to_owned()),
                "python" => options.names.push("alhena".to_owned()),
                name => options.names.push(name.to_owned()),
            }
        }
        if let Some(binary) = options.binary.as_ref().filter(|binary| !binary.is_file()) {
            return Err(format!("{} is no file", binary.display()));
        }
        Ok(options)
    }

    fn choose(&self, all: Vec<Package>) -> Result<Vec<Package>, String> {
        let known: Vec<&str> = all.iter().map(|package| package.name).collect();
        if let Some(unknown) = self.names.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("no package is called {unknown}; there are {}", known.join(", ")));
        }
        let chosen =
            |package: &Package| self.names.is_empty() || self.names.iter().any(|name| name == package.name);
        Ok(all.into_iter().filter(chosen).collect())
    }
}

pub fn command(words: &[&str]) -> Result<(), String> {
    let options = Options::read(words)?;
    let chosen = options.choose(all())?;
    if options.list {
        chosen.iter().for_each(|package| println!("{:32} {}", package.name, package.about));
        return Ok(());
    }
    versions::check()?;
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let (mut table, mut failures) = (Vec::new(), Vec::new());
    for package in chosen {
        match make(&package, &options) {
            Ok(row) => table.push(row),
            Err(message) => failures.push(format!("{}: {message}", package.name)),
        }
    }
    println!("\n{:32} {:>10} {:>8} {:>8}", "package", "size", "build", "try-out");
    table.iter().for_each(|row| println!("{row}"));
    println!("package: {} passed, {} failed", table.len(), failures.len());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn make(package: &Package, options: &Options) -> Result<String, String> {
    let job = Job::new(options)?;
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

#[cfg(test)]
mod tests {
    use super::{Options, Package, size};

    fn packages() -> Vec<Package> {
        ["alhena", "alhena-aiwf"]
            .map(|name| Package { name, about: "", build: |_| Ok(Vec::new()), try_out: |_| Ok(()) })
            .into()
    }

    #[test]
    fn packages_are_chosen_by_name_and_all_of_them_without() {
        let names = |words: &[&str]| -> Result<Vec<&str>, String> {
            Ok(Options::read(words)?.choose(packages())?.iter().map(|package| package.name).collect())
        };
        assert_eq!(names(&[]), Ok(vec!["alhena", "alhena-aiwf"]));
        assert_eq!(names(&["alhena-aiwf", "--profile", "dev"]), Ok(vec!["alhena-aiwf"]));
        let unknown = "no package is called alhna; there are alhena, alhena-aiwf";
        assert_eq!(names(&["alhna"]), Err(unknown.to_owned()));
        assert_eq!(names(&["--out"]), Err("--out needs a value".to_owned()));
        assert_eq!(names(&["--fast"]), Err("unknown option --fast".to_owned()));
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!((size(1234), size(12_345_678)), ("1.2 kB".to_owned(), "12.3 MB".to_owned()));
    }
}
