//! `alhena serve` against stand-ins: who gets in, what is refused, and what is survived.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "../lab/mod.rs"]
mod lab;
#[path = "../serve_client/mod.rs"]
mod serve_client;

mod batches;
mod contract;
mod gate;
mod hostile;
mod limits;
mod restart;
mod runs;
mod talks;

use alhena_testbed::{Child, Script, Step};
use lab::HostileLab;
use serve_client::Served;

/// A stand-in that says this and ends.
fn says(name: &str, text: &str) -> HostileLab {
    let steps = [Step::Init, Step::User, Step::Text(text.to_owned()), Step::Result];
    HostileLab::new(name, Script::new(steps))
}

/// A stand-in that says something and goes on until it is stopped.
fn goes_on(name: &str) -> HostileLab {
    let steps = [Step::Init, Step::Text("begun".to_owned()), Step::Spawn(Child::default()), Step::Hang];
    HostileLab::new(name, Script::new(steps))
}

fn serve(place: &HostileLab, args: &[&str]) -> Served {
    let mut env = place.lab.env.clone();
    env.set("GEMINI_CLI_PATH", place.hostile.path());
    Served::start(&env, &place.lab.workspace(), args)
}
