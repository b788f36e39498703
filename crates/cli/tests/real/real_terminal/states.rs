//! States that a screen alone does not tell: turns without an answer, messages that are held up, agents that have left.

use std::time::{Duration, Instant};

use alhena_agent::home::McpServer;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_terminal::screen::{Status, WaitingFor};
use alhena_terminal::{Force, How, TerminalErrorKind, Until};
use alhena_testbed::Deadline;
use serde_json::json;

use super::place::{LONG, Place, answer, ask};

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
        () if told("slow") => Turn::new().gate("go").text("Slowly."),
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
        let sent = terminal.send(&format!("Be {prompt}"), Force::OnlyWhenReady).unwrap();
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

/// A server of its own profile or settings that never answers, and ends after some seconds.
fn slow_server() -> McpServer {
    McpServer::process("slow", "sh", ["-c", "sleep 8; date +%s%N > started.txt"])
}

#[test]
fn a_launch_whose_servers_never_start_says_which_and_one_with_a_prompt_works_on_it_until_it_is_answered() {
    let place = Place::new("servers that hang", Scenario::dynamic(scripted));
    // On a busy machine a start alone takes longer than usual, and says nothing of servers.
    let began = Instant::now();
    place.launch().kill().unwrap();
    let mut hangs = place.wanted("");
    hangs.mcp_servers.push(McpServer::process("hangs", "sleep", ["600"]));
    hangs.timeout = (began.elapsed() * 3).max(Duration::from_secs(30));
    let error = place.terminals.launch(hangs).unwrap_err();
    assert_eq!(error.kind, TerminalErrorKind::Timeout);
    assert!(error.message.ends_with("Its MCP servers are starting: hangs"), "{error}");

    let mut wanted = place.wanted("Be slow");
    wanted.mcp_servers.push(slow_server());
    let terminal = place.terminals.launch(wanted).unwrap();
    assert!(matches!(terminal.status().unwrap().status, Status::Starting | Status::Processing));
    place.api.release("api", "go");
    let reading = terminal.wait(Until::Settled, LONG).unwrap();
    let told = (reading.status, reading.message.as_deref());
    assert_eq!(told, (Status::Completed, Some("Slowly.")), "{:?}: {:?}", reading.turn, reading.warning);
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

#[test]
fn a_message_whose_sender_was_killed_before_it_could_note_its_arrival_is_answered_all_the_same() {
    let place = Place::new("killed sender", Scenario::dynamic(scripted));
    let terminal = place.launch();
    let moment = alhena_model::Timestamp::now();
    let pane = place.pane_of(&terminal);
    place.tmux(&["send-keys", "-t", &pane, "-l", "Be slow"]);
    assert!(Deadline::after(LONG).wait_until(|| place.capture(&terminal).contains("Be slow")));
    std::thread::sleep(Duration::from_millis(200));
    place.tmux(&["send-keys", "-t", &pane, "Enter"]);
    let asked = || !place.api.state("api").runs.values().all(|run| run.turns.is_empty());
    assert!(Deadline::after(LONG).wait_until(asked));
    let dead = json!({"pid": i32::MAX, "started": 1});
    let line = json!({"turn": 1, "at": moment, "event": "sent", "text": "Be slow", "sender": dead});
    let records = place.home.path().join("alhena/state/terminals").join(&place.server);
    std::fs::write(records.join(format!("{}.turns", terminal.id())), format!("{line}\n")).unwrap();
    place.api.release("api", "go");
    let reading = place.again().find(terminal.id()).unwrap().wait(Until::Settled, LONG).unwrap();
    assert_eq!((reading.status, reading.warning), (Status::Completed, None));
    assert_eq!(reading.turn.unwrap().ended, Some(How::Answered));
    assert_eq!(terminal.last_answer().unwrap().text, "Slowly.");
}

/// 0.61.0 draws everything anew when its size changes, and for a moment without the end of its history.
#[test]
fn a_screen_that_is_drawn_anew_is_no_work_for_long_and_takes_a_message() {
    let answer = (1..60).map(|number| format!("Line {number} of the answer.\n\n")).collect::<String>();
    let place = Place::new("redraw", Scenario::new().turn(Turn::say(answer.as_str()).always()));
    let terminal = place.launch();
    ask(&terminal, "Tell");
    for (columns, rows) in [("50", "12"), ("150", "46"), ("70", "30"), ("150", "46")] {
        place.tmux(&["resize-window", "-t", &place.pane_of(&terminal), "-x", columns, "-y", rows]);
        let rests = || matches!(terminal.status().unwrap().status, Status::Idle | Status::Completed);
        assert!(Deadline::after(LONG).wait_until(rests), "{columns}: {}", place.capture(&terminal));
        place.tmux(&["resize-window", "-t", &place.pane_of(&terminal), "-x", "100", "-y", "40"]);
        // Right away: whoever sends need not know that somebody has moved a window.
        assert_eq!(ask(&terminal, "More").status, Status::Completed, "{}", place.capture(&terminal));
    }
}
