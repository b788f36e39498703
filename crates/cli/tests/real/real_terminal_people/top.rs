//! All agents on one screen: seen, steered, and the terminal as it was afterwards.

use std::time::{Duration, Instant};

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_terminal::{Force, Launch, Until};
use alhena_testbed::processes::{command_line, signal};
use alhena_testbed::{Deadline, processes_with_env};
use rustix::process::Signal;
use serde_json::json;

use super::person::Person;
use super::place::{LONG, Place, type_in};

fn start_top(person: &Person<'_>) {
    person.type_line(&format!("clear; {} top; echo code $?", person.alhena()));
    person.sees("q quit");
}

fn top_of(place: &Place) -> u32 {
    let mark = format!("HOME={}", place.home.path().display());
    let is_top = |pid: &u32| command_line(*pid).ends_with(" top");
    processes_with_env(&mark).into_iter().find(is_top).unwrap()
}

#[test]
fn top_shows_agents_live_obeys_its_keys_and_gives_the_terminal_back() {
    let call = Turn::new().call("run_shell_command", json!({"command": "touch asked.txt"}));
    let scenario = Scenario::new()
        .turn(Turn::say("All done.").when(When::new().response_of("run_shell_command")))
        .turn(call.when(When::new().prompt("Touch")))
        .turn(Turn::new().text("Thinking hard").hang().when(When::new().prompt("Hang")))
        .after(After::Error);
    let place = Place::new("top", scenario);
    let (code, _, err) = type_in(&place, &["top"]);
    assert_eq!(code, 2);
    assert!(err.contains("needs a terminal") && err.contains("alhena terminal --server "), "{err}");

    let named = |name: &str| Launch { name: Some(name.to_owned()), ..place.wanted("") };
    let [one, _two] = ["one", "two"].map(|name| place.terminals.launch(named(name)).unwrap());
    let person = Person::sit_down(&place);
    start_top(&person);
    person.sees("2 agents: 2 idle");
    assert_eq!(person.alternate(), "1");

    // Where nothing happens, next to nothing is written: an age here and there, no frame.
    let written = place.home.path().join("written");
    place.tmux(&["pipe-pane", "-t", "=person:", &format!("cat >> '{}'", written.display())]);
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(2));
    place.tmux(&["pipe-pane", "-t", "=person:"]);
    let seconds = began.elapsed().as_secs() as usize;
    let bytes = std::fs::read(&written).unwrap_or_default();
    assert!(
        bytes.len() < 250 * (seconds + 1),
        "{} bytes: {:?}",
        bytes.len(),
        String::from_utf8_lossy(&bytes)
    );

    one.send("Touch", Force::OnlyWhenReady).unwrap();
    person.sees("1 waiting, 1 idle");
    person.sees("  1. ");
    person.press(&["a"]);
    person.sees("Answer one:");
    person.press(&["1"]);
    person.press(&["Enter"]);
    person.sees("1 completed, 1 idle");
    person.press(&["r"]);
    person.sees("All done.\n");
    person.press(&["q"]);
    person.press(&["?"]);
    person.sees("interrupt what it does");
    person.press(&["q"]);

    one.send("Hang", Force::OnlyWhenReady).unwrap();
    person.sees("Thinking hard");
    person.press(&["i"]);
    one.wait(Until::Idle, LONG).unwrap();

    // Somebody looks, and comes back.
    person.press(&["Enter"]);
    person.sees("Type your message");
    person.press(&["C-b", "d"]);
    person.sees("q quit");
    person.press(&["x"]);
    person.sees("End one?");
    person.press(&["y"]);
    person.sees("1 agent: 1 idle");

    person.press(&["q"]);
    person.sees("code 0");
    assert_eq!(person.alternate(), "0");

    // The same while it lends its terminal.
    start_top(&person);
    person.press(&["Enter"]);
    person.sees("Type your message");
    signal(top_of(&place), Signal::TERM);
    person.sees("code 130");
    assert_eq!(person.alternate(), "0");

    for (way, code) in [(Signal::TERM, "code 130"), (Signal::HUP, "code 130"), (Signal::INT, "code 130")] {
        start_top(&person);
        signal(top_of(&place), way);
        person.sees(code);
        assert_eq!(person.alternate(), "0", "{way:?}");
        // What is typed is echoed again, and lines end where they should.
        person.press(&["-l", "echo re''stored"]);
        person.sees("echo re''stored");
        person.press(&["Enter"]);
        person.sees("\nrestored");
    }

    person.leave();

    // Its terminal is closed under it, while it is on it and while it has lent it.
    for lends in [false, true] {
        let person = Person::sit_down(&place);
        start_top(&person);
        if lends {
            person.press(&["Enter"]);
            person.sees("Type your message");
        }
        let top = top_of(&place);
        person.leave();
        let gone = || !command_line(top).ends_with(" top");
        assert!(Deadline::after(LONG).wait_until(gone), "{}", command_line(top));
    }
}
