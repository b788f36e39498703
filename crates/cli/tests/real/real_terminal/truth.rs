//! The status is never wrong during a turn: sampled all the time, against what the scripted API knows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_terminal::screen::Status;
use alhena_terminal::{Force, Terminal, Until};
use alhena_testbed::Deadline;
use serde_json::json;

use super::place::{LONG, Place};
use crate::lab::Build;

const TERMINALS: usize = 5;
const TURNS: usize = 10;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Text in pieces with pauses; every third turn with a tool, whose result is answered in a second request.
fn scripted(request: &RecordedRequest) -> Turn {
    let prompt = request.prompt().unwrap_or_default();
    let number: u64 = prompt.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut dice = Dice(number * 7919 + 13);
    let mut turn = Turn::new().delay(Duration::from_millis(dice.roll(300)));
    let answered = request.results_since_prompt().next().is_some();
    if dice.roll(2) == 0 {
        turn = turn.thought("Considering", "What to say.").sleep(Duration::from_millis(dice.roll(300)));
    }
    for piece in 0..dice.roll(4) {
        turn = turn.text(format!("Piece {piece}. ")).sleep(Duration::from_millis(dice.roll(350)));
    }
    if number.is_multiple_of(3) && !answered {
        let command = format!("sleep 0.{}", dice.roll(6));
        return turn.call("run_shell_command", json!({ "command": command }));
    }
    turn.text(format!("Answer {number}."))
}

/// One turn, watched from the moment when the message was taken. What was wrong, if anything.
fn watched(place: &Place, terminal: &Terminal, number: usize) -> Vec<String> {
    terminal.send(&format!("Turn {number}"), Force::OnlyWhenReady).unwrap();
    let over = AtomicBool::new(false);
    let requests = if number.is_multiple_of(3) { 2 } else { 1 };
    let run = terminal.name();
    // The run is over when as many requests of it are answered as the script has.
    let served = || {
        let state = place.api.state("api");
        state.runs.get(run).map_or(0, |run| run.turns.iter().filter(|turn| turn.ended.is_some()).count())
    };
    let goal = served_before(number, run) + requests;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut wrong = Vec::new();
            let observer = place.again().find(run).unwrap();
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                let looks = [observer.status_now().unwrap(), observer.status().unwrap()];
                // Judged only if the API had not finished when the last of them was over.
                if served() < goal {
                    let lies = looks.iter().filter(|look| look.status != Status::Processing);
                    wrong.extend(lies.map(|look| format!("turn {number} of {run}: {look:?}")));
                }
                std::thread::sleep(Duration::from_millis(50).saturating_sub(began.elapsed()));
            }
            wrong
        });
        let done = Deadline::after(LONG).wait_until(|| served() >= goal);
        let reading = terminal.wait(Until::Settled, LONG).unwrap();
        over.store(true, Ordering::Relaxed);
        assert!(done);
        let mut wrong = watcher.join().unwrap();
        let text = reading.message.unwrap_or_default();
        if reading.status != Status::Completed || !text.ends_with(&format!("Answer {number}.")) {
            wrong.push(format!("turn {number} of {run} ended as {:?}: {text}", reading.status));
        }
        wrong
    })
}

/// How many requests a terminal has made before a turn.
fn served_before(number: usize, run: &str) -> usize {
    let first: usize = run.trim_start_matches("run").parse::<usize>().unwrap() * TURNS;
    (first..number).map(|number| if number.is_multiple_of(3) { 2 } else { 1 }).sum()
}

#[test]
fn in_fifty_turns_with_random_pauses_no_status_is_ever_wrong() {
    let place = Place::new("truth", Scenario::dynamic(scripted));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..TERMINALS)
            .map(|number| {
                let place = &place;
                scope.spawn(move || {
                    let name = format!("run{number}");
                    let mut wanted = place.wanted("");
                    wanted.name = Some(name.clone());
                    wanted.timeout = LONG * 2;
                    wanted.request.approval = alhena_agent::Approval::Yolo;
                    let url = place.env.get("GOOGLE_GEMINI_BASE_URL").unwrap().to_string_lossy().into_owned();
                    wanted.request = wanted.request.env("GOOGLE_GEMINI_BASE_URL", format!("{url}/{name}"));
                    let terminal = place.again().launch(wanted).unwrap();
                    let turns = number * TURNS..(number + 1) * TURNS;
                    turns.flat_map(|turn| watched(place, &terminal, turn)).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} wrong: {}", wrong.len(), wrong.join("\n"));
}
