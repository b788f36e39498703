//! `alhena claude` by hand: what the SDKs do not do to it.

use std::process::Command;
use std::time::Duration;

use alhena_scripted::Turn;
use alhena_testbed::Deadline;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::driven::Program;
use super::{lab, nothing_is_left, shell};
use crate::lab::{ALHENA, Lab};

fn claude(lab: &Lab, args: &[&str]) -> Program {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(lab.env.iter()).env("GEMINI_CLI_PATH", &lab.gemini.path);
    command.current_dir(lab.workspace()).args(["claude", "--output-format", "stream-json", "--verbose"]);
    command.args(["--input-format", "stream-json", "--model", "gemini-2.5-flash"]).args(args);
    let mut program = Program::of(command);
    program.request(&json!({"subtype": "initialize"}));
    assert_eq!(program.next("control_response")["response"]["subtype"], "success");
    program
}

#[test]
fn real_cli_what_a_program_on_the_sdk_was_asked_is_withdrawn_when_it_interrupts() {
    let lab = lab("claude withdrawn", [shell("touch never"), Turn::say("After.")]);
    let mut program = claude(&lab, &["--permission-prompt-tool", "stdio"]);
    program.prompt("shell");
    let question = program.next("control_request");
    program.request(&json!({"subtype": "interrupt"}));
    assert_eq!(program.next("control_cancel_request")["request_id"], question["request_id"]);
    assert_eq!(program.next("result")["subtype"], "error_during_execution");
    program.prompt("and now");
    assert_eq!(program.next("result")["result"], "After.");
    assert_eq!(program.end(), Some(0));
    assert!(!lab.workspace().join("never").exists());
    nothing_is_left(&lab);
}

#[test]
fn real_cli_a_signal_ends_the_turn_of_a_program_on_the_sdk_with_a_result_and_leaves_nothing() {
    let lab = lab("claude signal", [shell("touch begun; sleep 300")]);
    let mut program = claude(&lab, &["--permission-mode", "bypassPermissions"]);
    program.prompt("sleep");
    program.prompt("never");
    let deadline = Deadline::after(Duration::from_secs(120));
    assert!(deadline.wait_until(|| lab.workspace().join("begun").exists()));
    kill_process(Pid::from_child(&program.child), Signal::TERM).unwrap();
    let result = program.next("result");
    assert_eq!(
        (&result["subtype"], &result["errors"]),
        (&json!("error_during_execution"), &json!(["interrupted"]))
    );
    assert!(program.lines.next().is_none(), "the second prompt was taken");
    assert_eq!(program.end(), Some(128 + 15));
    nothing_is_left(&lab);
}

#[test]
fn real_cli_no_model_is_called_when_the_budget_of_a_program_on_the_sdk_is_used_up() {
    let lab = lab("claude budget", [shell("touch made"), Turn::say("Never.")]);
    let args = ["--permission-mode", "bypassPermissions", "--max-budget-usd", "0.000001"];
    let mut program = claude(&lab, &args);
    for prompt in ["spend", "and more"] {
        program.prompt(prompt);
        let result = program.next("result");
        assert_eq!(result["subtype"], "error_max_budget_usd", "{result}");
        assert!(result["errors"][0].as_str().unwrap().starts_with("The budget is used up: "), "{result}");
    }
    assert_eq!(lab.server.requests("lab").len(), 1);
    assert_eq!(program.end(), Some(1));
    nothing_is_left(&lab);
}
