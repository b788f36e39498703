//! `cargo xtask torture`: stops at random moments, daemons, faults and attacks, as many as fit into the time, each with a check of
//! every promise afterwards. Everything happens below one temporary directory and is gone with it.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`plan`] | what happens in a trial, from its seed alone |
//! | [`place`] | the private place of a trial; [`traps`] and [`secrets`] put things there |
//! | [`agent`] | what the stand-in or the scripted model does |
//! | [`stop`] | stopping a run at the right moment |
//! | [`trial`] | one trial from its start to its findings |
//! | [`verdict`], [`after`], [`members`] | the checks |
//! | [`report`] | what is told while it goes on, and at the end |

mod after;
mod agent;
mod members;
mod place;
mod plan;
mod report;
mod secrets;
mod stop;
mod traps;
mod trial;
mod verdict;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alhena_sys::signals::{self, Noted};
use alhena_testbed::{Deadline, RealCli};

use self::place::Programs;
use self::plan::{Dice, Kind, Plan};
use self::report::{Failure, Report};
use crate::commands::{cargo, follow, target};

const CLI: &str = "0.61.0";
const BUILD_LIMIT: Duration = Duration::from_secs(1800);

/// `cargo xtask torture ...`. An error without text means that the report has said it.
pub fn command(options: &Options) -> Result<(), String> {
    let failed = run(options)?;
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

/// Runs trials until the time is over, and says how many failed.
pub fn run(options: &Options) -> Result<u64, String> {
    // Before there are other threads.
    let can_mount = place::own_mounts().is_ok();
    let interrupted = Noted::of(&signals::ENDING).map_err(|error| error.to_string())?;
    let programs = programs(can_mount, !options.no_build)
        .map_err(|error| format!("the place of the trials: {error}"))?;
    if !can_mount {
        eprintln!("torture: disks cannot be mounted here, so none is full");
    }
    let seed = options.seed();
    let report = Report::new(options, seed);
    let deadline = Deadline::after(options.time());
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while !interrupted.has_come() && !deadline.passed() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(plan) = options.plan(seed, number, programs.real.is_some()) else { return };
                    one(&plan, &programs, &report);
                }
            });
        }
    });
    report.end();
    Ok(report.failed())
}

fn one(plan: &Plan, programs: &Programs, report: &Report) {
    let findings = trial::run(plan, programs);
    let failure = (!findings.is_empty()).then(|| Failure { plan: plan.clone(), findings });
    report.ended(plan.kind, failure);
}

/// Builds what is attacked, unless it is there, and copies it: a build beside us must not change it.
fn programs(can_mount: bool, build: bool) -> std::io::Result<Programs> {
    let mut builder = cargo();
    builder.args(["build", "--quiet", "--workspace", "--bins"]);
    if build && !follow(&mut builder, BUILD_LIMIT, |_| ()).map_err(std::io::Error::other)? {
        return Err(std::io::Error::other("alhena does not build"));
    }
    let directory = tempfile::Builder::new().prefix("alhena-torture-").tempdir()?;
    for name in ["alhena", "hostile"] {
        std::fs::copy(target().join("debug").join(name), directory.path().join(name))?;
    }
    let real =
        RealCli::get(CLI).inspect_err(|error| eprintln!("torture: without the real CLI: {error}")).ok();
    Ok(Programs { directory, can_mount, real: real.map(|cli| cli.bin) })
}

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Begin no new trial after this many minutes
    #[arg(long, default_value_t = 2)]
    minutes: u64,
    #[arg(long, conflicts_with = "minutes")]
    seconds: Option<u64>,
    /// Seed of all trials; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Run only the trial with this seed
    #[arg(long)]
    trial: Option<u64>,
    #[arg(long, value_parser = Kind::read)]
    pub kind: Option<Kind>,
    /// Maximum number of trials
    #[arg(long)]
    most: Option<u64>,
    /// Maximum concurrent trials
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: u8,
    /// Print the report as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Use binaries that are already built
    #[arg(long)]
    pub no_build: bool,
}

impl Options {
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(self.minutes * 60))
    }

    /// The seed of this run.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Dice::new(u64::try_from(now.as_nanos()).unwrap_or_default()).next() >> 32
        })
    }

    /// The trial with this number; none when there are no more.
    pub fn plan(&self, seed: u64, number: u64, has_real_cli: bool) -> Option<Plan> {
        if self.most.is_some_and(|most| number >= most) || (self.trial.is_some() && number > 0) {
            return None;
        }
        let seed = self.trial.unwrap_or_else(|| Dice::trial(seed, number));
        let plan = Plan::of(seed, self.kind);
        // Where it could not be fetched, other trials take its place.
        if plan.real && !has_real_cli { Some(Plan::of(seed, Some(Kind::Stop))) } else { Some(plan) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::Options;

    #[derive(Debug, Parser)]
    struct Torture {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_trial_is_repeated_alone_and_an_unknown_kind_is_refused() {
        let options = Torture::parse_from(["torture", "--trial", "99", "--kind", "stop"]).options;
        assert_eq!(options.plan(7, 0, true).map(|plan| plan.seed), Some(99));
        assert_eq!(options.plan(7, 1, true), None);
        assert!(Torture::try_parse_from(["torture", "--kind", "x"]).is_err());
    }
}
