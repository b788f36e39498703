#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alhena_model::{Event, EventKind, FailureKind, Resolution, Source, Tokens, Usage};
use serde_json::{Value, json};

use super::store::{Key, Started};
use super::*;
use crate::problem::Problem;

const HOUR: i64 = 3_600_000;

fn store(dir: &Path, most: usize) -> TaskStore {
    let keeping = Keeping { max_runs: 1000, max_conversations: 5, most, longest: Duration::from_secs(3600) };
    TaskStore::open(dir.to_owned(), keeping, Arc::default()).unwrap()
}

fn start(store: &TaskStore, kind: TaskKind, name: &str) -> Result<Started, Problem> {
    let options = RunOptions { dir: Some("/".into()), ..RunOptions::default() };
    let key = Key { name: name.to_owned(), asked: "the same".to_owned() };
    store.start(kind, Some(key), |id| Task::new(id, Some(&"p".into()), &options))
}

fn started(store: &TaskStore, kind: TaskKind, name: &str) -> Arc<TaskEntry> {
    match start(store, kind, name).unwrap() {
        Started::New(entry) => entry,
        Started::Before(_) => panic!("{name} was started before"),
    }
}

fn end(entry: &TaskEntry, at: Timestamp) {
    let mut task = entry.locked();
    (task.state, task.ended_at) = (TaskState::Over, Some(at));
}

fn is_known(store: &TaskStore, name: &str, entry: &TaskEntry) -> bool {
    let key = Key { name: name.to_owned(), asked: "the same".to_owned() };
    let by_key = store.before(entry.kind, Some(&key)).unwrap().is_some();
    let by_id = store.get(entry.kind, &entry.id).is_ok();
    assert_eq!((by_key, entry.dir.exists()), (by_id, by_key), "all of it or nothing");
    by_key
}

fn events(entry: &TaskEntry) -> Vec<Value> {
    let text = std::fs::read_to_string(entry.events()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Ids of the same millisecond have no order.
fn next_millisecond() {
    let now = Timestamp::now();
    while Timestamp::now() == now {
        std::hint::spin_loop();
    }
}

#[test]
fn the_oldest_are_forgotten_when_there_are_too_many_with_their_keys_and_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), 2);
    let now = Timestamp::now();
    let names = ["goes on", "first", "second", "third", "fourth"];
    let all = TaskKind::ALL.map(|kind| {
        names.map(|name| {
            let entry = started(&store, kind, name);
            next_millisecond();
            entry
        })
    });
    all.iter().for_each(|all| all.iter().skip(1).for_each(|entry| end(entry, now)));
    store.prune(now);
    for all in all {
        let known: Vec<bool> =
            names.iter().zip(&all).map(|(name, entry)| is_known(&store, name, entry)).collect();
        assert_eq!(known, [true, false, false, true, true]);
        started(&store, all[0].kind, "first");
        assert!(matches!(start(&store, all[0].kind, "fourth").unwrap(), Started::Before(_)));
    }
}

#[test]
fn what_is_over_is_forgotten_with_age_and_what_goes_on_is_not() {
    for kind in TaskKind::ALL {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path(), 100);
        let now = Timestamp::now().as_millis();
        let at = |hours: i64| Timestamp::from_millis(now + hours * HOUR);
        let [going, early, late] = ["going", "early", "late"].map(|name| started(&store, kind, name));
        end(&early, at(0));
        end(&late, at(5));
        let known = |when: i64| {
            store.prune(Timestamp::from_millis(when));
            [("going", &going), ("early", &early), ("late", &late)]
                .map(|(name, entry)| is_known(&store, name, entry))
        };
        assert_eq!(known(now + HOUR), [true; 3]);
        assert_eq!(known(now + HOUR + 1), [true, false, true]);
        // What took long is as new as its end.
        assert_eq!(known(now + 6 * HOUR), [true, false, true]);
        assert_eq!(known(now + 100 * HOUR), [true, false, false]);
        started(&store, kind, "early");
    }
}

#[test]
fn a_store_that_is_closed_starts_nothing_and_still_knows_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), 100);
    let run = started(&store, TaskKind::Run, "one");
    assert_eq!(store.close().len(), 1);
    assert!(start(&store, TaskKind::Run, "two").is_err());
    let again = start(&store, TaskKind::Run, "one").unwrap();
    assert!(matches!(again, Started::Before(before) if before.id == run.id));
}

