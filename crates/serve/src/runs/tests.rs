#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Duration;

use alhena_model::{FailureKind, Tokens, Usage};
use serde_json::{Value, json};

use super::*;
use crate::shelf::routes::Begins;
use crate::shelf::{Keeping, Started};

fn runs(dir: &std::path::Path) -> Runs {
    let keeping = Keeping { most: 1000, longest: Duration::from_secs(3600) };
    Runs::open(dir.join("runs"), 1000, keeping, Arc::default()).unwrap()
}

fn begun(runs: &Runs) -> Arc<Run> {
    let options = json!({"prompt": "p", "dir": "/"});
    match runs.begin(None, |id| RunView::asked(id, options.as_object().unwrap())).unwrap() {
        Started::New(run) => run,
        Started::Before(_) => panic!("there was none before"),
    }
}

fn events(run: &Run) -> Vec<Value> {
    let text = std::fs::read_to_string(run.events()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_that_is_told_to_be_over_has_its_outcome_and_its_last_event() {
    let dir = tempfile::tempdir().unwrap();
    let runs = runs(dir.path());
    for _ in 0..40 {
        let run = begun(&runs);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !run.is_over() {
                    std::hint::spin_loop();
                }
                assert!(run.dir.join(disk::OUTCOME).exists());
                assert_eq!(events(&run).last().unwrap()["type"], "finished");
            });
            runs.finish(&run, &Outcome::default());
        });
    }
}

#[test]
fn runs_are_at_rest_when_no_thread_has_a_hand_on_one() {
    let dir = tempfile::tempdir().unwrap();
    let runs = runs(dir.path());
    let run = begun(&runs);
    let hand = runs.hand();
    assert!(!runs.are_at_rest());
    runs.finish(&run, &Outcome::default());
    assert!(runs.going().is_empty() && !runs.are_at_rest(), "its thread is not done");
    drop(hand);
    assert!(runs.are_at_rest());
}

#[test]
fn a_finished_run_without_its_last_event_gets_it_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let run = {
        let runs = runs(dir.path());
        let run = begun(&runs);
        let long = json!({"type": "text", "text": "x".repeat(200_000)});
        run.append(|_| crate::log::json_line(&long)).unwrap();
        let mut outcome = Outcome::default();
        outcome.warnings.push("y".repeat(200_000));
        runs.finish(&run, &outcome);
        run
    };
    let whole = std::fs::read(run.events()).unwrap();
    drop(runs(dir.path()));
    assert_eq!(std::fs::read(run.events()).unwrap(), whole, "nothing was missing");
    // The last line is cut off.
    std::fs::write(run.events(), &whole[..whole.len() - 10]).unwrap();
    let again = runs(dir.path()).get(&run.id).unwrap();
    let events = events(&again);
    assert_eq!((events.len(), events[1]["type"].as_str()), (2, Some("finished")));
    assert_eq!(events[1]["outcome"]["warnings"][0].as_str().unwrap().len(), 200_000, "its own outcome");
}

#[test]
fn a_run_that_was_killed_is_told_with_what_it_used() {
    let dir = tempfile::tempdir().unwrap();
    let run = {
        let runs = runs(dir.path());
        let run = begun(&runs);
        for seq in 0..2 {
            let tokens = Tokens { total: 50, ..Tokens::default() };
            let usage = Usage::of_models([("m", tokens)]);
            let kind = alhena_model::EventKind::Usage(alhena_model::CallUsage { call: Some(seq + 1), usage });
            let event = alhena_model::Event {
                seq,
                at: Timestamp::now(),
                source: alhena_model::Source::Session,
                kind,
            };
            run.append(|_| crate::log::json_line(&event)).unwrap();
        }
        run
    };
    let again = runs(dir.path()).get(&run.id).unwrap();
    let outcome: Outcome =
        serde_json::from_slice(&std::fs::read(again.dir.join(disk::OUTCOME)).unwrap()).unwrap();
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::Crashed);
    assert_eq!((outcome.usage.all.total, again.view().tokens), (100, Some(100)));
}
