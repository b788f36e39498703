//! `cargo xtask torture`: stops at random moments, daemons, faults and attacks, as many as fit into the time, each with a check of
//! every promise afterwards. Everything happens below one temporary directory and is gone with it.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`plan`] | what happens in a trial, from its seed alone ([`dice`]) |
//! | [`place`] | the private place of a trial; [`traps`] and [`secrets`] put things there |
//! | [`agent`] | what the stand-in or the scripted model does |
//! | [`stop`] | stopping a run at the right moment |
//! | [`trial`] | one trial from its start to its findings |
//! | [`verdict`], [`after`], [`home`], [`members`] | the checks |
//! | [`report`] | what is told while it goes on, and at the end |

mod after;
mod agent;
mod dice;
mod home;
mod members;
mod options;
mod place;
mod plan;
mod report;
mod secrets;
mod stop;
mod system;
mod traps;
mod trial;
mod verdict;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alhena_sys::signals::{self, Noted};
use alhena_testbed::{Deadline, RealCli};

use crate::commands::{cargo, follow, target};
pub use options::Options;
use place::Programs;
use plan::Plan;
use report::{Failure, Report};

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
    let can_mount = system::own_mounts().is_ok();
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
