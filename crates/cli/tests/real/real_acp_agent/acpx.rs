//! acpx, unmodified.

use std::process::Command;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, run_bounded, tools};
use serde_json::{Value, json};

use super::client::{agent, modules};
use super::{directories, lab, until_no_process_is_left_but};
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
    until_no_process_is_left_but(lab, 0);
    if !Deadline::after(Duration::from_secs(2)).wait_until(|| directories(lab) == 0) {
        lab.run(lab.request("next").timeout(Duration::from_millis(1)));
        assert_eq!(directories(lab), 0);
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

#[test]
fn real_cli_acpx_runs_a_prompt_and_sees_text_tools_and_the_end() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "a.txt", "content": "one\n"})))
        .turn(Turn::say("I wrote it."));
    let lab = lab("acpx", scenario);
    let said = acpx(&lab, &["--format", "json", "--approve-all", "exec", "Write the file"]);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let update =
        |kind: &str| lines.iter().filter(|line| line["params"]["update"]["sessionUpdate"] == kind).count();
    assert!(
        update("agent_message_chunk") >= 1 && update("tool_call") == 1 && update("usage_update") >= 1,
        "{said}"
    );
    assert!(lines.iter().any(|line| line["result"]["stopReason"] == "end_turn"), "{said}");
    assert_eq!(std::fs::read_to_string(lab.workspace().join("a.txt")).unwrap(), "one\n");
    until_nothing_is_left(&lab);
}
