//! Commands from all sides at once, for a while: tmux's server and every agent must outlive them.
//!
//! tmux 3.3a crashes when control clients come and go together. Two loops of a command that was such a client ended it within
//! four seconds. The agents here are stand-ins that draw like the CLI at work: what matters is that panes write all the time.
//! `ALHENA_SOAK_SECONDS` makes it longer, `ALHENA_SOAK_TMUX` names another tmux.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alhena_scripted::{Scenario, Turn};
use alhena_terminal::screen::Status;
use alhena_testbed::Deadline;
use alhena_testbed::processes::command_line;
use rustix::process::{Pid, Signal, kill_process};

use super::place::{ALHENA, LONG, Place};

const AGENTS: usize = 8;
const LOOPS: usize = 8;

/// Draws a free prompt, and moves all the time.
const STAND_IN: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 0.61.0; exit 0 ;; esac
stty -echo
printf '\033]0;◇  Ready (work)\007'
printf ' ▝▜▄     Gemini CLI v0.61.0\n\nTips for getting started:\n1. Be specific\n\n'
printf '────────────────────────────────────────────────────────────\n Shift+Tab to accept edits\n'
printf '▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄\n'
printf ' >   Type your message or @path/to/file\n'
printf '▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n ~/work   no sandbox   /model\n'
sleep 3
while :; do
  printf '\033[s\033[1;60H%s\033[u\033]0;◇  Ready (work)\007' "$(date +%N)"
  sleep 0.1
done
"#;

