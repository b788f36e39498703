//! `cargo xtask soak NAME`: the test of the same name, for longer.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::commands::{cargo, follow};

const TERMINAL: &str =
    "real_terminal::soak::eight_loops_of_commands_at_once_end_neither_the_server_nor_an_agent";
const BATCH: &str = "queue::chaos::every_job_has_one_result_whoever_is_killed_in_a_cluster_of_three";
const REAL_BATCH: &str = "real_queue::real_cli_every_job_has_one_result_whoever_is_killed";
const WARM: &str = "real_pool::soak::real_cli_each_of_many_prompts_has_one_outcome_and_none_hears_of_another";

#[derive(clap::Subcommand)]
pub enum Soak {
    /// Run batches on workers and kill them at random, on stand-ins and on the real CLI: every job has one result
    Batch {
        #[arg(long, default_value_t = 10)]
        seeds: u64,
        #[arg(long, default_value_t = 1)]
        first: u64,
        #[arg(long, default_value_t = 1000)]
        jobs: u64,
        #[arg(long, default_value_t = 40)]
        real_jobs: u64,
    },
    /// Run eight agents and eight loops of commands: nothing may end
    Terminal {
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        #[arg(long)]
        tmux: Option<PathBuf>,
    },
    /// Send prompts through the pool with stops, kills and slow answers
    Warm {
        #[arg(long, default_value_t = 1000)]
        prompts: u64,
        #[arg(long)]
        minutes: Option<u64>,
    },
}

pub fn command(soak: Soak) -> Result<(), String> {
    match soak {
        Soak::Terminal { minutes, tmux } => {
            let mut test = test("real", TERMINAL);
            test.env("ALHENA_SOAK_SECONDS", (minutes * 60).to_string());
            if let Some(tmux) = tmux {
                let found = std::fs::canonicalize(&tmux);
                test.env("ALHENA_SOAK_TMUX", found.map_err(|error| format!("{}: {error}", tmux.display()))?);
            }
            run(test, minutes * 60 + 1800)
        }
        Soak::Warm { prompts, minutes } => {
            let mut test = test("real", WARM);
            test.env("ALHENA_SOAK_PROMPTS", prompts.to_string());
            test.envs(minutes.map(|minutes| ("ALHENA_SOAK_SECONDS", (minutes * 60).to_string())));
            run(test, minutes.map_or(prompts * 2, |minutes| minutes * 60) + 1800)
        }
        Soak::Batch { seeds, first, jobs, real_jobs } => {
            for (binary, name, count) in [("it", BATCH, jobs), ("real", REAL_BATCH, real_jobs)] {
                let mut test = test(binary, name);
                test.env("ALHENA_SOAK_SEEDS", seeds.to_string()).env("ALHENA_SOAK_JOBS", count.to_string());
                test.env("ALHENA_SOAK_REAL_JOBS", count.to_string());
                test.env("ALHENA_SOAK_FIRST", first.to_string());
                run(test, seeds * (600 + count * 12) + 1800)?;
            }
            Ok(())
        }
    }
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
