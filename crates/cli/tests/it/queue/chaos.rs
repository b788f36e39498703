//! Everybody is killed at random moments, and every job has exactly one result, its own.
//!
//! `ALHENA_SOAK_SEEDS` and `ALHENA_SOAK_JOBS` make it more, and `ALHENA_SOAK_FIRST` begins with a later seed; `cargo xtask soak batch` sets
//! them.

use std::time::{Duration, Instant};

use alhena_testbed::nats::{NatsServer, cluster};

use super::jobs;
use crate::fleet::{Flags, Fleet, through_chaos};

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn from_first(seeds: u64) -> impl Iterator<Item = u64> {
    let first = number("ALHENA_SOAK_FIRST", 1);
    first..first + seeds
}

fn one(seed: u64, count: usize, servers: Vec<NatsServer>) {
    let begin = Instant::now();
    let limit = Duration::from_secs(240 + count as u64);
    let mut fleet = Fleet::for_long("chaos", servers, limit + Duration::from_secs(60));
    fleet.write("jobs.jsonl", &jobs(count));
    // Short, because jobs of those who are killed wait for its end.
    let worker = ["--jobs", "2", "--lease", "4s"];
    let flags = Flags { workers: 3, worker: &worker, submit: &[], pause: 600 };
    let harm = through_chaos(&mut fleet, seed, count, limit, &flags);
    fleet.each_heard_its_own(count, seed);
    fleet.nothing_is_left();
    println!("seed {seed}: {count} jobs, {harm:?}, {:.1?}", begin.elapsed());
}

#[test]
fn every_job_has_one_result_whoever_is_killed_in_a_cluster_of_three() {
    let (seeds, count) = (number("ALHENA_SOAK_SEEDS", 1), number("ALHENA_SOAK_JOBS", 100));
    for seed in from_first(seeds) {
        one(seed, count as usize, cluster().unwrap());
    }
}

#[test]
fn every_job_has_one_result_whoever_is_killed_at_one_server() {
    let (seeds, count) = (number("ALHENA_SOAK_SEEDS", 1), number("ALHENA_SOAK_JOBS", 60));
    for seed in from_first(seeds) {
        one(seed ^ 0xA5, count as usize, vec![NatsServer::alone().unwrap()]);
    }
}
