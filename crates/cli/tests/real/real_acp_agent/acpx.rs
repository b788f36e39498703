//! acpx, unmodified.

use std::process::Command;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, run_bounded, tools};

use super::client::{agent, modules};
use super::lab;
use crate::lab::{Build, Lab};

/// What acpx says to these arguments, which it has to be content with.
fn acpx(lab: &Lab, args: &[&str]) -> String {
    let mut command = Command::new(tools::node22().unwrap());
    command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    command.arg(modules(lab).join("node_modules/acpx/dist/cli.js"));
    command.arg("--agent").arg(agent(lab, &[]).join(" ")).args(args);
    let done = run_bounded(&mut command, Duration::from_secs(240)).unwrap();
    let said = done.stdout_text();
    assert!(done.succeeded(), "{args:?}: {}\n{said}\n{}", done.ending(), done.stderr_text());
    said
}

/// acpx gives Alhena two seconds to end, then kills it with its keeper and its guard: what is left is
/// removed by the next run.
fn until_nothing_is_left(lab: &Lab) {
    lab.no_process_is_left();
    if !Deadline::after(Duration::from_secs(2)).wait_until(|| lab.run_directories() == 0) {
        lab.run(lab.request("next").timeout(Duration::from_millis(1)));
        assert_eq!(lab.run_directories(), 0);
    }
}

/// Its process in the background ends a second after the last prompt: the next one loads the session again.
#[test]
fn real_cli_acpx_holds_a_session_over_several_prompts() {
    let turns = ["One.", "Two.", "Three."].map(Turn::say);
    let lab = lab("acpx session", turns.into_iter().fold(Scenario::new(), Scenario::turn));
    acpx(&lab, &["sessions", "new"]);
    for (prompt, answer) in [("the first words", "One."), ("the second words", "Two.")] {
        let said = acpx(&lab, &["--ttl", "1", "prompt", prompt]);
        assert!(said.contains(answer), "{said}");
    }
    until_nothing_is_left(&lab);
    let said = acpx(&lab, &["--ttl", "1", "prompt", "the third words"]);
    assert!(said.contains("Three."), "{said}");
    let last = lab.server.requests("lab").pop().unwrap().body.to_string();
    for words in ["the first words", "the second words", "the third words"] {
        assert!(last.contains(words), "{words}");
    }
    acpx(&lab, &["sessions", "close"]);
    until_nothing_is_left(&lab);
}
