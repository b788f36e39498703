//! A stopped run keeps its session: on ^C Gemini CLI 0.61.0 rolls the conversation back to before the prompt, tool calls and
//! all; what is in the store afterwards is what was said until then, and it can be resumed.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use alhena_agent::{Approval, Resume};
use alhena_model::{FailureKind, Outcome, Status};
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::Deadline;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::printed;
use crate::lab::{Build, Lab};

const LONG: Duration = Duration::from_secs(90);

/// How a run is stopped.
#[derive(Clone, Copy, Debug)]
enum Way {
    Signal(Signal),
    Timeout,
}

/// What has to have happened before a signal is sent.
enum Moment {
    /// The run has a home of its own.
    Home,
    /// An event of this type was printed.
    Event(&'static str),
    /// The API was asked so often.
    Asked(usize),
    /// A tool has written this file.
    File(&'static str),
}

fn lab(turns: Vec<Turn>) -> Lab {
    let scenario = turns.into_iter().fold(Scenario::new(), Scenario::turn);
    Lab::real("stopped", "0.61.0", scenario.turn(Turn::say("Gone on.")).after(After::Repeat))
}

fn writes() -> Turn {
    let args = json!({"file_path": "one.txt", "content": "1\n"});
    Turn::new().thought("Plan", "Write it.").text("I begin. ").call("write_file", args)
}

fn waits() -> Turn {
    let args = json!({"command": "echo begun > begun.txt; sleep 97.3"});
    Turn::new().text("Now wait. ").call("run_shell_command", args)
}

/// Runs until the moment, stops the run, and gives its outcome, if it had begun.
fn stopped(lab: &Lab, way: Way, moment: &Moment, more: &[&str]) -> Option<Outcome> {
    let mut args = vec!["--model", "gemini-2.5-flash", "--approval", "yolo", "--as", "events"];
    if let Way::Timeout = way {
        // The start of the CLI counts.
        args.extend(["--timeout", "45s"]);
    }
    args.extend(more);
    args.push("Do it");
    let mut command = lab.command(&args);
    let mut alhena =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(alhena.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut events = Vec::<Value>::new();
    if let Way::Signal(signal) = way {
        let deadline = Deadline::after(Duration::from_secs(60));
        let reached = match moment {
            Moment::Home => deadline.wait_until(|| lab.home.path().join("alhena/state/homes").exists()),
            Moment::Event(kind) => lines.by_ref().any(|line| {
                events.push(serde_json::from_str(&line).unwrap());
                events.last().unwrap()["type"] == *kind
            }),
            Moment::Asked(times) => deadline.wait_until(|| lab.calls() >= *times),
            Moment::File(name) => deadline.wait_until(|| lab.workspace().join(name).exists()),
        };
        assert!(reached, "{events:#?}");
        kill_process(Pid::from_child(&alhena), signal).unwrap();
    }
    events.extend(lines.map(|line| serde_json::from_str::<Value>(&line).unwrap()));
    alhena.wait().unwrap();
    // A signal can come before there is anything to stop.
    let last = events.pop()?;
    Some(serde_json::from_value(last["outcome"].clone()).unwrap_or_else(|error| panic!("{error}: {last}")))
}

/// Goes on with the session that the hint promises; what the model was told then.
fn gone_on_with(lab: &Lab, outcome: &Outcome) -> String {
    let id = outcome.session_id.clone().unwrap();
    let hint = &outcome.failure.as_ref().unwrap().hint;
    assert!(hint.contains(&format!("`resume`={id}")), "{hint}");
    let request = lab.request("Go on").approval(Approval::Yolo).resume(Resume::Id(id.clone()));
    let next = lab.run(request);
    assert_eq!(
        (next.status, next.session_id.as_deref()),
        (Status::Success, Some(&*id)),
        "{:?}",
        next.failure
    );
    let requests = lab.server.requests("lab");
    let last = requests.iter().rfind(|request| request.action == "streamGenerateContent").unwrap();
    last.body["contents"].to_string()
}

fn assert_kept(way: Way, turns: fn() -> Vec<Turn>, moment: &Moment, said: &[&str]) {
    let lab = lab(turns());
    let outcome = stopped(&lab, way, moment, &[]).unwrap();
    let expected = match way {
        Way::Timeout => FailureKind::Timeout,
        Way::Signal(_) => FailureKind::Cancelled,
    };
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(expected), "{way:?}");
    assert_eq!(outcome.warnings, [] as [&str; 0], "{way:?}");
    let told = gone_on_with(&lab, &outcome);
    for said in said.iter().chain(&["Do it", "Go on"]) {
        assert!(told.contains(said), "{way:?}: {said} is not in {told}");
    }
    let listed: Value = serde_json::from_str(&printed(&lab, &["sessions", "list", "--json"])).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed:#}");
    assert_eq!(listed[0]["state"], json!("answered"), "{listed:#}");
}

#[test]
fn real_cli_stopped_while_it_thinks_keeps_the_prompt() {
    let turns = || vec![Turn::new().thought("Plan", "Think.").sleep(LONG).text("x")];
    assert_kept(Way::Signal(Signal::HUP), turns, &Moment::Asked(1), &[]);
}

#[test]
fn real_cli_stopped_in_an_answer_keeps_what_was_done_before_it() {
    let turns = || vec![writes(), Turn::new().text("Half an ").sleep(LONG).text("answer.")];
    assert_kept(
        Way::Signal(Signal::INT),
        turns,
        &Moment::Asked(2),
        &["I begin.", "write_file", "one.txt", "Successfully created"],
    );
}

// The call that is interrupted is in the session only if the CLI has the time to write it down: it does so when a call ends.
#[test]
fn real_cli_stopped_in_a_shell_command_keeps_every_call_that_had_ended() {
    let said = ["I begin.", "write_file", "one.txt", "Successfully created", "Now wait."];
    let turns = || vec![writes(), waits()];
    assert_kept(Way::Signal(Signal::TERM), turns, &Moment::File("begun.txt"), &said);
    assert_kept(Way::Timeout, turns, &Moment::File("begun.txt"), &said);
}

#[test]
fn real_cli_stopped_between_two_turns_keeps_the_first() {
    let turns = || vec![writes(), Turn::new().sleep(LONG).text("Never said.")];
    let said = ["I begin.", "write_file", "one.txt"];
    assert_kept(Way::Signal(Signal::TERM), turns, &Moment::Event("tool_result"), &said);
}

#[test]
fn real_cli_stopped_before_it_began_promises_nothing_that_is_not_there() {
    let lab = lab(vec![Turn::new().sleep(LONG).text("Never said.")]);
    let outcome = stopped(&lab, Way::Signal(Signal::TERM), &Moment::Home, &[]);
    let listed: Value = serde_json::from_str(&printed(&lab, &["sessions", "list", "--json"])).unwrap();
    let failure = outcome.as_ref().map(|outcome| outcome.failure.as_ref().unwrap());
    let promised = failure.is_some_and(|failure| failure.hint.contains("`resume`"));
    assert_eq!(promised, !listed.as_array().unwrap().is_empty(), "{outcome:#?} {listed:#}");
}

#[test]
fn real_cli_stopped_after_a_resume_keeps_the_old_turns_and_the_interrupted_one() {
    let lab = lab(vec![Turn::say("The word is xyzzy."), writes(), waits()]);
    let first = lab.run(lab.request("What is the word?").approval(Approval::Yolo));
    assert_eq!(first.status, Status::Success, "{:?}", first.failure);
    let resume = format!("--resume={}", first.session_id.as_deref().unwrap());
    let moment = Moment::File("begun.txt");
    let outcome = stopped(&lab, Way::Signal(Signal::TERM), &moment, &[&resume]).unwrap();
    let told = gone_on_with(&lab, &outcome);
    for said in ["What is the word?", "xyzzy", "Do it", "I begin.", "one.txt", "Now wait.", "Go on"] {
        assert!(told.contains(said), "{said} is not in {told}");
    }
}

// The model never answered, so there is nothing that a later run could build on; the caller asks again.
#[test]
fn real_cli_that_failed_by_itself_leaves_no_half_session() {
    let scenario = Scenario::new().turn(Turn::status(400)).after(After::Repeat);
    let lab = Lab::real("failed", "0.61.0", scenario);
    let outcome = lab.run(lab.request("Do it"));
    assert_ne!(outcome.status, Status::Success);
    assert_eq!(printed(&lab, &["sessions", "list", "--json"]).trim(), "[]");
}

#[test]
fn real_cli_in_a_run_is_followed_while_it_goes_on_and_nothing_is_said_twice() {
    let lab = lab(vec![writes(), waits()]);
    let mut follow = lab.alhena(&["sessions", "follow", "--json"]);
    follow.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut follow = follow.spawn().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let next = |kind: &str| {
        let mut before = Vec::new();
        loop {
            let line =
                told.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{kind}: {before:#?}"));
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["type"] == kind {
                return (event, before);
            }
            before.push(event);
        }
    };
    let mut command = lab.command(&["--model", "gemini-2.5-flash", "--approval", "yolo", "Do it"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // While the shell command still runs.
    let (prompt, _) = next("prompt");
    assert_eq!(prompt["text"], json!("Do it"));
    next("thinking");
    next("tool_result");
    assert!(run.try_wait().unwrap().is_none());
    let begun = lab.workspace().join("begun.txt");
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| begun.exists()));
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    run.wait().unwrap();
    let id = printed(&lab, &["sessions", "list", "--json"]);
    let id = serde_json::from_str::<Value>(&id).unwrap()[0]["id"].as_str().unwrap().to_owned();
    // The next turn is in the store's file, then in the home of another run.
    let request = lab.request("Go on").approval(Approval::Yolo).resume(Resume::Id(id));
    assert_eq!(lab.run(request).status, Status::Success);
    let (prompt, before) = next("prompt");
    assert_eq!(prompt["text"], json!("Go on"), "{before:#?}");
    assert!(before.iter().all(|event| event["type"] != "thinking"), "{before:#?}");
    follow.kill().unwrap();
    follow.wait().unwrap();
}
