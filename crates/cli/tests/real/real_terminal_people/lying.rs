//! How terminals lie in tmux: beside each other, in the bar, and for whoever looks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_terminal::screen::Status;
use alhena_testbed::processes::{command_line, signal};
use alhena_testbed::{Deadline, processes_with_env};
use rustix::process::Signal;
use serde_json::json;

use super::person::Person;
use super::place::{LONG, Place, json_of, type_in};
use crate::lab::shell;

fn launch<'a>(name: &'a str, gemini: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["launch", "--name", name, "--gemini", gemini, "--model", "gemini-2.5-flash"];
    words.iter().chain(more).copied().collect()
}

#[test]
fn panes_lie_side_by_side_tell_their_state_and_have_their_size_back_when_nobody_looks() {
    let scenario = Scenario::new().turn(Turn::say("Here.").always()).after(After::Repeat);
    let place = Place::new("layout", scenario);
    let gemini = place.gemini.to_str().unwrap().to_owned();
    let conf = place.home.path().join("own.conf");
    std::fs::write(&conf, "set -g @mine yes\nset -g history-limit 10\nset -g no-such-option 1\n").unwrap();
    let bad = place.home.path().join("bad.conf");
    std::fs::write(&bad, "set -g @mine yes\nno-such-command\n").unwrap();

    let with = |file: &std::path::Path| format!("--tmux-conf={}", file.display());
    let (code, _, err) = type_in(&place, &launch("one", &gemini, &[&with(&bad)]));
    assert_eq!(code, 2);
    assert!(err.contains("bad.conf:2") && err.contains("--tmux-conf"), "{err}");
    assert_eq!(type_in(&place, &["list"]).1, "There are no terminals.\n");
    assert_eq!(type_in(&place, &launch("one", &gemini, &["--tmux-conf=/no/such/file"])).0, 2);
    assert_eq!(type_in(&place, &["launch", "--layout", "circle"]).0, 2);

    let more = ["--layout", "columns", "--columns", "100", "--rows", "30", &with(&conf)];
    assert_eq!(type_in(&place, &launch("one", &gemini, &more)).0, 0);
    assert_eq!(type_in(&place, &launch("two", &gemini, &more[..6])).0, 0);
    assert_eq!(place.tmux(&["show-options", "-gv", "@mine"]).trim(), "yes");
    assert_eq!(place.tmux(&["show-options", "-gv", "history-limit"]).trim(), "50000");

    let panes = || {
        let format = "#{@alhena-name} #{window_id} #{pane_width} #{pane_height}";
        let panes = place.tmux(&["list-panes", "-s", "-t", "alhena", "-F", format]);
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        panes.lines().map(words).collect::<Vec<_>>()
    };
    let [one, two] = ["one", "two"].map(|name| place.terminals.find(name).unwrap());
    let at_launch = panes();
    assert_eq!(at_launch.len(), 2, "{at_launch:?}");
    assert_eq!(at_launch[0][1], at_launch[1][1], "in one window: {at_launch:?}");
    for pane in &at_launch {
        let (width, height): (u16, u16) = (pane[2].parse().unwrap(), pane[3].parse().unwrap());
        assert!((98..=102).contains(&width) && (29..=31).contains(&height), "{at_launch:?}");
    }
    for name in ["one", "two"] {
        assert_eq!(type_in(&place, &["ask", name, "Where?"]), (0, "Here.\n".to_owned(), String::new()));
    }
    let state = |terminal| {
        let pane = place.pane_of(terminal);
        place.tmux(&["display-message", "-p", "-t", &pane, "#{@alhena-state}"]).trim().to_owned()
    };
    assert!(Deadline::after(LONG).wait_until(|| state(&one) == "completed"), "{}", state(&one));
    let bar = place.tmux(&["display-message", "-p", "-t", "alhena:", "#{T:window-status-format}"]);
    assert!(bar.contains("columns completed"), "{bar}");

    // Somebody looks from a small screen, and leaves; their screen is closed; their command alone is told to end, or killed.
    let width = || panes()[0][2].parse::<u16>().unwrap();
    let attached = || {
        let ours = processes_with_env(&format!("HOME={}", place.home.path().display()));
        ours.into_iter().find(|pid| command_line(*pid).ends_with(" attach two")).unwrap()
    };
    for way in ["leaves", "is gone", "is told", "hangs up", "is killed"] {
        let person = Person::with_size(&place, "60", "15");
        person.type_line(&format!("{} attach two; echo code $?", person.alhena()));
        assert!(Deadline::after(LONG).wait_until(|| width() < 60), "{:?}\n{}", panes(), person.shown());
        match way {
            "leaves" => person.press(&["C-b", "d"]),
            "is told" => signal(attached(), Signal::TERM),
            "hangs up" => signal(attached(), Signal::HUP),
            "is killed" => signal(attached(), Signal::KILL),
            _ => person.leave(),
        }
        assert!(Deadline::after(LONG).wait_until(|| panes() == at_launch), "{way}: {:?}", panes());
        if way.starts_with("is told") {
            person.sees("code 130");
        }
        person.leave();
    }
    let options = place.tmux(&["show-options", "-wv", "-t", &at_launch[0][1], "window-size"]);
    assert_eq!(options.trim(), "manual");
    assert_eq!(type_in(&place, &["ask", "two", "Still?"]), (0, "Here.\n".to_owned(), String::new()));

    // The one that stays has the window to itself.
    assert_eq!(type_in(&place, &["exit", "one"]).0, 0);
    assert_eq!(panes().len(), 1);
    assert!((98..=102).contains(&width()), "{:?}", panes());
    assert_eq!(type_in(&place, &["ask", "two", "Alone?"]), (0, "Here.\n".to_owned(), String::new()));
    two.kill().unwrap();
    place.nothing_left();
}

