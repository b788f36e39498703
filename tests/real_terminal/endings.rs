//! However a terminal ends, no process of it is left, and its session is in the store (D-42, D-43).

use std::time::Duration;

use alhena::scripted::{Scenario, Turn};
use alhena::terminal::screen::Status;
use alhena::terminal::{Force, Terminal, Until};
use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, processes_with_env};
use rustix::process::Signal;
use serde_json::json;

use crate::place::{LONG, Place};

/// A tool that would run for a minute, in a session of its own, below another that ignores being asked to go.
fn busy() -> Scenario {
    let command = "trap '' TERM HUP; (setsid sleep 61.3 &) ; echo begun > begun.txt; sleep 61.4";
    Scenario::new().turn(Turn::new().text("On it.").call("run_shell_command", json!({ "command": command })))
}

fn begin(place: &Place) -> Terminal {
    let terminal = place.launch_yolo();
    terminal.send("Go", Force::No).unwrap();
    let begun = place.work().join("begun.txt");
    assert!(Deadline::after(LONG).wait_until(|| begun.exists()));
    std::fs::remove_file(begun).unwrap();
    terminal
}

fn process(terminal: &Terminal, which: &str) -> u32 {
    let record = serde_json::to_value(terminal.record().unwrap()).unwrap();
    record[which]["pid"].as_u64().unwrap() as u32
}

#[test]
fn exit_and_kill_in_the_middle_of_a_tool_leave_nothing() {
    let place = Place::new("exit", busy().after(alhena::scripted::After::Repeat));
    let terminal = begin(&place);
    let exit = terminal.exit(LONG).unwrap();
    assert!(exit.gracefully, "{exit:?}");
    assert_eq!(exit.ended.sessions.len(), 1);
    place.nothing_left();

    let terminal = begin(&place);
    let exit = terminal.kill().unwrap();
    assert!(!exit.gracefully);
    assert_eq!(exit.ended.sessions.len(), 1, "{exit:?}");
    place.nothing_left();
}

#[test]
fn a_cli_that_was_killed_has_exited_and_so_has_everything_of_it() {
    let place = Place::new("kill -9", busy());
    let terminal = begin(&place);
    signal(process(&terminal, "cli"), Signal::KILL);
    assert_eq!(terminal.wait(Until::Exited, LONG).unwrap().status, Status::Exited);
    let ended = terminal.record().unwrap().ended.unwrap();
    assert_eq!((ended.code, ended.signal), (None, Some(9)));
    assert_eq!(ended.sessions.len(), 1);
    place.nothing_left();
    // It can still be read, and is put away like any other.
    assert_eq!(terminal.last_answer().unwrap().text, "On it.");
    terminal.exit(LONG).unwrap();
    assert_eq!(place.terminals.list().unwrap().len(), 0);
}

#[test]
fn a_keeper_that_was_killed_and_a_pane_that_was_closed_leave_nothing_either() {
    let place = Place::new("keeper", busy().after(alhena::scripted::After::Repeat));
    let terminal = begin(&place);
    signal(process(&terminal, "agent"), Signal::KILL);
    assert_eq!(terminal.wait(Until::Exited, LONG).unwrap().status, Status::Exited);
    place.nothing_left();
    assert_eq!(terminal.kill().unwrap().ended.sessions.len(), 1);

    let terminal = begin(&place);
    place.tmux(&["kill-pane", "-t", &place.pane_of(&terminal)]);
    let ended = || terminal.record().unwrap().ended.is_some();
    assert!(Deadline::after(LONG).wait_until(ended));
    place.nothing_left();
    assert_eq!(place.again().find(terminal.id()).unwrap().status().unwrap().status, Status::Exited);
    assert_eq!(place.again().clean_up().unwrap(), 1);
    assert_eq!(place.terminals.list().unwrap().len(), 0);
    let guards = format!("HOME={}", place.home.path().display());
    assert!(Deadline::after(Duration::from_secs(10)).wait_until(|| processes_with_env(&guards).is_empty()));
}
