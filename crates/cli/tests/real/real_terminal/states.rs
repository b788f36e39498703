//! States that a screen alone does not tell: turns without an answer, messages that are held up, agents that have left.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use alhena_agent::home::McpServer;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_terminal::screen::{Status, WaitingFor};
use alhena_terminal::{Force, How, Terminal, TerminalErrorKind, Until};
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

/// What a second process is told while something goes on: the status, and how the last turn ended.
#[derive(Clone, Debug)]
struct Sample {
    asked: SystemTime,
    told: SystemTime,
    status: Status,
    ended: Option<How>,
}

/// How many observers there are: of so many samples nobody knows on which side of a moment they began.
const OBSERVERS: usize = 2;

/// Asks for the status of the first terminal all the time, from two sides, while something is done. That one sees how many
/// samples there are.
fn observed<T>(place: &Place, act: impl FnOnce(&AtomicUsize) -> T) -> (T, Vec<Sample>) {
    let (over, taken) = (AtomicBool::new(false), AtomicUsize::new(0));
    let watch = || {
        let mut samples = Vec::new();
        let terminals = place.again();
        while !over.load(Ordering::Relaxed) {
            let asked = SystemTime::now();
            if let Some(Ok(reading)) = terminals.list().unwrap().first().map(Terminal::status) {
                let (told, status) = (SystemTime::now(), reading.status);
                samples.push(Sample { asked, told, status, ended: reading.turn.and_then(|turn| turn.ended) });
                taken.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        samples
    };
    std::thread::scope(|scope| {
        let observers = [(); OBSERVERS].map(|()| scope.spawn(watch));
        // Whatever goes wrong, the observers have to end.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(&taken)));
        over.store(true, Ordering::Relaxed);
        let samples = observers.map(|observer| observer.join().unwrap()).concat();
        (done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), samples)
    })
}

/// A server of its own profile or settings that never answers, and ends after some seconds.
fn slow_server() -> McpServer {
    McpServer::process("slow", "sh", ["-c", "sleep 8; date +%s%N > started.txt"])
}

#[test]
fn a_launch_is_ready_when_slow_servers_have_started_and_until_then_everybody_is_told_so() {
    let place = Place::new("slow servers", Scenario::dynamic(scripted));
    let mut wanted = place.wanted("");
    wanted.request.mcp_servers.push(slow_server());
    let (terminal, samples) = observed(&place, |_| place.terminals.launch(wanted).unwrap());
    let started = std::fs::read_to_string(place.work().join("started.txt"));
    let started = started.expect("launched before the server had started").trim().parse().unwrap();
    let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(started);
    let before: Vec<_> = samples.iter().filter(|sample| sample.told < started).collect();
    let wrong: Vec<_> = before.iter().filter(|sample| Until::Idle.is_met(sample.status)).collect();
    assert!(wrong.is_empty(), "{started:?}: {wrong:?}");
    assert!(before.len() > 5 && samples.len() > 20, "{} of {}", before.len(), samples.len());
    assert_eq!(terminal.status().unwrap().status, Status::Idle);

    let ((sent, reading), samples) = observed(&place, |taken| {
        terminal.send("Be slow", Force::OnlyWhenReady).unwrap();
        let (sent, before) = (SystemTime::now(), taken.load(Ordering::Relaxed));
        let enough = || taken.load(Ordering::Relaxed) > before + OBSERVERS + 1;
        assert!(Deadline::after(LONG).wait_until(enough));
        place.api.release("api", "go");
        (sent, terminal.wait(Until::Settled, LONG).unwrap())
    });
    assert_eq!((reading.status, reading.message.as_deref()), (Status::Completed, Some("Slowly.")));
    assert_eq!(terminal.last_answer().unwrap().text, "Slowly.");
    let during = samples.iter().filter(|sample| sample.asked > sent && sample.ended.is_none());
    let wrong: Vec<_> = during.clone().filter(|sample| sample.status != Status::Processing).collect();
    assert!(wrong.is_empty() && during.count() > 1, "{wrong:?}");
}

#[test]
fn a_launch_whose_servers_never_start_says_which_and_one_with_a_prompt_works_on_it_until_it_is_answered() {
    let place = Place::new("servers that hang", Scenario::dynamic(scripted));
    // On a busy machine a start alone takes longer than usual, and says nothing of servers.
    let began = Instant::now();
    place.launch().kill().unwrap();
    let mut hangs = place.wanted("");
    hangs.request.mcp_servers.push(McpServer::process("hangs", "sleep", ["600"]));
    hangs.timeout = (began.elapsed() * 3).max(Duration::from_secs(30));
    let error = place.terminals.launch(hangs).unwrap_err();
    assert_eq!(error.kind, TerminalErrorKind::Timeout);
    assert!(error.message.ends_with("Its MCP servers are starting: hangs"), "{error}");

    let mut wanted = place.wanted("Be slow");
    wanted.request.mcp_servers.push(slow_server());
    let (reading, samples) = observed(&place, |taken| {
        let terminal = place.terminals.launch(wanted).unwrap();
        assert!(Deadline::after(LONG).wait_until(|| taken.load(Ordering::Relaxed) > 10));
        place.api.release("api", "go");
        terminal.wait(Until::Settled, LONG).unwrap()
    });
    let told = (reading.status, reading.message.as_deref());
    assert_eq!(told, (Status::Completed, Some("Slowly.")), "{:?}: {:?}", reading.turn, reading.warning);
    // From its very beginning: it starts, and then it works.
    let during = samples.iter().filter(|sample| sample.ended.is_none());
    let wrong: Vec<_> = during
        .clone()
        .filter(|sample| !matches!(sample.status, Status::Starting | Status::Processing))
        .collect();
    assert!(wrong.is_empty() && during.count() > 10, "{wrong:?}");
}

#[test]
fn after_quit_it_has_exited_and_its_last_answer_can_still_be_read() {
    let place = Place::new("quit", Scenario::dynamic(scripted));
    let terminal = place.launch();
    assert_eq!(answer(&terminal, "Be well"), "Well.");
    let _gone = terminal.command("/quit", Force::OnlyWhenReady);
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
