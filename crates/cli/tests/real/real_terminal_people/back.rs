//! Agents that have gone, and come back.

use std::time::Duration;

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_testbed::Deadline;
use alhena_testbed::processes::{command_line, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::person::paste;
use super::place::{LONG, Place, json_of, type_in};

/// The processes that clean up if a pane's own is killed. They have no environment; they hold the lock of its home.
fn guards(place: &Place) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let out = std::fs::read_link(format!("/proc/{pid}/fd/1"));
        command_line(*pid).contains("terminal guard")
            && out.is_ok_and(|out| out.starts_with(place.home.path()))
    };
    let guards: Vec<u32> = pids.filter(holds).collect();
    assert!(!guards.is_empty());
    guards
}

#[test]
fn an_agent_that_crashed_is_listed_with_why_and_comes_back_under_its_name() {
    let scenario = Scenario::new()
        .turn(Turn::say("Noted: 7319.").when(When::new().prompt("Remember 7319")))
        .turn(Turn::say("It was 7319.").when(When::new().prompt("First").body("Noted: 7319.")))
        .turn(Turn::say("Still 7319.").when(When::new().prompt("Second").body("Noted: 7319.")))
        .turn(Turn::say("Always 7319.").when(When::new().prompt("Third").body("Still 7319.")))
        .after(After::Error);
    let place = Place::new("back", scenario);
    let gemini = place.gemini.to_str().unwrap().to_owned();
    let launch = ["launch", "--name", "one", "--gemini", &gemini, "--model", "gemini-2.5-flash"];
    assert_eq!(type_in(&place, &launch).0, 0);
    assert_eq!(type_in(&place, &["ask", "one", "Remember 7319"]).1, "Noted: 7319.\n");

    let record = serde_json::to_value(place.terminals.find("one").unwrap().record().unwrap()).unwrap();
    signal(record["cli"]["pid"].as_u64().unwrap() as u32, Signal::KILL);
    assert_eq!(type_in(&place, &["wait", "one", "--until", "exited"]).0, 0);
    let listed = type_in(&place, &["list"]).1;
    assert!(listed.contains("ended by signal 9"), "{listed}");
    let (code, _, err) = type_in(&place, &launch);
    assert_eq!(code, 2);
    assert!(err.contains("which has gone") && err.contains("launch --name one --resume"), "{err}");
    // Where it was, and with its CLI and model: nothing has to be said again.
    assert_eq!(
        type_in(&place, &["launch", "--name", "one", "--resume"]),
        (0, "one\n".to_owned(), String::new())
    );
    // What was said before is there, and it is ready for good.
    for _ in 0..10 {
        let (_, status) = json_of(&place, &["status", "one"]);
        assert!(["idle", "completed"].contains(&status["status"].as_str().unwrap()), "{status}");
    }
    let (code, out, err) = type_in(&place, &["read", "one"]);
    assert_eq!((code, out.as_str()), (0, "Noted: 7319.\n"), "{err}");
    assert!(err.contains("No turn has been run since the session was resumed"), "{err}");
    let log = type_in(&place, &["logs", "one"]).1;
    assert!(log.starts_with("earlier  ") && log.contains("\n  > Remember 7319\n  Noted: 7319.\n"), "{log}");
    assert_eq!(type_in(&place, &["ask", "one", "First"]), (0, "It was 7319.\n".to_owned(), String::new()));
    let (_, log) = json_of(&place, &["logs", "one"]);
    let rows: Vec<_> = log.as_array().unwrap().iter().map(|row| (&row["turn"], &row["earlier"])).collect();
    assert_eq!(rows, [(&Value::Null, &json!(true)), (&json!(1), &Value::Null)], "{log:#}");
    assert_eq!(type_in(&place, &["read", "one"]), (0, "It was 7319.\n".to_owned(), String::new()));

    // The server goes, with everything in it. What the list says to type works as it is printed.
    place.tmux(&["kill-server"]);
    let told = || type_in(&place, &["list"]).1;
    let mut listed = String::new();
    let said = Deadline::after(LONG).wait_until(|| {
        listed = told();
        listed.contains("--resume ")
    });
    assert!(said, "{listed}");
    let (_, id) = listed.split_once("--resume ").unwrap();
    assert_eq!(id.split_once('`').unwrap().0.len(), 8, "a short id: {listed}");
    let ended = || place.terminals.find("one").unwrap().record().unwrap().ended.is_some();
    assert!(Deadline::after(Duration::from_secs(30)).wait_until(ended));
    assert_eq!(paste(&place, &listed), (0, "one\n".to_owned(), String::new()));
    assert_eq!(type_in(&place, &["ask", "one", "Second"]), (0, "Still 7319.\n".to_owned(), String::new()));
    assert_eq!(place.terminals.list().unwrap().len(), 1);

    // As if the machine had been switched off: nobody was left to publish the session, or to say why.
    let record = serde_json::to_value(place.terminals.find("one").unwrap().record().unwrap()).unwrap();
    for pid in guards(&place) {
        signal(pid, Signal::KILL);
    }
    for which in ["agent", "cli"] {
        signal(record[which]["pid"].as_u64().unwrap() as u32, Signal::KILL);
    }
    place.tmux(&["kill-server"]);
    let listed = Deadline::after(LONG).wait_until(|| told().contains("nobody was left to say why"));
    assert!(listed, "{}", told());
    assert_eq!(
        type_in(&place, &["launch", "--name", "one", "--resume"]),
        (0, "one\n".to_owned(), String::new())
    );
    assert_eq!(type_in(&place, &["ask", "one", "Third"]), (0, "Always 7319.\n".to_owned(), String::new()));

    // One that was never asked anything does not go on with another's session.
    let silent = ["launch", "--name", "silent", "--gemini", &gemini, "--model", "gemini-2.5-flash"];
    assert_eq!(type_in(&place, &silent).0, 0);
    place.tmux(&["kill-pane", "-t", &place.pane_of(&place.terminals.find("silent").unwrap())]);
    assert_eq!(type_in(&place, &["wait", "silent", "--until", "exited"]).0, 0);
    let (code, _, err) = type_in(&place, &["launch", "--name", "silent", "--resume"]);
    assert_eq!((code, err.contains("had no session to go on with")), (2, true), "{err}");

    // One that lives is not taken away from anybody.
    for cli in [gemini.as_str(), "/no/such/gemini"] {
        let (code, _, err) = type_in(&place, &["launch", "--name", "one", "--gemini", cli, "--resume"]);
        assert_eq!((code, err.lines().next()), (2, Some("error: there is a terminal one already")));
    }
    let (code, _, err) =
        type_in(&place, &["launch", "--name", "two", "--gemini", &gemini, "--resume", "0123456"]);
    assert_eq!(code, 2, "{err}");
    assert!(place.terminals.find("two").is_err());
}
