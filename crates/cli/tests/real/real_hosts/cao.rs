//! CAO itself, with the provider, on the real CLI in tmux.

use std::path::Path;
use std::time::Duration;

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_testbed::tools;
use serde_json::json;

use super::place::Place;

/// What the model says as the worker and as the boss. Both are told apart by what their profiles say.
fn scenario() -> Scenario {
    let handoff = "mcp_cao-mcp-server_handoff";
    let ask = json!({"agent_profile": "worker", "message": "Count the files"});
    let asked = |prompt: &str| When::new().prompt(prompt).body("You are the WORKER");
    let timed = [0, 3, 15].into_iter().flat_map(timed_handoff).fold(Scenario::new(), Scenario::turn);
    timed
        .turn(Turn::say("It is 42.").when(asked("6 times 7")))
        .turn(Turn::say("Second answer:\n\n- one\n- two").when(asked("Second question")))
        .turn(Turn::say("3 files.").when(asked("Count the files")))
        .turn(
            Turn::new()
                .call(handoff, ask)
                .when(When::new().prompt("Have it counted").body("You are the BOSS").offers(handoff)),
        )
        .turn(Turn::say("At once.").when(asked("Answer at once")))
        .turn(
            Turn::error(400, json!({"code": 400, "message": "no such thing", "status": "INVALID_ARGUMENT"}))
                .when(asked("Fail now")),
        )
        .turn(Turn::new().delay(Duration::from_secs(12)).text("Late.").when(asked("Take your time")))
        .turn(
            Turn::new()
                .call("run_shell_command", json!({"command": "sleep 300", "description": "rest"}))
                .when(asked("Run for long")),
        )
        .turn(Turn::say(MARKDOWN).when(asked("Draw it")))
        .turn(
            Turn::new()
                .call(
                    "mcp_cao-mcp-server_assign",
                    json!({"agent_profile": "helper", "message": "Report back"}),
                )
                .when(When::new().prompt("Have it assigned").body("You are the BOSS")),
        )
        .turn(Turn::say("Assigned.").when(When::new().response_of("mcp_cao-mcp-server_assign")))
        .turn(
            Turn::new()
                .call("mcp_cao-mcp-server_send_message", json!({"message": "The report: 7."}))
                .when(When::new().prompt("Report back").body("You are the HELPER")),
        )
        .turn(Turn::say("Sent.").when(When::new().response_of("mcp_cao-mcp-server_send_message")))
        .turn(
            Turn::say("Got the report: 7.")
                .when(When::new().prompt("The report: 7.").body("You are the BOSS")),
        )
        .turn(Turn::say("The worker says: 3 files.").when(When::new().response_of(handoff).body("3 files.")))
        .after(After::Error)
}

/// The same as in the tests of the provider.
const MARKDOWN: &str = "# A heading\n\nSome **bold** text, and [a link](https://127.0.0.1/x).\n\n\
    ```python\nprint(\"hi\")\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |";

/// The boss hands over, the worker takes its time, the boss says what it said.
fn timed_handoff(seconds: u64) -> [Turn; 3] {
    let handoff = "mcp_cao-mcp-server_handoff";
    let message = format!("Spend {seconds} seconds");
    let said = format!("{seconds} seconds were spent.");
    let wanted = format!("Have {seconds} seconds spent");
    let boss = When::new().prompt(&wanted).body("You are the BOSS").offers(handoff);
    let worker = When::new().prompt(&message).body("You are the WORKER");
    [
        Turn::new().call(handoff, json!({"agent_profile": "worker", "message": message})).when(boss),
        Turn::new().delay(Duration::from_secs(seconds)).text(&said).when(worker),
        Turn::say(format!("The worker says: {said}")).when(When::new().response_of(handoff).body(&said)),
    ]
}

/// Runs some of the provider's tests in a home and a tmux of their own.
fn run(name: &str, tests: &[&str]) {
    let place = Place::new(name, [("cao", scenario())]);
    let (cao, tmux) = (tools::cao().unwrap(), tools::tmux().unwrap());
    let directories = [tmux.parent(), place.cli.bin.parent()].into_iter().flatten().map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(directories.chain(std::env::split_paths(&path))).unwrap();
    let names = tests.iter().map(|test| format!("test_alhena_cao.{test}"));
    let mut command = place.python("hosts/cao", &["-m", "unittest", "-v"]);
    let root = alhena_testbed::cache::workspace();
    let sources = ["hosts/cao/src", "hosts/cao/tests", "packages/python/src"].map(|part| root.join(part));
    command
        .args(names)
        .env("PYTHONPATH", std::env::join_paths(sources.iter().chain([&cao])).unwrap())
        .env("PATH", path)
        .env("SHELL", "/bin/sh")
        .env("TMUX_TMPDIR", place.home.tmp());
    let done = place.run(&mut command);
    let said = done.stderr_text();
    assert!(!said.contains("skipped"), "{said}");
    place.assert_nothing_left();
}

#[test]
fn cao_knows_the_provider_and_runs_a_session_with_it() {
    // D-44
    run(
        "cao-session",
        &["Registration", "Screens", "Launch", "InCao.test_a_session_from_its_beginning_to_its_end"],
    );
}

#[test]
fn an_exit_in_cao_ends_the_cli_while_its_agent_works() {
    // D-42
    run("cao-exit", &["InCao.test_exit_ends_an_agent_that_works_or_has_a_draft"]);
}

#[test]
fn an_agent_in_cao_hands_work_to_another() {
    // D-45
    run("cao-handoff", &["InCao.test_a_handoff_to_a_second_agent"]);
}

#[test]
fn two_pollers_of_cao_see_work_until_it_is_answered_and_an_error_is_not_the_end() {
    // D-06, D-09
    run("cao-pollers", &["InCao.test_two_pollers_see_work_until_it_is_answered_and_an_error_is_not_the_end"]);
}

#[test]
fn three_handoffs_in_cao_bring_the_answers_of_0_3_and_15_seconds() {
    run("cao-handoffs", &["InCao.test_three_handoffs_with_answers_of_0_3_and_15_seconds_while_two_look_on"]);
}

#[test]
fn cao_launch_itself_starts_it_and_work_is_assigned_and_reported_in_its_session() {
    // D-44, D-45
    run("cao-assign", &["InCao.test_cao_launch_starts_it_and_work_is_assigned_and_reported"]);
}
