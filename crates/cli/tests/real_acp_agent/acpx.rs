//! acpx, unmodified.

use std::process::Command;
use std::time::Duration;

use alhena::scripted::{Scenario, Turn};
use alhena_testbed::{run_bounded, tools};
use serde_json::{Value, json};

use super::client::{agent, modules};
use super::{lab, until_nothing_is_left};

#[test]
fn real_cli_acpx_runs_a_prompt_and_sees_text_tools_and_the_end() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "a.txt", "content": "one\n"})))
        .turn(Turn::say("I wrote it."));
    let lab = lab("acpx", scenario);
    let mut command = Command::new(tools::node22().unwrap());
    command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    command.arg(modules(&lab).join("node_modules/acpx/dist/cli.js"));
    command.arg("--agent").arg(agent(&lab, &[]).join(" "));
    command.args(["--format", "json", "--approve-all", "exec", "Write the file"]);
    let done = run_bounded(&mut command, Duration::from_secs(240)).unwrap();
    let said = done.stdout_text();
    assert!(done.succeeded(), "{}\n{said}\n{}", done.ending(), done.stderr_text());
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
