//! Turns: statuses, answers, errors, interrupts, sizes.

use std::time::Duration;

use alhena_scripted::{After, Scenario, Turn};
use alhena_terminal::screen::Status;
use alhena_terminal::{Answer, Force, Source, TerminalErrorKind, Until};
use alhena_testbed::Deadline;

use super::place::{LONG, Place, answer, ask};

// D-03, D-05, D-24, D-41
#[test]
fn three_turns_are_sent_waited_for_and_read_by_commands_that_know_nothing_of_each_other() {
    let scenario = Scenario::new()
        .turn(Turn::new().text("First ").sleep(Duration::from_millis(700)).text("answer."))
        .turn(Turn::say("Second.\n\n```sh\necho hi\n```"))
        .turn(Turn::new().thought("Thinking", "About it.").text("Third."));
    let place = Place::new("three turns", scenario);
    let id = place.launch().id().to_owned();
    let expected = ["First answer.", "Second.\n\n```sh\necho hi\n```", "Third."];
    for (number, text) in expected.iter().enumerate() {
        // Every step with a connection of its own, as from the command line.
        let before = place.again().find(&id).unwrap().status().unwrap().status;
        assert_eq!(before, if number == 0 { Status::Idle } else { Status::Completed });
        place.again().find(&id).unwrap().send(&format!("Question {number}?"), Force::OnlyWhenReady).unwrap();
        let reading = place.again().find(&id).unwrap().wait(Until::Completed, LONG).unwrap();
        assert_eq!(reading.status, Status::Completed);
        let read = place.again().find(&id).unwrap().last_answer().unwrap();
        let turn = Some(number as u64 + 1);
        let expected = Answer { text: (*text).to_owned(), source: Source::Session, turn, warning: None };
        assert_eq!(read, expected);
    }
    let terminal = place.again().find(&id).unwrap();
    let (turns, source) = terminal.turns().unwrap();
    assert_eq!(source, Source::Session);
    assert_eq!(turns.iter().map(|turn| turn.answer.as_str()).collect::<Vec<_>>(), expected);
    assert_eq!(turns[1].query, "Question 1?");

    let exit = terminal.exit(LONG).unwrap();
    assert!(exit.gracefully);
    assert_eq!(exit.ended.code, Some(0));
    assert_eq!(exit.ended.sessions.len(), 1);
    assert!(exit.ended.sessions[0].starts_with(place.home.gemini()));
    assert_eq!(place.terminals.find(&id).unwrap_err().kind, TerminalErrorKind::NotFound);
    place.nothing_left();
}

#[test]
fn an_answer_that_scrolls_is_whole_and_the_agent_is_not_idle_because_its_query_is_out_of_sight() {
    let text: Vec<String> = (0..400).map(|number| format!("Line {number} of a long answer.")).collect();
    let text = text.join("\n\n");
    let place = Place::new("long", Scenario::new().turn(Turn::say(&text)).after(After::Repeat));
    let terminal = place.launch();
    assert_eq!(answer(&terminal, "Tell me much"), text);
    assert_eq!(terminal.status().unwrap().status, Status::Completed);
    let seen = terminal.status().unwrap().message.unwrap();
    assert_eq!(seen, text);
}

// D-06, D-09
#[test]
fn an_error_of_the_api_is_an_error_with_its_message_until_the_next_turn() {
    let scenario = Scenario::new().turn(Turn::status(400)).turn(Turn::say("Error: is only a word here."));
    let place = Place::new("error", scenario);
    let terminal = place.launch();
    let reading = ask(&terminal, "Fail");
    assert_eq!(reading.status, Status::Error);
    assert!(reading.error.unwrap().contains("400"));
    let reading = ask(&terminal, "Again");
    assert_eq!(reading.status, Status::Completed);
    assert_eq!(reading.message.as_deref(), Some("Error: is only a word here."));
}

#[test]
fn an_interrupt_and_a_control_c_stop_the_turn_and_leave_the_agent_ready() {
    let turn = || Turn::new().text("Begun. ").hang();
    let scenario = Scenario::new().turn(turn()).turn(turn()).turn(Turn::say("Fine."));
    let place = Place::new("interrupt", scenario);
    let terminal = place.launch();
    for way in ["interrupt", "control-c"] {
        terminal.send("Go", Force::OnlyWhenReady).unwrap();
        let begun = || terminal.status_now().unwrap().message.is_some_and(|text| text.starts_with("Begun."));
        assert!(Deadline::after(LONG).wait_until(begun), "{way}");
        assert_eq!(terminal.status().unwrap().status, Status::Processing, "{way}");
        let refused = terminal.send("Too early", Force::OnlyWhenReady).unwrap_err();
        assert_eq!(refused.kind, TerminalErrorKind::NotReady, "{way}");
        let late = terminal.wait(Until::Completed, Duration::from_millis(200)).unwrap_err();
        assert_eq!(late.kind, TerminalErrorKind::Timeout, "{way}");
        if way == "interrupt" {
            terminal.interrupt(LONG).unwrap();
        } else {
            place.tmux(&["send-keys", "-t", &place.pane_of(&terminal), "C-c"]);
        }
        let reading = terminal.wait(Until::Idle, LONG).unwrap();
        assert!(Until::Idle.is_met(reading.status), "{way}: {reading:?}");
    }
    assert_eq!(answer(&terminal, "And now?"), "Fine.");
}

#[test]
fn sizes_that_change_while_it_works_change_neither_status_nor_answer() {
    let mut turn = Turn::new();
    let mut text = String::new();
    for number in 0..30 {
        let piece = format!("Word {number} of a sentence that is long enough to be wrapped. ");
        turn = turn.text(&piece).sleep(Duration::from_millis(100));
        text.push_str(&piece);
    }
    let place = Place::new("resize", Scenario::new().turn(turn));
    let terminal = place.launch();
    terminal.send("Go", Force::OnlyWhenReady).unwrap();
    let pane = place.pane_of(&terminal);
    for (columns, rows) in [("60", "15"), ("200", "60"), ("80", "24"), ("61", "50"), ("150", "46")] {
        place.tmux(&["resize-window", "-t", &pane, "-x", columns, "-y", rows]);
        let reading = terminal.status().unwrap();
        let working = place.api.state("api").turns_in_flight() > 0;
        assert!(!working || reading.status == Status::Processing, "{columns}x{rows}: {reading:?}");
        std::thread::sleep(Duration::from_millis(250));
    }
    assert_eq!(terminal.wait(Until::Completed, LONG).unwrap().status, Status::Completed);
    assert_eq!(terminal.last_answer().unwrap().text, text.trim_end());
}
