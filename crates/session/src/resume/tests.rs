use std::fs;

use super::*;

fn header(id: &str, start: &str) -> String {
    format!(
        r#"{{"sessionId":"{id}","projectHash":"h","startTime":"2026-01-01T00:{start}:00.000Z","lastUpdated":"2026-01-01T00:{start}:00.000Z"}}"#
    )
}

const PROMPT: &str = r#"{"id":"u","type":"user","content":"hi"}"#;

fn session(dir: &Path, name: &str, lines: &[&str]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

fn updated(minute: &str) -> String {
    format!(r#"{{"$set":{{"lastUpdated":"2026-01-01T00:{minute}:30.000Z"}}}}"#)
}

fn found(stores: &[PathBuf], wanted: &Resume) -> Option<PathBuf> {
    find(stores, wanted).unwrap().map(|stored| stored.path)
}

fn id(id: &str) -> Resume {
    Resume::Id(id.to_owned())
}

#[test]
fn of_several_files_with_one_id_the_last_written_conversation_counts() {
    let dir = tempfile::tempdir().unwrap();
    let chats = [dir.path().to_owned()];
    let first = session(
        dir.path(),
        "session-2026-01-01T00-01-aaaaaaaa.jsonl",
        &[&header("aaaaaaaa-1", "01"), PROMPT, &updated("05")],
    );
    assert_eq!(found(&chats, &id("aaaaaaaa-1")), Some(first.clone()));
    // The stub of a resume, newer and empty.
    session(dir.path(), "session-2026-01-01T00-09-aaaaaaaa.jsonl", &[&header("aaaaaaaa-1", "09")]);
    // Another session with the same short id.
    session(
        dir.path(),
        "session-2026-01-01T00-10-aaaaaaaa.jsonl",
        &[&header("aaaaaaaa-2", "10"), PROMPT, &updated("10")],
    );
    assert_eq!(found(&chats, &id("aaaaaaaa-1")), Some(first));
    let second = session(
        dir.path(),
        "session-2026-01-01T00-02-aaaaaaaa.jsonl",
        &[&header("aaaaaaaa-1", "02"), PROMPT, &updated("06")],
    );
    assert_eq!(found(&chats, &id("aaaaaaaa-1")), Some(second));
    assert_eq!(found(&chats, &id("aaaaaaaa")), None);
    assert_eq!(found(&chats, &id("")), None);
}

#[test]
fn the_latest_is_the_one_that_was_started_last() {
    let dir = tempfile::tempdir().unwrap();
    let chats = [dir.path().join("none"), dir.path().to_owned()];
    assert_eq!(found(&chats, &Resume::Latest), None);
    session(
        dir.path(),
        "session-2026-01-01T00-01-aaaaaaaa.jsonl",
        &[&header("aaaaaaaa-1", "01"), PROMPT, &updated("50")],
    );
    let second =
        session(dir.path(), "session-2026-01-01T00-02-bbbbbbbb.json", &[&legacy("bbbbbbbb-1", "02")]);
    session(dir.path(), "session-2026-01-01T00-03-cccccccc.jsonl", &[&header("cccccccc-1", "03")]);
    session(dir.path(), "session-2026-01-01T00-04-dddddddd.jsonl", &["damaged"]);
    session(dir.path(), "notes-dddddddd.jsonl", &[&header("dddddddd-1", "59"), PROMPT]);
    fs::create_dir(dir.path().join("aaaaaaaa-1")).unwrap();
    assert_eq!(found(&chats, &Resume::Latest), Some(second.clone()));
    // The first of the list is the first that was started; the empty and the damaged ones do not count.
    let numbered = ["0", "1", "2", "3", "02", "-1"].map(|number| found(&chats, &id(number)));
    let first = dir.path().join("session-2026-01-01T00-01-aaaaaaaa.jsonl");
    assert_eq!(numbered, [None, Some(first), Some(second), None, None, None]);
}

fn legacy(id: &str, start: &str) -> String {
    let header = header(id, start);
    let header = header.trim_end_matches('}').replace(',', ",\n");
    format!("{header},\n\"messages\": [{PROMPT}]}}")
}

#[test]
fn the_beginning_of_an_id_finds_all_that_begin_like_it() {
    let dir = tempfile::tempdir().unwrap();
    let chats = [dir.path().to_owned()];
    for (number, id) in ["aaaaaaaa-1", "aaaaaaaa-2", "abbbbbbb-1"].into_iter().enumerate() {
        let name = format!("session-2026-01-01T00-0{number}-{}.jsonl", id.get(..8).unwrap());
        session(dir.path(), &name, &[&header(id, &format!("0{number}")), PROMPT]);
    }
    // A stub is no session.
    session(dir.path(), "session-2026-01-01T00-09-abbbbbbb.jsonl", &[&header("abbbbbbb-2", "09")]);
    let ids = |start: &str| ids_beginning(&chats, start).unwrap();
    assert_eq!(ids("abbb"), ["abbbbbbb-1"]);
    assert_eq!(ids("aaaaaaaa"), ["aaaaaaaa-1", "aaaaaaaa-2"]);
    assert_eq!(ids("a").len(), 3);
    assert_eq!((ids("b"), ids("")), (vec![], vec![]));
}

#[test]
fn a_file_with_another_name_is_found_by_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let renamed = session(dir.path(), "session-mine.jsonl", &[&header("aaaaaaaa-1", "01"), PROMPT]);
    assert_eq!(found(&[dir.path().to_owned()], &id("aaaaaaaa-1")), Some(renamed));
}

// Reading a pipe or a device would take for ever.
#[test]
fn what_is_no_file_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let chats = [dir.path().to_owned()];
    let name = |minute: &str| dir.path().join(format!("session-2026-01-01T00-{minute}-aaaaaaaa.jsonl"));
    let real = session(
        dir.path(),
        "session-2026-01-01T00-01-aaaaaaaa.jsonl",
        &[&header("aaaaaaaa-1", "01"), PROMPT],
    );
    assert!(std::process::Command::new("mkfifo").arg(name("02")).status().unwrap().success());
    alhena_sys::files::symlink("/dev/zero", name("03")).unwrap();
    alhena_sys::files::symlink("nowhere", name("04")).unwrap();
    fs::create_dir(name("05")).unwrap();
    assert_eq!(found(&chats, &id("aaaaaaaa-1")), Some(real.clone()));
    assert_eq!(found(&chats, &Resume::Latest), Some(real.clone()));
    assert_eq!(found(&chats, &id("1")), Some(real));
    assert_eq!(survey_at(&name("02")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