#[test]
fn more_than_so_many_at_once_are_refused_until_one_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), 100);
    let kind = TaskKind::Conversation;
    let first = started(&store, kind, "0");
    (1..5).for_each(|name| drop(started(&store, kind, &name.to_string())));
    assert!(start(&store, kind, "5").is_err());
    started(&store, TaskKind::Run, "5");
    end(&first, Timestamp::now());
    started(&store, kind, "5");
}

#[test]
fn a_task_is_known_as_its_kind_only() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), 100);
    let [run, conversation] = TaskKind::ALL.map(|kind| started(&store, kind, "the same key"));
    assert!(store.get(TaskKind::Conversation, &run.id).is_err());
    assert!(store.get(TaskKind::Run, &conversation.id).is_err());
    assert_eq!((store.list(TaskKind::Run).len(), store.active().len()), (1, 2));
}

#[test]
fn a_task_is_read_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let written = {
        let store = store(dir.path(), 100);
        let [run, conversation] = TaskKind::ALL.map(|kind| started(&store, kind, "one"));
        let mut outcome = Outcome::default();
        (outcome.session_id, outcome.cost_usd) = (Some("s".to_owned()), Some(0.5));
        run::finish(&store, &run, outcome);
        let last = EventKind::Closed { warnings: Vec::new(), failure: None };
        store.end(&conversation, last, |task| {
            (task.turns, task.title, task.approval) = (3, Some("t".to_owned()), Some("plan".to_owned()));
            task.end(None);
        });
        [run, conversation].map(|entry| serde_json::to_value(entry.view()).unwrap())
    };
    let store = store(dir.path(), 100);
    for (kind, written) in TaskKind::ALL.into_iter().zip(written) {
        let id = written["id"].as_str().unwrap();
        assert_eq!(serde_json::to_value(store.get(kind, id).unwrap().view()).unwrap(), written);
        assert!(matches!(start(&store, kind, "one").unwrap(), Started::Before(_)), "its key is known");
    }
}

#[test]
fn a_run_that_is_told_to_be_over_has_its_outcome_and_its_last_event() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), 1000);
    for name in 0..40 {
        let run = started(&store, TaskKind::Run, &name.to_string());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !run.is_over() {
                    std::hint::spin_loop();
                }
                assert!(run.dir.join(OUTCOME).exists());
                assert_eq!(events(&run).last().unwrap()["type"], "finished");
            });
            run::finish(&store, &run, Outcome::default());
        });
    }
}

#[test]
fn tasks_are_at_rest_when_no_thread_works_for_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path(), 1000);
    let run = started(&store, TaskKind::Run, "one");
    let worker = store.worker();
    assert!(!store.is_idle());
    run::finish(&store, &run, Outcome::default());
    assert!(store.active().is_empty() && !store.is_idle(), "its thread is not done");
    drop(worker);
    assert!(store.is_idle());
}

#[test]
fn a_finished_run_without_its_last_event_gets_it_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let run = {
        let store = store(dir.path(), 1000);
        let run = started(&store, TaskKind::Run, "one");
        run.emit(None, EventKind::Text { delta: "x".repeat(200_000) });
        let mut outcome = Outcome::default();
        outcome.warnings.push("y".repeat(200_000));
        run::finish(&store, &run, outcome);
        run
    };
    let whole = std::fs::read(run.events()).unwrap();
    drop(store(dir.path(), 1000));
    assert_eq!(std::fs::read(run.events()).unwrap(), whole, "nothing was missing");
    // The last line is cut off.
    std::fs::write(run.events(), &whole[..whole.len() - 10]).unwrap();
    let again = store(dir.path(), 1000).get(TaskKind::Run, &run.id).unwrap();
    let events = events(&again);
    assert_eq!((events.len(), events[1]["type"].as_str()), (2, Some("finished")));
    assert_eq!(events[1]["outcome"]["warnings"][0].as_str().unwrap().len(), 200_000, "its own outcome");
}

