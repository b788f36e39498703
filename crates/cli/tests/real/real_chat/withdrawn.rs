//! Questions that nobody answers in time, or that nobody can answer any more.

use alhena_scripted::Turn;
use rustix::process::{Pid, Signal, kill_process};

use super::screen::Screen;
use super::{agents, chat, lab, nothing_is_left, shell};

#[test]
fn real_cli_a_question_that_nobody_answers_in_time_leaves_the_screen_and_the_next_line_is_a_prompt() {
    let lab =
        lab("chat unanswered", [shell("touch never"), Turn::say("Then not."), Turn::say("The next answer.")]);
    let mut screen = Screen::start(chat(&lab, &["--permission-timeout", "10s"]));
    screen.say("make never");
    screen.wait_for("or a reason: ");
    // Half an answer is none, and no part of the next prompt.
    screen.press("y");
    screen.wait_for("Nobody answered");
    screen.wait_for("Then not.");
    screen.say("and now something else");
    screen.wait_for("The next answer.");
    screen.say("/exit");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(!lab.workspace().join("never").exists());
    let asked = lab.server.requests("lab");
    assert!(
        asked.last().unwrap().texts().any(|text| text == "and now something else"),
        "{:?}",
        asked.last().unwrap().texts().collect::<Vec<_>>()
    );
    nothing_is_left(&lab);
}

#[test]
fn real_cli_ctrl_c_at_a_question_cancels_the_turn_and_twice_ends_the_conversation() {
    let lab =
        lab("chat ^C at a question", [shell("touch never"), Turn::say("Still here."), shell("touch never")]);
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("make never");
    screen.wait_for("or a reason: ");
    screen.press("\u{3}");
    screen.wait_for("cancelled ·");
    screen.say("and now");
    screen.wait_for("Still here.");
    screen.say("again");
    screen.wait_for("or a reason: ");
    // ^D says no more than ^C.
    screen.press("\u{4}");
    screen.wait_for("cancelled ·");
    screen.wait_for("> ");
    screen.press("\u{3}");
    assert_eq!(screen.ended().code(), Some(130), "{}", screen.seen);
    assert!(!lab.workspace().join("never").exists());
    nothing_is_left(&lab);
}

#[test]
fn real_cli_an_agent_that_is_killed_takes_its_question_along_and_the_conversation_goes_on() {
    let lab = lab("chat killed at a question", [shell("touch never"), Turn::say("Here again.")]);
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("make never");
    screen.wait_for("or a reason: ");
    for pid in agents(&lab) {
        let _gone = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
    screen.wait_for("The agent has ended");
    screen.say("are you there");
    screen.wait_for("Here again.");
    screen.say("/exit");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(!lab.workspace().join("never").exists());
    nothing_is_left(&lab);
}