fn stand_in(place: &Place) -> PathBuf {
    let path = place.home.path().join("gemini");
    std::fs::write(&path, STAND_IN).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(place.env.iter()).args(["terminal", "--server", &place.server, "--tmux"]);
    command.arg(&place.tmux).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn server(place: &Place) -> String {
    place.tmux(&["display-message", "-p", "#{pid}"]).trim().to_owned()
}

fn watchers(place: &Place) -> Vec<u32> {
    let mark = format!("HOME={}", place.home.path().display());
    let watches = |pid: &u32| command_line(*pid).contains(" watcher ");
    alhena_testbed::processes_with_env(&mark).into_iter().filter(watches).collect()
}

#[test]
fn eight_loops_of_commands_at_once_end_neither_the_server_nor_an_agent() {
    let seconds = std::env::var("ALHENA_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let place = Place::soak("soak", Scenario::new(), Duration::from_secs(seconds));
    let names: Vec<String> = (0..AGENTS).map(|number| format!("agent{number}")).collect();
    let gemini = stand_in(&place);
    std::thread::scope(|scope| {
        for name in &names {
            let (place, gemini) = (&place, &gemini);
            scope.spawn(move || {
                let mut wanted = place.wanted("");
                (wanted.name, wanted.gemini, wanted.timeout) =
                    (Some(name.clone()), Some(gemini.clone()), LONG * 2);
                place.again().launch(wanted).unwrap();
            });
        }
    });
    let (before, count) = (server(&place), AtomicUsize::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    std::thread::scope(|scope| {
        for number in 0..LOOPS {
            let (place, name, count) = (&place, &names[number % AGENTS], &count);
            scope.spawn(move || {
                while Instant::now() < end {
                    let all: [&[&str]; 4] =
                        [&["status", name], &["list"], &["read", name, "--screen"], &["status", name]];
                    for args in all {
                        let done = command(place, args).output().unwrap();
                        let said = String::from_utf8_lossy(&done.stderr).into_owned();
                        assert!(done.status.success(), "{args:?}: {said}");
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("{} commands in {seconds} s", count.into_inner());
    assert_eq!(server(&place), before, "the server is another one");
    assert_eq!(watchers(&place).len(), 1);
    assert_eq!(place.tmux(&["list-clients", "-F", "#{client_control_mode}"]).trim(), "1");
    for name in &names {
        assert!(place.again().find(name).unwrap().record().unwrap().ended.is_none(), "{name} has ended");
    }
}

#[test]
fn a_watcher_that_is_killed_is_replaced_and_without_one_plain_commands_do() {
    let place = Place::new("watcher", Scenario::new());
    let mut wanted = place.wanted("");
    wanted.gemini = Some(stand_in(&place));
    let terminal = place.terminals.launch(wanted).unwrap();
    let first = watchers(&place);
    assert_eq!(first.len(), 1);
    kill_process(Pid::from_raw(first[0] as i32).unwrap(), Signal::KILL).unwrap();
    // The same process goes on, and so does another.
    let status = terminal.status().unwrap().status;
    assert_eq!(place.again().find(terminal.id()).unwrap().status().unwrap().status, status);
    let second = watchers(&place);
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    kill_process(Pid::from_raw(second[0] as i32).unwrap(), Signal::KILL).unwrap();
    let gone = || place.tmux(&["list-clients"]).trim().is_empty();
    assert!(Deadline::after(LONG).wait_until(gone));

    // No program to start one with.
    let mut env = place.env.clone();
    env.set("ALHENA_KEEPER", "/proc/nowhere").set("PATH", "/proc/nowhere");
    let plain = place.with_env(&env).find(terminal.id()).unwrap();
    assert_eq!(plain.status().unwrap().status, status);
    assert!(plain.captured().unwrap().text.contains("Type your message"));
    assert_eq!(place.tmux(&["list-clients"]), "");
    terminal.kill().unwrap();
    assert!(Deadline::after(LONG).wait_until(|| watchers(&place).is_empty()));
}

#[test]
fn a_watcher_that_is_stopped_is_replaced_and_one_that_cannot_listen_connects_to_nothing() {
    let place = Place::new("stuck watcher", Scenario::new());
    let mut wanted = place.wanted("");
    wanted.gemini = Some(stand_in(&place));
    let terminal = place.terminals.launch(wanted).unwrap();
    let status = terminal.status().unwrap().status;
    let stopped = watchers(&place);
    kill_process(Pid::from_raw(stopped[0] as i32).unwrap(), Signal::STOP).unwrap();
    let told = command(&place, &["status", terminal.name()]).output().unwrap();
    assert!(told.status.success(), "{told:?}");
    let second = watchers(&place);
    assert_eq!(second.len(), 1);
    assert_ne!(stopped, second);
    assert_eq!(place.again().find(terminal.id()).unwrap().status().unwrap().status, status);

    // Something else is where the socket belongs.
    kill_process(Pid::from_raw(second[0] as i32).unwrap(), Signal::KILL).unwrap();
    assert!(Deadline::after(LONG).wait_until(|| place.tmux(&["list-clients"]).trim().is_empty()));
    let socket = place.home.path().join("alhena/state/terminals").join(&place.server).join("watcher.sock");
    std::fs::remove_file(&socket).unwrap();
    std::fs::create_dir(&socket).unwrap();
    let seen = AtomicUsize::new(0);
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let clients = place.tmux(&["list-clients", "-F", "#{client_control_mode}"]);
                seen.fetch_add(clients.lines().count(), Ordering::Relaxed);
            }
        });
        for _ in 0..3 {
            let told = command(&place, &["status", terminal.name()]).output().unwrap();
            assert!(told.status.success(), "{told:?}");
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen.into_inner(), 0, "a control client came");
    assert!(terminal.record().unwrap().ended.is_none());
}

#[test]
fn a_watcher_that_is_killed_in_the_middle_of_a_turn_costs_nothing() {
    let turn = || Turn::new().delay(Duration::from_secs(2)).text("Well.");
    let place = Place::new("killed in a turn", Scenario::new().turn(turn()).turn(turn()));
    let terminal = place.launch();
    for signal in [Signal::KILL, Signal::STOP] {
        terminal.send("Be well", alhena_terminal::Force::OnlyWhenReady).unwrap();
        kill_process(Pid::from_raw(watchers(&place)[0] as i32).unwrap(), signal).unwrap();
        let other = place.again().find(terminal.id()).unwrap();
        let reading = other.status().unwrap();
        let works = place.api.state("api").turns_in_flight() > 0;
        assert!(!works || reading.status == Status::Processing, "{reading:?}");
        let reading = other.wait(alhena_terminal::Until::Completed, LONG).unwrap();
        assert_eq!((reading.status, reading.warning), (Status::Completed, None));
        assert_eq!(terminal.last_answer().unwrap().text, "Well.");
    }
    let how: Vec<_> = terminal.turn_records().into_iter().map(|turn| turn.ended.unwrap().how).collect();
    assert_eq!(how, [alhena_terminal::How::Answered; 2]);
}

/// tmux 3.3a keeps the client of a watcher that was killed for as long as there is output for it, and with it the lock.
#[test]
fn a_watcher_that_is_killed_while_a_pane_floods_it_is_replaced() {
    let place = Place::new("orphan", Scenario::new());
    let mut wanted = place.wanted("");
    wanted.gemini = Some(stand_in(&place));
    let terminal = place.terminals.launch(wanted).unwrap();
    place.tmux(&[
        "new-window",
        "-d",
        "-t",
        "=alhena:",
        "-n",
        "flood",
        "while :; do echo flood flood flood; done",
    ]);
    for _ in 0..2 {
        let before = watchers(&place);
        kill_process(Pid::from_raw(before[0] as i32).unwrap(), Signal::KILL).unwrap();
        let again = || {
            let told = command(&place, &["status", terminal.name()]).output().unwrap();
            assert!(told.status.success(), "{told:?}");
            let now = watchers(&place);
            now.len() == 1 && now != before
        };
        assert!(Deadline::after(LONG).wait_until(again), "{:?}", watchers(&place));
    }
    place.tmux(&["kill-window", "-t", "=alhena:flood"]);
}
