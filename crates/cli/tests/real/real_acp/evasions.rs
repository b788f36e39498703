//! Commands, titles and ids by which a model could get around the rules.

use alhena_agent::Approval;
use alhena_agent::rules::{Decision, Rules};
use alhena_model::Status;
use alhena_scripted::{Scenario, Turn};
use serde_json::{Value, json};

use super::{converse, follow, lab, nobody};
use crate::lab::Build;

/// Each hides `touch M` in another way.
const HIDDEN: &[&str] = &[
    "git status \\\n# '\ntouch M #'",
    "git log $\\\n'a\\' '; touch M; echo \\'",
    "true && \\\n  touch M",
    "\\\n touch M",
    "$\\\n'\\x74ouch' M",
    "echo \"$\\\n(touch M)\"",
    "jobs -x touch M",
    "git -c alias.x='!touch M' x",
    "cmd.exe /c touch M",
    "bash -c 'git status' && echo '; touch M; echo '",
];

fn shell(args: Value) -> Turn {
    Turn::new().call("run_shell_command", args)
}

fn rules(decision: Decision, list: &[&str]) -> Rules {
    let mut rules = Rules::default();
    list.iter().for_each(|rule| rules.add(decision, rule).unwrap());
    rules
}

fn hidden() -> Scenario {
    let calls =
        HIDDEN.iter().fold(Scenario::new(), |all, command| all.turn(shell(json!({"command": command}))));
    calls.turn(Turn::say("Done."))
}

#[test]
fn real_cli_a_denied_command_does_not_run_however_it_is_hidden() {
    let lab = lab("hidden from deny", hidden());
    let request = lab.request("").approval(Approval::Yolo).rules(rules(Decision::Deny, &["shell(touch *)"]));
    let mut talk = converse(&lab, request);
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(!lab.workspace().join("M").exists() && outcome.commands.is_empty(), "{:?}", outcome.commands);
}

#[test]
fn real_cli_a_command_that_no_rule_allows_is_asked_about_however_it_is_hidden() {
    let scenario =
        hidden().turn(shell(json!({"command": "echo fine && git --version"}))).turn(Turn::say("Done."));
    let lab = lab("hidden from allow", scenario);
    let allowed =
        ["shell(git *)", "shell(echo *)", "shell(true)", "shell(jobs *)", "shell(bash -c 'git status')"];
    let mut talk = converse(&lab, lab.request("").rules(rules(Decision::Allow, &allowed)));
    let mut asked = Vec::new();
    let (_, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
        asked.push(permission.question().title.clone());
        permission.reject("no");
    });
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(asked, HIDDEN);
    assert!(!lab.workspace().join("M").exists());
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert_eq!(outcome.commands.len(), 1, "{:?}", outcome.commands);
}

#[test]
fn real_cli_a_script_of_another_folder_is_not_the_one_that_is_allowed() {
    let scenario = Scenario::new()
        .turn(shell(json!({"command": "sh ./build.sh"})))
        .turn(shell(json!({"command": "sh ./build.sh", "dir_path": "sub"})))
        .turn(shell(json!({"command": "sh ./build.sh", "dir_path": "sub", "description": "[current working directory]"})))
        .turn(Turn::say("Done."));
    let lab = lab("other folder", scenario);
    std::fs::create_dir(lab.workspace().join("sub")).unwrap();
    std::fs::write(lab.workspace().join("build.sh"), "touch built").unwrap();
    std::fs::write(lab.workspace().join("sub/build.sh"), "touch ../wrong").unwrap();
    let mut talk = converse(&lab, lab.request("").rules(rules(Decision::Allow, &["shell(sh ./build.sh)"])));
    let mut asked = 0;
    let (_, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
        asked += 1;
        assert!(permission.question().elsewhere.is_some(), "{permission:?}");
        permission.reject("no");
    });
    assert_eq!((outcome.status, asked), (Status::Success, 2), "{:?}", outcome.failure);
    assert!(lab.workspace().join("built").exists() && !lab.workspace().join("wrong").exists());
}

#[test]
fn real_cli_nothing_poses_as_a_tool_of_a_trusted_server() {
    let shout = |server: &str, args: Value| Turn::new().call(format!("mcp_{server}_shout"), args);
    let poses = json!({"word": "posed", "command": "shout (echo MCP Server)"});
    let scenario = Scenario::new()
        .turn(shell(json!({"command": "touch M # (echo MCP Server)"})))
        .turn(shout("evil", poses))
        .turn(shout("echo", json!({"word": "heard"})))
        .turn(shout("echo", json!({"word": "long".repeat(200)})))
        .turn(Turn::say("Done."));
    let lab = lab("posing", scenario);
    let script = lab.home.path().join("echo.js");
    std::fs::write(&script, crate::lab::SHOUTING_SERVER).unwrap();
    let settings = lab.home.gemini().join("settings.json");
    let mut object: Value = serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    object["mcpServers"]["echo"] = json!({"command": "node", "args": [script], "trust": true});
    object["mcpServers"]["evil"] = json!({"command": "node", "args": [script]});
    std::fs::write(settings, object.to_string()).unwrap();
    let denied = ["shell(rm *)", "mcp(echo/never)"];
    let mut talk = converse(&lab, lab.request("").rules(rules(Decision::Deny, &denied)));
    let mut asked = Vec::new();
    let (_, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
        asked.push(permission.question().tool.clone());
        permission.reject("no");
    });
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    // The command has a comment, and is denied without a question.
    assert_eq!(asked, ["mcp_evil_shout"]);
    assert!(!lab.workspace().join("M").exists());
    let told = lab.server.requests("lab").last().unwrap().raw_body.clone();
    assert!(told.contains("HEARD") && told.contains("LONGLONG") && !told.contains("POSED"), "{told}");
}

#[test]
fn real_cli_underscores_in_the_id_of_a_call_do_not_evade_a_rule_by_name() {
    let call = |name: &str, args: Value, id: &str| json!({"steps": [{"call": {"name": name, "args": args, "id": id}}]});
    let scenario = json!({"turns": [
        call("write_file", json!({"file_path": "M", "content": "x"}), "a__b"),
        call("run_shell_command", json!({"command": "touch M"}), "x__mcp_echo_shout__1"),
        {"steps": [{"text": "Done."}]},
    ]});
    let lab = lab("ids", Scenario::from_json(&scenario.to_string()).unwrap());
    let denied = rules(Decision::Deny, &["write_file", "run_shell_command"]);
    let mut talk = converse(&lab, lab.request("").approval(Approval::Yolo).rules(denied));
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(!lab.workspace().join("M").exists());
}
