//! `cargo xtask soak NAME`: the test of the same name, for longer.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::commands::{cargo, follow};

const MINUTES: u64 = 10;
const PROMPTS: u64 = 1000;
const TERMINAL: &str =
    "real_terminal::soak::eight_loops_of_commands_at_once_end_neither_the_server_nor_an_agent";
const SEEDS: u64 = 10;
const JOBS: u64 = 1000;
const REAL_JOBS: u64 = 40;
const BATCH: &str = "queue::chaos::every_job_has_one_result_whoever_is_killed_in_a_cluster_of_three";
const REAL_BATCH: &str = "real_queue::real_cli_every_job_has_one_result_whoever_is_killed";
const WARM: &str = "real_pool::soak::real_cli_each_of_many_prompts_has_one_outcome_and_none_hears_of_another";

pub fn command(words: &[&str]) -> Result<(), String> {
    match words {
        ["terminal", options @ ..] => terminal(options),
        ["warm", options @ ..] => warm(options),
        ["batch", options @ ..] => batch(options),
        _ => Err("only `soak batch`, `soak terminal` and `soak warm` are known".to_owned()),
    }
}

fn terminal(options: &[&str]) -> Result<(), String> {
    let (mut minutes, mut tmux) = (MINUTES, None);
    each(options, |word, value| {
        match word {
            "--minutes" => minutes = number(value)?,
            "--tmux" => tmux = Some(PathBuf::from(value)),
            _ => return Err(format!("{word} is not known")),
        }
        Ok(())
    })?;
    let mut test = test("real", TERMINAL);
    test.env("ALHENA_SOAK_SECONDS", (minutes * 60).to_string());
    if let Some(tmux) = tmux {
        let tmux = std::fs::canonicalize(&tmux).map_err(|error| format!("{}: {error}", tmux.display()))?;
        test.env("ALHENA_SOAK_TMUX", tmux);
    }
    run(test, minutes * 60 + 1800)
}

fn warm(options: &[&str]) -> Result<(), String> {
    let (mut prompts, mut minutes) = (PROMPTS, None);
    each(options, |word, value| {
        match word {
            "--prompts" => prompts = number(value)?,
            "--minutes" => minutes = Some(number(value)?),
            _ => return Err(format!("{word} is not known")),
        }
        Ok(())
    })?;
    let mut test = test("real", WARM);
    test.env("ALHENA_SOAK_PROMPTS", prompts.to_string());
    if let Some(minutes) = minutes {
        test.env("ALHENA_SOAK_SECONDS", (minutes * 60).to_string());
    }
    run(test, minutes.map_or(prompts * 2, |minutes| minutes * 60) + 1800)
}

/// Workers, submitters and servers killed at random: on stand-ins, and on the real CLI.
fn batch(options: &[&str]) -> Result<(), String> {
    let (mut seeds, mut first, mut jobs, mut real_jobs) = (SEEDS, 1, JOBS, REAL_JOBS);
    each(options, |word, value| {
        match word {
            "--seeds" => seeds = number(value)?,
            "--first" => first = number(value)?,
            "--jobs" => jobs = number(value)?,
            "--real-jobs" => real_jobs = number(value)?,
            _ => return Err(format!("{word} is not known")),
        }
        Ok(())
    })?;
    for (binary, name, count) in [("it", BATCH, jobs), ("real", REAL_BATCH, real_jobs)] {
        let mut test = test(binary, name);
        test.env("ALHENA_SOAK_SEEDS", seeds.to_string()).env("ALHENA_SOAK_JOBS", count.to_string());
        test.env("ALHENA_SOAK_REAL_JOBS", count.to_string()).env("ALHENA_SOAK_FIRST", first.to_string());
        run(test, seeds * (600 + count * 12) + 1800)?;
    }
    Ok(())
}

fn each(options: &[&str], mut take: impl FnMut(&str, &str) -> Result<(), String>) -> Result<(), String> {
    let mut rest = options.iter();
    while let Some(word) = rest.next() {
        take(word, rest.next().ok_or_else(|| format!("{word} needs a value"))?)?;
    }
    Ok(())
}

fn number(value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{value} is not a number"))
}

fn test(binary: &str, name: &str) -> Command {
    let mut test = cargo();
    test.args(["test", "--quiet", "--package", "alhena-cli", "--test", binary, "--", "--exact", name]);
    test.arg("--nocapture");
    test
}

fn run(mut test: Command, seconds: u64) -> Result<(), String> {
    match follow(&mut test, Duration::from_secs(seconds), |_| ())? {
        true => Ok(()),
        false => Err("it did not hold".to_owned()),
    }
}
