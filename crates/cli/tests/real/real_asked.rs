//! What was asked for and not got: a refusal before the start, or a warning in the outcome, never nothing.

use std::fs;
use std::time::Duration;

use crate::lab::{Lab, write_file};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Finished, run_bounded};
use serde_json::{Value, json};

fn lab(name: &str) -> Lab {
    Lab::real(name, "0.61.0", Scenario::new().turn(Turn::say("Hello.")))
}

fn run(lab: &Lab, arguments: &[&str]) -> Finished {
    let options = ["--as", "outcome", "--model", "gemini-2.5-flash", "hello"];
    run_bounded(&mut lab.command(&[arguments, &options].concat()), Duration::from_secs(180)).unwrap()
}

fn warnings(done: &Finished) -> Vec<String> {
    let outcome: Value = serde_json::from_str(&done.stdout_text()).unwrap();
    assert_eq!(outcome["status"], "success", "{}", done.stdout_text());
    serde_json::from_value(outcome["warnings"].clone()).unwrap()
}

#[test]
fn mcp_server_that_is_dead_in_any_way_is_named() {
    let lab = lab("asked-mcp");
    let silent = json!({"mcpServers": {"silent": {"command": "sleep", "args": ["600"], "timeout": 2000}}});
    let file = lab.home.write("mcp.json", silent.to_string()).unwrap();
    let done = run(
        &lab,
        &[
            "--mcp-server",
            "missing=/nowhere/server",
            "--mcp-server",
            "ends=/bin/false",
            "--mcp-server",
            "unreachable=http://127.0.0.1:9/mcp",
            "--mcp-server",
            file.to_str().unwrap(),
        ],
    );
    let warnings = warnings(&done);
    for name in ["missing", "ends", "unreachable", "silent"] {
        let start = format!("The MCP server {name} has a problem, and the model was without its tools: ");
        assert!(warnings.iter().any(|warning| warning.starts_with(&start)), "{name}: {warnings:?}");
    }
}

#[test]
fn policy_that_the_cli_would_not_obey_is_refused_before_the_start() {
    let lab = lab("asked-policy");
    let bad =
        lab.home.write("bad.toml", "[[rule]]\ntoolName = \"x\"\ndecision = \"no\"\npriority = 1\n").unwrap();
    let said = format!("{}:3: decision \"no\" is none of allow, deny, ask_user", bad.display());
    for (policy, expected) in [("nowhere.toml", "nowhere.toml: No such file"), ("bad.toml", said.as_str())] {
        let done = run(&lab, &["--policy", policy]);
        assert_eq!(done.status.code(), Some(2), "{}", done.stderr_text());
        assert!(done.stderr_text().contains(expected), "{}", done.stderr_text());
    }
    assert_eq!(lab.calls(), 0, "the model was asked");
}

#[test]
fn policy_is_seen_from_where_the_caller_is() {
    let scenario = Scenario::new().turn(write_file("made.txt", "x")).turn(Turn::say("Done."));
    let lab = Lab::real("asked-relative", "0.61.0", scenario);
    lab.home
        .write("p.toml", "[[rule]]\ntoolName = \"write_file\"\ndecision = \"deny\"\npriority = 900\n")
        .unwrap();
    lab.home.write("below/file", "").unwrap();
    let trust = json!({lab.workspace().to_str().unwrap(): "TRUST_FOLDER"});
    fs::write(lab.home.gemini().join("trustedFolders.json"), trust.to_string()).unwrap();
    run(&lab, &["-C", "below", "--approval", "yolo", "--policy", "p.toml"]);
    assert!(!lab.workspace().join("below/made.txt").exists(), "the policy had no effect");
}

#[test]
fn names_without_a_tool_and_the_users_own_broken_files_are_warnings() {
    let lab = lab("asked-names");
    fs::create_dir(lab.home.gemini().join("policies")).unwrap();
    fs::write(lab.home.gemini().join("policies/mine.toml"), "not toml [").unwrap();
    lab.home
        .write_settings(&json!({"security": {"auth": {"selectedType": "gemini-api-key"}}, "ui": "text"}))
        .unwrap();
    let warnings = warnings(&run(&lab, &["--deny-tool", "runshellcommand"]));
    for expected in [
        "`deny_tool` runshellcommand has no effect: Gemini CLI has no tool called \"runshellcommand\"; did you mean run_shell_command?",
        "Gemini CLI has a problem with the policy file mine.toml: TOML parsing failed",
        "Gemini CLI calls its settings wrong and may not obey them: ui ",
    ] {
        assert!(warnings.iter().any(|warning| warning.starts_with(expected)), "{expected}: {warnings:#?}");
    }
    let settings = lab.home.gemini().join("settings.json");
    assert!(warnings.iter().any(|warning| warning.ends_with(settings.to_str().unwrap())), "{warnings:#?}");
    assert!(!warnings.iter().any(|warning| warning.contains("alhena-rules")), "{warnings:#?}");
}
