//! `cargo xtask bench NAME`: measurements against a baseline, both in the same run and interleaved, because the machines
//! that run this are noisy: ratios mean something, single figures do not.

mod batch;
mod data;
mod hooks;
mod measure;
mod parse;
mod queue;
mod run;
mod serve;
mod sessions;
mod terminal;
mod warm;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_scripted::{Scenario, Server};
use alhena_testbed::{PrivateHome, RealCli, Trust};

use crate::commands::{cargo, follow, target};

/// The release of the real CLI.
const VERSION: &str = "0.61.0";
const MODEL: &str = "gemini-2.5-flash";

struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&[&str]) -> Result<(), String>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "batch",
        about: "many prompts by alhena batch, warm and cold, against xargs -P gemini: jobs a minute and core, memory",
        run: batch::run,
    },
    Bench {
        name: "hooks",
        about: "what a hook adds to a tool call, against none and against a native one that does nothing",
        run: hooks::run,
    },
    Bench {
        name: "parse",
        about: "stream-json to events, against Node's readline and JSON.parse",
        run: parse::run,
    },
    Bench {
        name: "queue",
        about: "what NATS adds to a job: a batch here against one by a worker, and the queue alone with its messages and bytes",
        run: queue::run,
    },
    Bench { name: "run", about: "alhena run, against the bare gemini command", run: run::run },
    Bench {
        name: "serve",
        about: "200 readers of one run by events, against as many that ask again and again; a start over HTTP",
        run: serve::run,
    },
    Bench {
        name: "sessions",
        about: "sessions to messages against a plain Node loader; list and search",
        run: sessions::run,
    },
    Bench {
        name: "terminal",
        about: "how soon and how truly a status is told, against the document's rule; reading screens",
        run: terminal::run,
    },
    Bench {
        name: "warm",
        about: "a prompt by gemini, acpx, gemini-cli-sdk, alhena run, the pool and a conversation: CPU, memory, delay",
        run: warm::run,
    },
];

/// Runs the one that was named, as what ships is built; with `--as-built` in front as this was built, to try it out.
pub fn run(words: &[&str]) -> Result<(), String> {
    let (words, as_built) = match words {
        ["--as-built", rest @ ..] => (rest, true),
        words => (words, false),
    };
    let Some((name, rest)) = words.split_first() else {
        for bench in BENCHES {
            println!("{:10} {}", bench.name, bench.about);
        }
        return Ok(());
    };
    let bench = BENCHES.iter().find(|bench| bench.name == *name);
    let bench = bench.ok_or_else(|| format!("there is no bench {name}; `cargo xtask bench` lists them"))?;
    if cfg!(debug_assertions) && !as_built {
        let mut release = cargo();
        release.args(["run", "--release", "--quiet", "--package", "xtask", "--", "bench"]).args(words);
        let ended_well = follow(&mut release, Duration::from_secs(3600), |_| ())?;
        return if ended_well { Ok(()) } else { Err(String::new()) };
    }
    (bench.run)(rest)
}

/// Builds the program that is measured, and gives its path.
fn build() -> Result<PathBuf, String> {
    let (profile, directory) = if cfg!(debug_assertions) { ("dev", "debug") } else { ("release", "release") };
    let mut build = cargo();
    build.args(["build", "--profile", profile, "--quiet", "--package", "alhena-cli"]);
    if !follow(&mut build, Duration::from_secs(1800), |_| ())? {
        return Err("alhena does not build".to_owned());
    }
    Ok(target().join(directory).join("alhena"))
}

/// The number at a place of the arguments.
fn number<T: FromStr>(words: &[&str], index: usize, usual: T) -> Result<T, String> {
    words.get(index).map_or(Ok(usual), |word| word.parse().map_err(|_| format!("{word} is not a number")))
}

/// The real CLI in a home of its own, before a scripted API.
struct Lab {
    alhena: PathBuf,
    cli: PathBuf,
    home: PrivateHome,
    server: Server,
    environment: Environment,
}

impl Lab {
    /// The scenario of the API is called `bench`.
    fn new(alhena: PathBuf, scenario: Scenario) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let cli = RealCli::get(VERSION).map_err(text)?.bin;
        let home = PrivateHome::with(Trust::Trusted).map_err(text)?;
        let server = Server::start().map_err(text)?;
        let url = server.add("bench", scenario);
        let mut environment: Environment = home.env(&url).into_iter().collect();
        environment.set("ALHENA_HOME", home.path().join("alhena")).set("ALHENA_KEEPER", &alhena);
        Ok(Self { alhena, cli, home, server, environment })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment.iter()).current_dir(self.home.workspace());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

/// The middle of some figures (the mean of the two middle ones).
fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => middle(count / 2),
        count => f64::midpoint(middle(count / 2 - 1), middle(count / 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::{BENCHES, median};

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn names_are_different() {
        let names: std::collections::BTreeSet<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        assert_eq!(names.len(), BENCHES.len());
    }
}
