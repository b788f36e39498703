//! How turns and conversations end: cancelled, closed, dropped, killed.

use std::process::Stdio;
use std::time::Duration;

use alhena_agent::TurnItem;
use alhena_model::Status;
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env};
use serde_json::json;

use super::{converse, follow, lab, nobody};
use crate::lab::{Build, shell, write_file};

fn until_nothing_is_left(mark: &str) {
    let entry = format!("ALHENA_RUN={mark}");
    let deadline = Deadline::after(Duration::from_secs(30));
    assert!(
        deadline.wait_until(|| processes_with_env(&entry).is_empty()),
        "{:?}",
        processes_with_env(&entry)
    );
}

#[test]
fn real_cli_a_turn_is_cancelled_while_a_question_waits_and_nothing_is_done() {
    let scenario = Scenario::new().turn(write_file("n.txt", "x")).turn(Turn::say("After."));
    let lab = lab("cancel while a question waits", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let mut turn = talk.prompt("write").unwrap();
    let permission = loop {
        match turn.next_blocking() {
            Some(TurnItem::Asked(permission)) => break permission,
            Some(_) => {}
            None => panic!("nobody was asked"),
        }
    };
    turn.cancel();
    let (_, outcome) = follow(turn, nobody);
    // Too late.
    permission.allow_once();
    assert_eq!((outcome.status, outcome.files.len()), (Status::Cancelled, 0));
    assert!(!lab.workspace().join("n.txt").exists());
    let (_, outcome) = follow(talk.prompt("next").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "After."), "{:?}", outcome.failure);
}

#[test]
fn real_cli_a_turn_that_is_cancelled_while_a_command_runs_leaves_nothing_of_it_running() {
    let commands = ["sleep 301", "sleep 301 & sleep 302", "trap '' TERM; while :; do sleep 0.2; done"];
    let scenario = commands.iter().enumerate().fold(Scenario::new(), |scenario, (number, command)| {
        let command = json!({"command": format!("touch begun-{number}; {command}")});
        scenario.turn(Turn::new().call("run_shell_command", command)).turn(Turn::say("After."))
    });
    let lab = lab("cancelled command", scenario);
    let mut talk = converse(&lab, lab.request("").approval(alhena_agent::Approval::Yolo));
    let mark = format!("ALHENA_RUN={}", talk.about().mark);
    for (number, command) in commands.iter().enumerate() {
        let turn = talk.prompt("go").unwrap();
        let begun = || lab.workspace().join(format!("begun-{number}")).exists();
        assert!(Deadline::after(Duration::from_secs(60)).wait_until(begun));
        turn.cancel();
        let outcome = turn.outcome_blocking();
        assert_eq!(outcome.status, Status::Cancelled, "{:?}", outcome.failure);
        let tools = || processes_with_env(&mark).into_iter().filter(|pid| is_tool(*pid)).collect::<Vec<_>>();
        assert_eq!(tools(), Vec::<u32>::new(), "{command}");
        let (_, outcome) = follow(talk.prompt("next").unwrap(), nobody);
        let told = (outcome.status, outcome.text.all());
        assert_eq!(told, (Status::Success, "After."), "{:?}", outcome.failure);
    }
}

/// What a shell command started, and not the CLI itself.
fn is_tool(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    !line.is_empty() && !line.contains("gemini") && !line.contains("alhena")
}

#[test]
fn real_cli_a_conversation_with_an_mcp_server_ends_although_its_process_would_not() {
    let lab = lab("mcp close", Scenario::new().turn(Turn::say("Hi.")));
    let script = lab.home.write("server.js", crate::lab::SHOUTING_SERVER).unwrap();
    let server = alhena_agent::home::McpServer::process("echo", "node", [script.to_str().unwrap()]);
    let mut talk = converse(&lab, lab.request("").mcp_server(server));
    let mark = format!("ALHENA_RUN={}", talk.about().mark);
    let (_, outcome) = follow(talk.prompt("hi").unwrap(), nobody);
    assert_eq!(outcome.text.all(), "Hi.", "{:?}", outcome.failure);
    let closed = talk.close_blocking();
    assert_eq!(processes_with_env(&mark), Vec::<u32>::new());
    assert_eq!(closed.session_files.len(), 1, "{closed:?}");
}

#[test]
fn real_cli_a_question_that_is_dropped_or_not_answered_in_time_is_rejected() {
    let call = || shell("touch made");
    let scenario = Scenario::new().turn(call()).turn(Turn::say("One.")).turn(call()).turn(Turn::say("Two."));
    let lab = lab("not answered", scenario);
    let mut talk = converse(&lab, lab.request("").permission_timeout(Duration::from_millis(300)));
    let (_, outcome) = follow(talk.prompt("one").unwrap(), drop);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "One."), "{:?}", outcome.failure);
    let mut kept = Vec::new();
    let (_, outcome) = follow(talk.prompt("two").unwrap(), |permission| kept.push(permission));
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Two."), "{:?}", outcome.failure);
    assert_eq!(kept.len(), 1);
    assert!(!lab.workspace().join("made").exists());
}

#[test]
fn real_cli_nothing_of_a_conversation_is_left_when_it_is_closed_or_dropped_while_a_command_runs() {
    for closes in [true, false] {
        let scenario = Scenario::new().turn(shell("touch begun; sleep 300"));
        let lab = lab("left", scenario);
        let mut talk = converse(&lab, lab.request("").approval(alhena_agent::Approval::Yolo));
        let mark = talk.about().mark.clone();
        let turn = talk.prompt("sleep").unwrap();
        while !lab.workspace().join("begun").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!processes_with_env(&format!("ALHENA_RUN={mark}")).is_empty());
        if closes {
            talk.close_blocking();
            assert_eq!(processes_with_env(&format!("ALHENA_RUN={mark}")), Vec::<u32>::new());
            assert_eq!(lab.run_directories(), 0);
        } else {
            drop(talk);
            until_nothing_is_left(&mark);
            let deadline = Deadline::after(Duration::from_secs(30));
            assert!(
                deadline.wait_until(|| lab.run_directories() == 0),
                "{} directories",
                lab.run_directories()
            );
        }
        let (_, outcome) = follow(turn, nobody);
        assert_eq!(outcome.status, Status::Cancelled, "{:?}", outcome.failure);
    }
}

#[test]
fn real_cli_nothing_is_left_when_alhena_is_killed_while_a_warm_agent_runs_a_command() {
    let scenario = Scenario::new().turn(shell("touch begun; sleep 300"));
    let lab = lab("killed", scenario);
    let mut command =
        lab.command(&["--transport", "acp", "--approval", "yolo", "--model", "gemini-2.5-flash", "go"]);
    let mut alhena = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !lab.workspace().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(lab.processes().len() > 1);
    alhena.kill().unwrap();
    alhena.wait().unwrap();
    lab.nothing_is_left();
}