#[test]
fn a_run_that_was_killed_is_told_with_what_it_used() {
    let dir = tempfile::tempdir().unwrap();
    let run = {
        let store = store(dir.path(), 1000);
        let run = started(&store, TaskKind::Run, "one");
        for call in 1..3 {
            let usage = Usage::of_models([("m", Tokens { total: 50, ..Tokens::default() })]);
            let kind = EventKind::Usage(alhena_model::CallUsage { call: Some(call), usage });
            run.append(None, Event { seq: 0, at: Timestamp::now(), source: Source::Session, kind }).unwrap();
        }
        run
    };
    let again = store(dir.path(), 1000).get(TaskKind::Run, &run.id).unwrap();
    let outcome: Outcome = serde_json::from_slice(&std::fs::read(again.dir.join(OUTCOME)).unwrap()).unwrap();
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::Crashed);
    assert_eq!((outcome.usage.all.total, again.task().tokens), (100, Some(100)));
}

#[test]
fn a_conversation_that_was_killed_says_so_and_asks_nothing_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let entry = {
        let store = store(dir.path(), 1000);
        let entry = started(&store, TaskKind::Conversation, "one");
        for id in ["1", "2"] {
            // As servers wrote it that named no source.
            let asked = json!({"id": id, "tool": "t", "title": "T", "asked_at": Timestamp::now()});
            let line = json!({"seq": 0, "turn": 1, "type": "permission", "at": Timestamp::now(), "permission": asked});
            let log = entry.log().unwrap();
            log.append(|_| crate::log::json_line(&line)).unwrap();
        }
        let kind =
            EventKind::PermissionResolved { id: "1".to_owned(), decision: Resolution::Allow, reason: None };
        entry.emit(Some(1), kind);
        entry
    };
    let again = store(dir.path(), 1000).get(TaskKind::Conversation, &entry.id).unwrap();
    let task = again.task();
    assert_eq!((task.state, task.failure.unwrap().kind), (TaskState::Over, FailureKind::Crashed));
    let (text, events) = (std::fs::read_to_string(again.events()).unwrap(), events(&again));
    assert!(events.iter().enumerate().skip(2).all(|(at, event)| event["seq"] == json!(at)));
    let tail: Vec<&str> = events[3..].iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(tail, ["permission_resolved", "closed"]);
    assert_eq!((events[3]["id"].as_str(), events[3]["decision"].as_str()), (Some("2"), Some("withdrawn")));
    assert_eq!(events[4]["failure"]["kind"], "crashed");
    // It stays so, and nothing is added twice.
    let third = store(dir.path(), 1000).get(TaskKind::Conversation, &entry.id).unwrap();
    assert!(third.task().failure.is_some());
    assert_eq!(std::fs::read_to_string(again.events()).unwrap(), text);
}

/// Files that servers before this version wrote.
#[test]
fn tasks_of_older_servers_are_read_and_told_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let failure = json!({"kind": "crashed", "message": "m", "hint": "h"});
    let run = json!({
        "id": format!("r{}", "0".repeat(28)), "state": "finished", "prompt": "p", "dir": "/", "model": "m",
        "approval": "yolo", "created_at": "2026-11-15T17:49:10.599Z", "started_at": "2026-11-15T17:49:11.000Z",
        "finished_at": Timestamp::now(), "tokens": 5, "cost_usd": 0.25, "status": "failed",
        "failure": failure, "session_id": "s",
    });
    let conversation = json!({
        "id": format!("c{}", "0".repeat(28)), "state": "closed", "dir": "/", "model": "m", "mode": "plan",
        "created_at": "2026-11-15T17:49:10.599Z", "closed_at": Timestamp::now(), "turns": 2, "title": "t",
        "tokens": 5, "cost_usd": 0.25, "session_id": "s", "failure": failure, "permissions": [],
    });
    let all = [(TaskKind::Run, run), (TaskKind::Conversation, conversation)];
    for (kind, view) in &all {
        let dir = dir.path().join(format!("{}s", kind.name())).join(view["id"].as_str().unwrap());
        std::fs::create_dir_all(&dir).unwrap();
        let mut file = view.clone();
        file["key"] = json!({"name": "k", "asked": "the same"});
        std::fs::write(dir.join(format!("{}.json", kind.name())), file.to_string()).unwrap();
        std::fs::write(dir.join("events.jsonl"), "{\"seq\":0,\"type\":\"finished\"}\n").unwrap();
    }
    let store = store(dir.path(), 100);
    for (kind, view) in all {
        let entry = store.get(kind, view["id"].as_str().unwrap()).unwrap();
        assert_eq!(serde_json::to_value(entry.view()).unwrap(), view);
        assert!(matches!(start(&store, kind, "k").unwrap(), Started::Before(_)));
    }
}
