//! `alhena serve` against stand-ins: who gets in, what is refused, and what is survived.

mod batches;
mod contract;
mod gate;
mod hostile;
mod limits;
mod restart;
mod runs;
mod talks;

use crate::lab::HostileLab;
use crate::serve_client::Served;
use alhena_testbed::{Child, Finished, Script, Step, run_bounded};

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

/// Another command in the same place.
fn alhena(place: &HostileLab, args: &[&str]) -> Finished {
    let mut command = std::process::Command::new(crate::lab::ALHENA);
    command.args(args).env_clear().envs(place.lab.env.iter()).current_dir(place.lab.workspace());
    command.env("GEMINI_CLI_PATH", place.hostile.path());
    run_bounded(&mut command, std::time::Duration::from_secs(60)).unwrap()
}
