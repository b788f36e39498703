//! Sessions on the real CLI, and their pages in a real browser.

#[path = "../../../hosts/tests/shapes/validator.rs"]
mod validator;

mod beside;
mod browser;
mod joined;
mod repaired;
mod retries;
mod stopped;

use std::time::Duration;

use crate::lab::Lab;
use alhena_testbed::{Finished, run_bounded};

/// `alhena ...` as a person would type it in the workspace of a lab.
fn alhena(lab: &Lab, args: &[&str]) -> Finished {
    run_bounded(&mut lab.alhena(args), Duration::from_secs(120)).unwrap()
}

/// The same, which has to succeed; what it printed.
fn printed(lab: &Lab, args: &[&str]) -> String {
    let done = alhena(lab, args);
    assert!(done.succeeded(), "{args:?} {}: {} {}", done.ending(), done.stdout_text(), done.stderr_text());
    done.stdout_text()
}
