use std::fs;
use std::sync::Arc;

use alhena_model::{Outcome, Timestamp};

use super::*;
use crate::testing::{bad, good};

fn result(id: &str, attempt: u32, outcome: Outcome) -> JobResult {
    let at = Timestamp::from_millis(0);
    JobResult { attempt, at, ..JobResult::new(id, format!("mark of {id}"), Arc::new(outcome)) }
}

fn ids(path: &Path) -> Vec<(String, u32)> {
    let text = fs::read_to_string(path).unwrap();
    let read = |line: &str| serde_json::from_str::<JobResult>(line).unwrap();
    text.lines().map(read).map(|result| (result.id, result.attempt)).collect()
}

#[test]
fn what_was_added_is_there_for_the_next_one_and_only_one_may_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let mut journal = Journal::open(&path).unwrap();
    assert!(matches!(Journal::open(&path), Err(NoJournal::InUse)));
    journal.add(&[result("a", 1, good()), result("b", 2, bad(FailureKind::Api))]).unwrap();
    journal.add(&[result("c", 1, good())]).unwrap();
    drop(journal);
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.done().count(), 3);
    let b = journal.get("b").unwrap();
    assert_eq!((b.attempt, b.status, b.kind), (2, Status::Failed, Some(FailureKind::Api)));
    assert_eq!(&*b.job, "mark of b");
    assert_eq!(journal.get("a").unwrap().spent, Spent { tokens: 10, cost_usd: 0.5, unpriced: false });
    assert!(journal.is_at(&path));
}

#[test]
fn a_line_that_was_cut_off_anywhere_is_taken_away_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let (first, second) =
        (result("a,\"b\\", 1, good()).line().unwrap(), result("x,\"\\", 12, good()).line().unwrap());
    for cut in 0..second.len() {
        let torn = second.as_bytes().get(..cut).unwrap();
        for zeros in [0, 5] {
            let bytes = [first.as_bytes(), torn, &vec![0; zeros]].concat();
            fs::write(&path, &bytes).unwrap();
            let mut journal = Journal::open(&path).unwrap_or_else(|error| panic!("{cut}: {error}"));
            assert_eq!((journal.done().count(), fs::read(&path).unwrap().len()), (1, first.len()), "{cut}");
            journal.add(&[result("c", 1, good())]).unwrap();
            assert_eq!(ids(&path), [("a,\"b\\".to_owned(), 1), ("c".to_owned(), 1)], "{cut}");
        }
    }
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes");
    let good = result("a", 1, good()).line().unwrap();
    let foreign = [
        "hello".to_owned(),
        "hello\n".to_owned(),
        "{\"id\":\"1\",\"name\":\"x\"}".to_owned(),
        "{\"id\":\"1\",\"name\":\"x\"}\n".to_owned(),
        "{\"id\":\"1\",\"name\":".to_owned(),
        "[1]".to_owned(),
        "\n".to_owned(),
        format!("{good}oops\n"),
        format!("oops\n{good}"),
        format!("{good}oops"),
    ];
    for text in foreign {
        fs::write(&path, &text).unwrap();
        assert!(matches!(Journal::open(&path), Err(NoJournal::NotOurs { .. })), "{text:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert!(matches!(Journal::open(dir.path()), Err(NoJournal::Io(_))));
    assert!(matches!(Journal::open(Path::new("/dev/null")), Err(NoJournal::Io(_))));
}

#[test]
fn the_first_line_that_is_no_result_is_told_by_its_number_and_by_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let good = result("a", 1, good()).line().unwrap();
    for (text, said) in [
        (format!("{good}\n{good}"), "line 2 is not the result of a job: it is empty"),
        (format!("{good}{good} \r\n"), "line 3 is not the result of a job: it is empty"),
        (format!("{good}oops\n"), "line 2 is not the result of a job: expected value"),
        (format!("{good}{{\"id\":\n"), "line 2 is not the result of a job: EOF while parsing a value"),
    ] {
        fs::write(&path, &text).unwrap();
        assert_eq!(Journal::open(&path).unwrap_err().to_string(), said);
    }
}

#[test]
fn of_two_results_the_later_attempt_counts_and_one_line_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let mut journal = Journal::open(&path).unwrap();
    journal.add(&[result("a", 1, bad(FailureKind::Api)), result("b", 1, good())]).unwrap();
    journal.add(&[result("a", 2, good())]).unwrap();
    assert_eq!(journal.get("a").unwrap().status, Status::Success);
    drop(journal);
    let mut journal = Journal::open(&path).unwrap();
    assert_eq!(journal.get("a").unwrap().attempt, 2);
    journal.arrange(None).unwrap();
    assert_eq!(ids(&path), [("b".to_owned(), 1), ("a".to_owned(), 2)]);
    // It is still ours, and goes on.
    assert!(matches!(Journal::open(&path), Err(NoJournal::InUse)));
    journal.add(&[result("0", 1, good())]).unwrap();
    let order = |id: &str| ["0", "a"].iter().position(|other| *other == id);
    journal.arrange(Some(&order)).unwrap();
    assert_eq!(ids(&path), [("0".to_owned(), 1), ("a".to_owned(), 2), ("b".to_owned(), 1)]);
    journal.add(&[result("z", 1, good())]).unwrap();
    assert_eq!(ids(&path).len(), 4);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_result_is_one_line_without_anything_that_a_terminal_obeys() {
    let mut outcome = good();
    outcome.warnings.push("a\nb\u{1b}[2J \u{9b}2J \u{7f} \u{202e}".to_owned());
    let line = result("a", 1, outcome.clone()).line().unwrap();
    assert!(line.trim_end_matches('\n').chars().all(|c| !c.is_control() && c != '\u{202e}'), "{line:?}");
    let read: JobResult = serde_json::from_str(&line).unwrap();
    assert_eq!(*read.outcome, outcome);
}
