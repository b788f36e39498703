//! `cargo xtask test`: sets up what is missing, then runs every check, and ends with one line that counts.

use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_testbed::cache;

use crate::commands::{cargo, target, works};
use crate::lints::{self, Lint};
use crate::setup;
use crate::stages::{Stages, timed};

#[derive(clap::Args)]
pub struct Options {
    /// Leave out lints and everything on the real CLI
    #[arg(long)]
    pub quick: bool,
    /// Run only tests whose names contain this, and nothing but tests
    pub filter: Option<String>,
}

/// Runs everything. An error without text means that the summary has said it.
pub fn run(options: &Options) -> Result<(), String> {
    let (mut stages, mut left_out) = (Stages::default(), Vec::new());
    let environment = prepare(options, &mut stages, &mut left_out)?;
    let junit = cache::workspace().join("target/nextest").join(profile(options)).join("junit.xml");
    let _ = std::fs::remove_file(&junit);
    let mut runners = vec![main_runner(options), doc_runner(options)];
    if options.filter.is_none() && !options.quick {
        runners.extend([torture(), packages()]);
    }
    for mut runner in runners {
        stages.tests(runner.envs(environment.iter().map(|(name, value)| (name, value))))?;
    }
    print!("{}", stages.times(&std::fs::read_to_string(&junit).unwrap_or_default()));
    left_out.iter().for_each(|why| println!("left out: {why}"));
    println!("{}", stages.total);
    if stages.total.failed == 0 { Ok(()) } else { Err(String::new()) }
}

/// Checks and builds while downloads run, and gives the environment for the tests.
fn prepare(
    options: &Options,
    stages: &mut Stages,
    left_out: &mut Vec<String>,
) -> Result<Vec<(String, String)>, String> {
    setup::check_node()?;
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| timed(|| setup::for_tests(options.quick)));
        if options.filter.is_none() {
            stages.check(cargo().args(["fmt", "--all", "--", "--check"]))?;
            for lint in if options.quick { Vec::new() } else { lints::all() } {
                match lint {
                    Lint::Run(mut command) => stages.check(&mut command)?,
                    Lint::LeftOut(why) => left_out.push(why),
                }
            }
        }
        // This builds the binaries as well.
        stages.check(cargo().args(["test", "--workspace", "--no-run"]).args(targets(options)))?;
        let (environment, time) = fetching.join().map_err(|_| "the downloads ended in a panic".to_owned())?;
        stages.add("downloads, beside the stages above".to_owned(), time);
        environment
    })
}

/// A sample of the attacks, in a process of its own because it changes its own mounts. Always the same ones: whoever wants
/// others asks for them. By cargo, because building may have replaced the program that runs here.
fn torture() -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--", "torture", "--minutes", "2", "--seed", "1"]);
    // The binaries for the tests are there; others would be built with other features.
    command.arg("--no-build");
    command
}

/// Every package, with the binary that is built already instead of the one that is published: two minutes instead of twenty.
fn packages() -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--", "package", "--profile", "dev", "--out"]);
    command.arg(target().join("packages-dev"));
    command
}

fn profile(options: &Options) -> &'static str {
    match std::env::var_os("CI") {
        _ if options.quick => "quick",
        Some(_) => "ci",
        None => "default",
    }
}

/// The quick tests need no binary of tests on the real CLI.
fn targets(options: &Options) -> &'static [&'static str] {
    if options.quick { &["--lib", "--bins", "--test", "it"] } else { &[] }
}

fn main_runner(options: &Options) -> Command {
    let mut command = cargo();
    if works(cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=pass"]);
        command.args(["--profile", profile(options)]).args(targets(options)).args(&options.filter);
        return command;
    }
    eprintln!("cargo-nextest is not installed: using cargo test, without limits on single tests");
    command.args(["test", "--workspace", "--no-fail-fast"]).args(targets(options));
    if !options.quick {
        command.arg("--all-targets");
    }
    command.args(&options.filter).arg("--").arg("--test-threads=2");
    if options.quick {
        command.args(["--skip", "real_cli"]);
        command.args(real_modules().iter().flat_map(|module| ["--skip", module]));
    }
    command
}

fn doc_runner(options: &Options) -> Command {
    let mut command = cargo();
    command.args(["test", "--doc", "--workspace", "--no-fail-fast"]).args(&options.filter);
    command
}

/// The modules of `tests/it` that run the real CLI, by the same rule as `.config/nextest.toml`.
fn real_modules() -> Vec<String> {
    let packages = entries(&cache::workspace().join("crates"));
    let files = packages.iter().flat_map(|package| entries(&package.join("tests/it")));
    let names = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    names.filter(|name| name.starts_with("real_")).map(|name| format!("{name}::")).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::real_modules;

    #[test]
    fn modules_that_run_the_cli_are_found_beside_the_others() {
        let modules = real_modules();
        assert!(modules.contains(&"real_home::".to_owned()), "{modules:?}");
        assert!(!modules.contains(&"home_life::".to_owned()), "{modules:?}");
    }
}
