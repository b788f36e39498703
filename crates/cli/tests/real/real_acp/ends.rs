//! How turns and conversations end: cancelled, closed, dropped, killed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use alhena_agent::TurnItem;
use alhena_model::{EventKind, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env};
use serde_json::json;

use super::{converse, follow, lab, nobody};
use crate::lab::{Build, Lab};

/// How many runs have a directory.
fn directories(lab: &Lab) -> usize {
    std::fs::read_dir(lab.home.path().join("alhena/state/runs")).into_iter().flatten().count()
}

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
fn real_cli_a_turn_is_cancelled_in_mid_stream_and_the_next_one_goes_on() {
    let scenario = Scenario::new().turn(Turn::new().text("part ").hang()).turn(Turn::say("After."));
    let lab = lab("cancel in mid-stream", scenario);
    let mut talk = converse(&lab, lab.request(""));
    let mut turn = talk.prompt("slow").unwrap();
    let canceller = turn.canceller();
    while let Some(item) = turn.next_blocking() {
        if matches!(&item, TurnItem::Event(event) if matches!(event.kind, EventKind::Text { .. })) {
            break;
        }
    }
    let asked = Instant::now();
    canceller.cancel();
    let (_, outcome) = follow(turn, nobody);
    println!("cancelled in mid-stream: over after {:?}", asked.elapsed());
    assert_eq!((outcome.status, outcome.text.all()), (Status::Cancelled, "part "));
    let (_, outcome) = follow(talk.prompt("next").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "After."), "{:?}", outcome.failure);
}

#[test]
fn real_cli_a_turn_is_cancelled_while_a_question_waits_and_nothing_is_done() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "n.txt", "content": "x"})))
        .turn(Turn::say("After."));
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
    let asked = Instant::now();
    turn.cancel();
    let (_, outcome) = follow(turn, nobody);
    println!("cancelled while a question waits: over after {:?}", asked.elapsed());
    // Too late.
    permission.allow_once();
    assert_eq!((outcome.status, outcome.files.len()), (Status::Cancelled, 0));
    assert!(!lab.workspace().join("n.txt").exists());
    let (_, outcome) = follow(talk.prompt("next").unwrap(), nobody);
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "After."), "{:?}", outcome.failure);
}

#[test]
fn real_cli_ten_turns_are_cancelled_one_after_another_and_how_long_each_took_is_printed() {
    let mut scenario = Scenario::new();
    for number in 0..10 {
        let command = format!("touch begun-{number}; sleep 300");
        scenario = scenario.turn(match number % 2 {
            0 => Turn::new().text("part ").hang(),
            _ => Turn::new().text("part ").call("run_shell_command", json!({"command": command})),
        });
    }
    let lab = lab("ten cancels", scenario);
    let mut talk = converse(&lab, lab.request("").approval(alhena_agent::Approval::Yolo));
    let mut took = Vec::new();
    for number in 0..10 {
        let mut turn = talk.prompt("go").unwrap();
        while let Some(item) = turn.next_blocking() {
            if matches!(&item, TurnItem::Event(event) if matches!(event.kind, EventKind::Text { .. })) {
                break;
            }
        }
        let begun = || number % 2 == 0 || lab.workspace().join(format!("begun-{number}")).exists();
        assert!(Deadline::after(Duration::from_secs(60)).wait_until(begun));
        let asked = Instant::now();
        turn.cancel();
        let (_, outcome) = follow(turn, nobody);
        took.push(asked.elapsed());
        assert_eq!(outcome.status, Status::Cancelled, "{number}: {:?}", outcome.failure);
    }
    took.sort();
    println!("cancelled turns were over after: median {:?}, longest {:?}", took[5], took[9]);
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
    let call = || Turn::new().call("run_shell_command", json!({"command": "touch made"}));
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
        let scenario = Scenario::new()
            .turn(Turn::new().call("run_shell_command", json!({"command": "touch begun; sleep 300"})));
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
            assert_eq!(directories(&lab), 0);
        } else {
            drop(talk);
            until_nothing_is_left(&mark);
            let deadline = Deadline::after(Duration::from_secs(30));
            assert!(deadline.wait_until(|| directories(&lab) == 0), "{} directories", directories(&lab));
        }
        let (_, outcome) = follow(turn, nobody);
        assert_eq!(outcome.status, Status::Cancelled, "{:?}", outcome.failure);
    }
}

#[test]
fn real_cli_nothing_is_left_when_alhena_is_killed_while_a_warm_agent_runs_a_command() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("run_shell_command", json!({"command": "touch begun; sleep 300"})));
    let lab = lab("killed", scenario);
    let mut command =
        lab.command(&["--transport", "acp", "--approval", "yolo", "--model", "gemini-2.5-flash", "go"]);
    let mut alhena = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !lab.workspace().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Whatever has this home in its environment is of this run.
    let home = format!("ALHENA_HOME={}", lab.home.path().join("alhena").display());
    assert!(processes_with_env(&home).len() > 1);
    alhena.kill().unwrap();
    alhena.wait().unwrap();
    let deadline = Deadline::after(Duration::from_secs(30));
    assert!(deadline.wait_until(|| processes_with_env(&home).is_empty()), "{:?}", processes_with_env(&home));
    assert!(deadline.wait_until(|| directories(&lab) == 0), "{} directories", directories(&lab));
}