#[test]
fn whoever_wants_to_be_told_is_told_once_that_an_agent_waits() {
    let call = shell("touch asked.txt");
    let scenario = Scenario::new()
        .turn(Turn::say("Done.").when(When::new().response_of("run_shell_command")).always())
        .turn(call.when(When::new().prompt("Touch")).always());
    let place = Place::new("notify", scenario);
    let gemini = place.gemini.to_str().unwrap().to_owned();
    let told = place.work().join("told.txt");
    let command = "echo \"$ALHENA_TERMINAL $ALHENA_STATUS $ALHENA_QUESTION\" >> told.txt; sleep 600.77";
    assert_eq!(type_in(&place, &["launch", "--notify", ""]).0, 2);
    assert_eq!(type_in(&place, &launch("one", &gemini, &["--notify", command])).0, 0);
    assert_eq!(type_in(&place, &launch("two", &gemini, &["--notify", "bell"])).0, 0);
    for name in ["one", "two"] {
        let (code, asked) = json_of(&place, &["ask", name, "Touch it"]);
        assert_eq!((code, &asked["status"]), (10, &json!("waiting")), "{asked}");
    }
    let lines = || std::fs::read_to_string(&told).unwrap_or_default();
    assert!(Deadline::after(LONG).wait_until(|| lines().starts_with("one waiting ")), "{}", lines());
    let bells = || place.tmux(&["list-windows", "-t", "alhena", "-F", "#{window_name} #{window_bell_flag}"]);
    assert!(Deadline::after(LONG).wait_until(|| bells().contains("two 1")), "{}", bells());
    for name in ["one", "two"] {
        assert_eq!(type_in(&place, &["answer", name, "1"]).0, 0);
        assert_eq!(type_in(&place, &["wait", name]).0, 0);
    }
    assert_eq!(lines().lines().count(), 1, "{}", lines());
    // A command that does not come to an end is ended.
    let mark = format!("HOME={}", place.home.path().display());
    let sleeps = || processes_with_env(&mark).into_iter().any(|pid| command_line(pid).contains("600.77"));
    assert!(Deadline::after(LONG).wait_until(|| !sleeps()));
}

// tmux 3.3a crashed after some eight of these while it destroyed the views itself (`destroy-unattached`).
#[test]
fn people_come_and_go_while_others_ask_and_the_server_stays() {
    let place = Place::new("views", Scenario::new());
    let agent = place.launch();
    let (code, _, err) = type_in(&place, &["attach", agent.name()]);
    assert_eq!(
        (code, err.lines().next()),
        (2, Some("error: attach needs a terminal, for its input and its output"))
    );
    assert!(err.contains(" read agent-1 --screen` "), "{err}");
    let pid = || place.tmux(&["display-message", "-p", "#{pid}"]);
    let before = pid();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    place.tmux(&["list-panes", "-a"]);
                }
            });
        }
        let views = || place.tmux(&["list-sessions", "-F", "#{session_name}"]).matches("view").count();
        for _ in 0..10 {
            let person = Person::with_size(&place, "60", "15");
            person.type_line(&format!("{} attach {}", person.alhena(), agent.name()));
            if !Deadline::after(Duration::from_secs(20)).wait_until(|| views() == 1) {
                break;
            }
            person.press(&["C-b", "d"]);
            if !Deadline::after(Duration::from_secs(20)).wait_until(|| views() == 0) {
                break;
            }
            person.leave();
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!((pid(), views()), (before, 0));
    });
    assert_eq!(agent.status().unwrap().status, Status::Idle);
}
