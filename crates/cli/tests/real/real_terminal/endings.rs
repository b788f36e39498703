//! However a terminal ends, no process of it is left, and its session is in the store (D-42, D-43).

use std::process::Command;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_terminal::screen::Status;
use alhena_terminal::{Cause, Force, Terminal, Until};
use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, processes_with_env};
use rustix::process::Signal;
use serde_json::json;

use super::place::{ALHENA, LONG, Place, answer};

/// A tool that would run for a minute, in a session of its own, below another that ignores being asked to go.
fn busy() -> Scenario {
    let command = "trap '' TERM HUP; (setsid sleep 61.3 &) ; echo begun > begun.txt; sleep 61.4";
    Scenario::new().turn(Turn::new().text("On it.").call("run_shell_command", json!({ "command": command })))
}

fn begin(place: &Place) -> Terminal {
    let terminal = place.launch_yolo();
    terminal.send("Go", Force::OnlyWhenReady).unwrap();
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
    let place = Place::new("exit", busy().after(alhena_scripted::After::Repeat));
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
    let place = Place::new("keeper", busy().after(alhena_scripted::After::Repeat));
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

/// An agent with a session: one turn.
fn answered(place: &Place, name: &str) -> Terminal {
    let wanted = alhena_terminal::Launch { name: Some(name.to_owned()), ..place.wanted("") };
    let terminal = place.again().launch(wanted).unwrap();
    assert_eq!(answer(&terminal, "Be well"), "Well.");
    terminal
}

fn listed(place: &Place) -> String {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(place.env.iter()).args(["terminal", "--server", &place.server, "--tmux"]);
    let done = command.arg(&place.tmux).arg("list").output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn agents_that_are_gone_stay_in_the_list_with_why_and_the_way_to_go_on() {
    let place = Place::new("gone", Scenario::new().turn(Turn::say("Well.").always()));
    let names = ["quits", "crashes", "loses-its-pane", "loses-its-keeper", "loses-its-server"];
    let mut agents: Vec<Terminal> = names.iter().map(|name| answered(&place, name)).collect();
    let last = agents.pop().unwrap();
    let _gone = agents[0].command("/quit", Force::OnlyWhenReady);
    signal(process(&agents[1], "cli"), Signal::SEGV);
    place.tmux(&["kill-pane", "-t", &place.pane_of(&agents[2])]);
    signal(process(&agents[3], "agent"), Signal::KILL);
    let ended = |agent: &Terminal| agent.record().unwrap().ended.is_some();
    assert!(Deadline::after(LONG).wait_until(|| agents.iter().all(ended)));
    assert_eq!(last.status().unwrap().status, Status::Completed);
    place.tmux(&["kill-server"]);
    assert!(Deadline::after(LONG).wait_until(|| ended(&last)));
    agents.push(last);

    let causes: Vec<Cause> =
        agents.iter().map(|agent| agent.record().unwrap().ended.unwrap().cause.unwrap()).collect();
    let expected = [Cause::Quit, Cause::Crashed, Cause::PaneClosed, Cause::Killed, Cause::ServerGone];
    assert_eq!(causes, expected);
    // By a command that has nothing but what is on the disk.
    let list = listed(&place);
    let whys = [
        "left by itself, ended with exit code 0",
        "crashed, ended by signal 11",
        "its pane was closed",
        "the process that held it was killed",
        "tmux's server ended",
    ];
    for (agent, why) in agents.iter().zip(whys) {
        let mut lines = list.lines().skip_while(|line| !line.starts_with(agent.name()));
        assert!(lines.next().unwrap().contains("exited"), "{list}");
        let (line, id) = (lines.next().unwrap(), agent.session_id().unwrap());
        let resume = format!("--resume {}", id.split('-').next().unwrap());
        assert!(line.contains(why) && line.contains(&resume), "{why}: {list}");
    }

    // The way that it says.
    let id = agents[4].session_id().unwrap();
    let mut wanted = place.wanted("");
    wanted.request.resume = Some(alhena_agent::Resume::Id(id));
    let again = place.again().launch(wanted).unwrap();
    assert_eq!(again.last_answer().unwrap().text, "Well.");
    for agent in place.again().list().unwrap() {
        agent.kill().unwrap();
    }
    assert_eq!(listed(&place), "There are no terminals.\n");
    place.nothing_left();
}
