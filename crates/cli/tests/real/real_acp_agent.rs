//! `alhena acp` with real clients: the protocol's official SDK and acpx, on the real CLI, against the scripted API.

mod acpx;
mod client;
mod ends;
mod lines;
mod sessions;
mod talks;

use std::time::Duration;

use crate::lab::Lab;
use alhena_scripted::Scenario;
use alhena_testbed::{Deadline, processes_with_env};

/// The CLI that these tests talk to.
const VERSION: &str = "0.61.0";

fn lab(name: &str, scenario: Scenario) -> Lab {
    Lab::real(name, VERSION, scenario)
}

/// What every process of this lab has in its environment, and no other.
fn mark(lab: &Lab) -> String {
    format!("ALHENA_HOME={}", lab.home.path().join("alhena").display())
}

fn until_nothing_is_left(lab: &Lab) {
    until_nothing_is_left_but(lab, 0);
}

/// The same while so many processes of the client and of Alhena itself are there.
fn until_nothing_is_left_but(lab: &Lab, expected: usize) {
    until_no_process_is_left_but(lab, expected);
    let left = || directories(lab);
    assert!(Deadline::after(Duration::from_secs(30)).wait_until(|| left() == 0), "{} directories", left());
}

fn until_no_process_is_left_but(lab: &Lab, expected: usize) {
    let mark = mark(lab);
    let left = || processes_with_env(&mark);
    let deadline = Deadline::after(Duration::from_secs(60));
    assert!(deadline.wait_until(|| left().len() <= expected), "{:?}", left());
}

/// How many runs have a directory.
fn directories(lab: &Lab) -> usize {
    std::fs::read_dir(lab.home.path().join("alhena/state/runs")).into_iter().flatten().count()
}
