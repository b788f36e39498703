//! Several chats in one folder, with one session, and with other programs.

use std::fs;

use alhena_scripted::{Scenario, Turn, When};

use super::screen::Screen;
use super::{VERSION, chat, lab, nothing_is_left, told, write};
use crate::lab::Lab;

/// Writes one text or another into the same file, as it is asked.
fn writers(name: &str) -> Lab {
    let on = |prompt: &str| When::new().prompt(prompt);
    let scenario = Scenario::new()
        .turn(Turn::say("Wrote it.").when(When::new().response_of("write_file")).always())
        .turn(write("shared.txt", "one\ntwo\n").when(on("first")).always())
        .turn(write("shared.txt", "one\nTWO\n").when(on("second")).always());
    Lab::real(name, VERSION, scenario)
}

#[test]
fn real_cli_of_two_chats_in_a_folder_none_takes_back_what_the_other_did() {
    let lab = writers("chat two");
    let text = || fs::read_to_string(lab.workspace().join("shared.txt")).unwrap_or_default();
    let mut first = Screen::start(chat(&lab, &["--approval", "auto-edit"]));
    let mut second = Screen::start(chat(&lab, &["--approval", "auto-edit"]));
    for (screen, prompt) in [(&mut first, "first"), (&mut second, "second")] {
        screen.say(prompt);
        screen.wait_for("Wrote it.");
        screen.wait_for("done ·");
    }
    first.say("/undo");
    first.wait_for("it has changed since");
    assert_eq!(text(), "one\nTWO\n");
    second.say("/undo");
    second.wait_for("put back");
    assert_eq!(text(), "one\ntwo\n");
    // Another program, after a turn that was undone once already.
    second.say("second");
    second.wait_for("done ·");
    fs::write(lab.workspace().join("shared.txt"), "mine\n").unwrap();
    second.say("/undo");
    second.wait_for("it has changed since");
    second.say("/undo");
    second.wait_for("The last turn changed no files.");
    assert_eq!(text(), "mine\n");
    for screen in [&mut first, &mut second] {
        screen.say("/exit");
        assert!(screen.ended().success(), "{}", screen.seen);
        // What a turn has written is there, and is not said to be missing.
        assert!(!screen.seen.contains("not on disk"), "{}", screen.seen);
    }
    nothing_is_left(&lab);
}

fn session_of(seen: &str) -> String {
    seen.rsplit("session ").next().unwrap().chars().take(36).collect()
}

#[test]
fn real_cli_a_session_that_is_gone_on_with_in_its_own_chat_has_all_that_was_said() {
    let turns = ["One.", "Two.", "Three."].map(Turn::say);
    let lab = lab("chat own session", turns);
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("the first words");
    screen.wait_for("One.");
    screen.say("/exit");
    assert!(screen.ended().success());
    let session = session_of(&screen.seen);
    let mut screen = Screen::start(chat(&lab, &[&format!("--resume={session}")]));
    screen.say("the second words");
    screen.wait_for("Two.");
    screen.wait_for("done ·");
    screen.say(&format!("/resume {session}"));
    screen.wait_for("goes on with that session");
    screen.say("the third words");
    screen.wait_for("Three.");
    screen.say("/exit");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(!screen.seen.contains("both versions are kept"), "{}", screen.seen);
    let last = lab.server.requests("lab").pop().unwrap().body.to_string();
    for words in ["the first words", "the second words", "the third words"] {
        assert!(last.contains(words), "{words}");
    }
    nothing_is_left(&lab);
}

#[test]
fn real_cli_a_session_in_two_chats_at_once_is_kept_twice_and_that_is_said() {
    let lab = lab("chat in use", ["One.", "Two.", "Three."].map(Turn::say));
    let mut before = Screen::start(chat(&lab, &[]));
    before.say("the first words");
    before.wait_for("One.");
    before.say("/exit");
    assert!(before.ended().success());
    let session = session_of(&before.seen);
    let mut first = Screen::start(chat(&lab, &[&format!("--resume={session}")]));
    let mut second = Screen::start(chat(&lab, &[]));
    first.say("words of one");
    first.wait_for("Two.");
    first.wait_for("done ·");
    second.say(&format!("/resume {session}"));
    second.wait_for("goes on with that session");
    second.say("words of another");
    second.wait_for("Three.");
    second.wait_for("done ·");
    for screen in [&mut first, &mut second] {
        screen.say("/exit");
        assert!(screen.ended().success(), "{}", screen.seen);
    }
    assert!(second.seen.contains("both versions are kept"), "{}", second.seen);
    assert!(told(&lab).contains("words of one"));
    nothing_is_left(&lab);
}

#[test]
fn real_cli_offline_is_a_tour_that_asks_and_can_be_taken_back() {
    let lab = lab("chat tour", [Turn::say("Nobody asks me.")]);
    let file = lab.workspace().join("haiku.txt");
    let mut screen = Screen::start(chat(&lab, &["--offline", "Write a haiku about rivers into haiku.txt"]));
    screen.wait_for("Write haiku.txt");
    assert!(!file.exists());
    screen.answer("y");
    screen.wait_for("done ·");
    assert!(file.exists());
    screen.say("/undo");
    screen.wait_for("removed");
    screen.say("/exit");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(!file.exists() && lab.server.requests("lab").is_empty());
    nothing_is_left(&lab);
}
