//! States that a screen alone does not tell: turns without an answer, messages that are held up, agents that have left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena::home::McpServer;
use alhena::scripted::{RecordedRequest, Scenario, Turn};
use alhena::terminal::screen::{Status, WaitingFor};
use alhena::terminal::{Force, How, TerminalErrorKind, Until};
use serde_json::json;

use crate::place::{LONG, Place, answer, ask};

/// The prompt says how it ends.
fn scripted(request: &RecordedRequest) -> Turn {
    let prompt = request.prompt().unwrap_or_default();
    let told = |word: &str| prompt.ends_with(word);
    match () {
        () if told("empty") => Turn::new().finish("STOP"),
        () if told("half blocked") => Turn::say("Half of").finish("SAFETY"),
        () if told("cut off") => Turn::say("This is cut").finish("MAX_TOKENS"),
        () if told("fail") => {
            Turn::error(400, json!({"code": 400, "message": "scripted", "status": "INVALID_ARGUMENT"}))
        }
        () if told("no model") => {
            Turn::error(404, json!({"code": 404, "message": "no such model", "status": "NOT_FOUND"}))
        }
        () if told("slow") => Turn::new().delay(Duration::from_millis(1500)).text("Slowly."),
        () => Turn::say("Well."),
    }
}

#[test]
fn a_turn_without_an_answer_says_why_and_is_never_given_the_one_before() {
    let place = Place::new("no answer", Scenario::dynamic(scripted));
    let terminal = place.launch();
    assert_eq!(answer(&terminal, "Be well"), "Well.");
    let endings = [
        ("empty", How::Empty, None),
        ("half blocked", How::Blocked, Some("Half of")),
        ("cut off", How::CutOff, Some("This is cut")),
        ("fail", How::Error, None),
    ];
    for (number, (prompt, how, text)) in endings.into_iter().enumerate() {
        let sent = terminal.send(&format!("Be {prompt}"), Force::No).unwrap();
        assert_eq!(sent.turn, Some(number as u64 + 2));
        // Another process says the same.
        let reading = place.again().find(terminal.id()).unwrap().wait(Until::Settled, LONG).unwrap();
        let note = reading.turn.unwrap();
        assert_eq!((note.id, note.ended), (number as u64 + 2, Some(how)), "{prompt}");
        assert!(reading.warning.is_some(), "{prompt}");
        let read = place.again().find(terminal.id()).unwrap().last_answer();
        match text {
            Some(text) => {
                let read = read.unwrap();
                assert_eq!((read.text.as_str(), read.turn, read.warning.is_some()), (text, sent.turn, true));
            }
            None => {
                let error = read.unwrap_err();
                assert_eq!(error.kind, TerminalErrorKind::NoAnswer);
                assert!(error.message.starts_with(&format!("turn {} has no answer: ", note.id)), "{error}");
            }
        }
    }
    // None of them is the end of it.
    assert_eq!(answer(&terminal, "Be well"), "Well.");
    let how: Vec<Option<How>> =
        terminal.turn_records().into_iter().map(|turn| turn.ended.map(|end| end.how)).collect();
    let expected = [How::Answered, How::Empty, How::Blocked, How::CutOff, How::Error, How::Answered];
    assert_eq!(how, expected.map(Some));
}

#[test]
fn a_message_that_slow_servers_hold_up_is_work_for_every_observer_until_it_is_answered() {
    let place = Place::new("slow servers", Scenario::dynamic(scripted));
    let mut wanted = place.wanted("");
    let server = McpServer::process("slow", "sh", ["-c", "sleep 8"]);
    wanted.request.mcp_servers.push(server);
    let terminal = place.terminals.launch(wanted).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let observers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let observer = place.again().find(terminal.id()).unwrap();
                    let mut samples = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let reading = observer.status().unwrap();
                        samples.push((
                            Instant::now(),
                            reading.status,
                            reading.turn.and_then(|turn| turn.ended),
                        ));
                        std::thread::sleep(Duration::from_millis(30));
                    }
                    samples
                })
            })
            .collect();
        let sent = Instant::now();
        let taken = terminal.send("Be slow", Force::No);
        let reading = terminal.wait(Until::Settled, LONG);
        // Whatever went wrong, the observers have to end.
        over.store(true, Ordering::Relaxed);
        taken.unwrap();
        let reading = reading.unwrap();
        assert_eq!((reading.status, reading.message.as_deref()), (Status::Completed, Some("Slowly.")));
        assert_eq!(terminal.last_answer().unwrap().text, "Slowly.");
        for observer in observers {
            let samples = observer.join().unwrap();
            // What was asked before the message was sent may be told a little later.
            let sent = sent + Duration::from_millis(1500);
            let during = samples.iter().filter(|(at, _, ended)| *at > sent && ended.is_none());
            let wrong: Vec<_> =
                during.clone().filter(|(_, status, _)| *status != Status::Processing).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
            assert!(during.count() > 3);
        }
    });
}

#[test]
fn after_quit_it_has_exited_and_its_last_answer_can_still_be_read() {
    let place = Place::new("quit", Scenario::dynamic(scripted));
    let terminal = place.launch();
    assert_eq!(answer(&terminal, "Be well"), "Well.");
    let _gone = terminal.command("/quit", Force::No);
    let mut seen = Vec::new();
    let deadline = Instant::now() + LONG;
    while seen.last() != Some(&Status::Exited) && Instant::now() < deadline {
        seen.push(place.again().find(terminal.id()).unwrap().status().unwrap().status);
    }
    assert!(!seen.contains(&Status::Starting), "{seen:?}");
    assert_eq!(seen.last(), Some(&Status::Exited));
    assert_eq!(terminal.last_answer().unwrap().text, "Well.");
}

#[test]
fn a_model_that_does_not_exist_is_asked_about_and_can_be_given_up() {
    let place = Place::new("no model", Scenario::dynamic(scripted));
    let terminal = place.launch();
    let reading = ask(&terminal, "There is no model");
    assert_eq!(reading.status, Status::Waiting);
    assert_eq!(reading.waiting_for.unwrap().kind, WaitingFor::Model);
    let reading = terminal.interrupt(LONG).unwrap();
    assert_eq!(reading.status, Status::Error, "{reading:?}");
    assert_eq!(answer(&terminal, "Be well"), "Well.");
}
