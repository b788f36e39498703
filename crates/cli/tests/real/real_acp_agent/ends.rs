//! Ends: cancelled, closed, killed.

use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env};
use serde_json::json;

use super::client::{Client, text};
use super::{lab, mark, until_nothing_is_left};
use crate::lab::Lab;

fn sleeping() -> Turn {
    Turn::new().call("run_shell_command", json!({"command": "touch begun; sleep 300", "description": "x"}))
}

fn until_begun(lab: &Lab) {
    let begun = lab.workspace().join("begun");
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| begun.exists()));
}

/// How many of the model's commands run.
fn sleepers(mark: &str) -> usize {
    let is_sleep = |pid: &&u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\x00300"))
    };
    processes_with_env(mark).iter().filter(is_sleep).count()
}

#[test]
fn real_cli_a_cancelled_command_leaves_no_process_and_the_session_goes_on() {
    let lab = lab("cancel", Scenario::new().turn(sleeping()).turn(Turn::say("After.")));
    let mut client = Client::new(&lab, &["--approval", "yolo"]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "sleep");
    until_begun(&lab);
    let mark = mark(&lab);
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| sleepers(&mark) == 1));
    client.call("cancel", json!({ "sessionId": session }));
    let answer = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert!(Deadline::after(Duration::from_secs(10)).wait_until(|| sleepers(&mark) == 0));
    client.updates(&session);
    let prompt = client.prompt(&session, "next");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(text(&client.updates(&session), "agent_message_chunk"), "After.");
}

#[test]
fn real_cli_a_turn_is_cancelled_while_a_question_waits_and_the_next_prompt_may_come_at_once() {
    let write = Turn::new().call("write_file", json!({"file_path": "n.txt", "content": "x"}));
    let lab = lab("cancel a question", Scenario::new().turn(write).turn(Turn::say("After.")));
    let mut client = Client::new(&lab, &[]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "write");
    let asked = client.question();
    client.call("cancel", json!({ "sessionId": session }));
    let next = client.prompt(&session, "next");
    // Too late.
    client.choose(asked, "allow_once");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "cancelled");
    let answer = client.answer(next);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!lab.workspace().join("n.txt").exists());
}

#[test]
fn real_cli_a_session_whose_agent_was_killed_goes_on_with_the_next_prompt() {
    let scenario = Scenario::new().turn(Turn::say("Before.")).turn(Turn::say("After."));
    let lab = lab("an agent is killed", scenario);
    let mut client = Client::new(&lab, &[]);
    let session = client.session(&lab);
    let prompt = client.prompt(&session, "one");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    // The client and Alhena itself have no run's mark.
    let mark = mark(&lab);
    let marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(b"ALHENA_RUN="))
    };
    let agents = || processes_with_env(&mark).into_iter().filter(marked).collect::<Vec<_>>();
    let killed = agents();
    assert!(!killed.is_empty());
    for pid in killed {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| agents().is_empty()));
    let stored = || {
        let listed = alhena_session::Store::at(lab.home.gemini()).list(&alhena_session::Scope::All).unwrap();
        listed.iter().any(|stored| stored.id == session)
    };
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(stored));
    client.updates(&session);
    let mut prompt = client.prompt(&session, "two");
    let mut answer = client.answer(prompt);
    if answer.get("error").is_some() {
        // It was not over with the old one yet; it is now.
        prompt = client.prompt(&session, "two");
        answer = client.answer(prompt);
    }
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(text(&client.updates(&session), "agent_message_chunk"), "After.");
    let sent: Vec<String> = lab.server.requests("lab").last().unwrap().texts().map(str::to_owned).collect();
    assert!(sent.iter().any(|text| text == "one"), "{sent:?}");
}

#[test]
fn real_cli_nothing_is_left_when_the_editor_closes_its_end_or_is_killed() {
    for killed in [false, true] {
        let lab = lab("the editor goes", Scenario::new().turn(sleeping()));
        let mut client = Client::new(&lab, &["--approval", "yolo"]);
        let session = client.session(&lab);
        client.prompt(&session, "sleep");
        until_begun(&lab);
        if killed {
            client.child.kill().unwrap();
            client.child.wait().unwrap();
        } else {
            client.end();
            assert_eq!(client.wait(|said| said.get("closed").is_some())["closed"], 0);
        }
        until_nothing_is_left(&lab);
        // What was said is in the store.
        let listed = alhena_session::Store::at(lab.home.gemini()).list(&alhena_session::Scope::All).unwrap();
        assert!(listed.iter().any(|stored| stored.id == session), "{listed:?}");
    }
}
