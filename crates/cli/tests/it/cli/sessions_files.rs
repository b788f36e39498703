//! `alhena sessions` where it writes or waits: export, follow, repair; and `alhena parse` of session files.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use alhena_testbed::Deadline;
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::sessions::{chats, desk_with, recorded};
use crate::common::{Desk, Started};

#[test]
fn export_writes_one_file_per_session_and_names_it() {
    let desk = desk_with(&[("0.61.0", "plain"), ("0.61.0", "stub")]);
    assert_snapshot!(desk.alhena(&["sessions", "export"]), @r#"
    session-[ID].html
    [exit 0]
    "#);
    assert_snapshot!(desk.alhena(&["sessions", "export", "--every", "--as", "markdown", "-o", "out"]), @r#"
    out/session-[ID].md
    out/session-[ID].md
    [exit 0]
    "#);
    let names = |dir: &Path| {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.len()
    };
    assert_eq!(names(&desk.work().join("out")), 2);
    let page = desk.alhena(&["sessions", "show", "3e9f", "--as", "html"]).stdout;
    assert!(page.starts_with("<!doctype html>") && page.contains("What is in main.py?"), "{page}");
    assert!(!page.contains("<script"), "{page}");
}

/// Waits until these types of events have been printed.
fn wait_for_events(started: &mut Started, expected: &[&str]) {
    let expected: Vec<Value> = expected.iter().map(|kind| json!(kind)).collect();
    let mut seen = Vec::new();
    let came = Deadline::after(Duration::from_secs(30)).wait_until(|| {
        let text = started.so_far();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        seen = whole.map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
        seen.starts_with(&expected)
    });
    assert!(came, "{seen:?}, not {expected:?}");
}

#[test]
fn follow_prints_what_another_process_writes() {
    let desk = desk_with(&[]);
    let whole = fs::read(recorded("0.61.0", "plain/session-2026-11-15T20-29-3e9f236b.jsonl")).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let path = chats(&desk).join("session-2026-11-15T20-29-3e9f236b.jsonl");
    fs::write(&path, lines[..3].concat()).unwrap();
    let args = ["sessions", "follow", "--json", "--from-start"];
    let mut started = Started::new(&desk, desk.command(&args), b"");
    wait_for_events(&mut started, &["prompt"]);
    let mut file = File::options().append(true).open(&path).unwrap();
    // Half a line first.
    let (half, rest) = lines[4].split_at(40);
    file.write_all(half).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    file.write_all(rest).unwrap();
    file.write_all(&lines[5..7].concat()).unwrap();
    wait_for_events(&mut started, &["prompt", "tool_call", "tool_result"]);
    file.write_all(&lines[7..].concat()).unwrap();
    wait_for_events(&mut started, &["prompt", "tool_call", "tool_result", "usage", "text", "usage"]);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&started.child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let ended = started.finish(&desk, &args, Duration::from_secs(30));
    assert_eq!(ended.json_lines().len(), 6, "{ended}");
    assert_eq!((ended.status.signal(), ended.stderr.as_str()), (Some(2), ""), "{ended}");
}

#[test]
fn follow_prints_what_is_there_when_the_first_session_appears() {
    let desk = desk_with(&[]);
    let args = ["sessions", "follow", "--json"];
    let mut started = Started::new(&desk, desk.command(&args), b"");
    let waits = || started.said_so_far().contains("Waiting for a session");
    assert!(Deadline::after(Duration::from_secs(30)).wait_until(waits), "{}", started.said_so_far());
    let name = "session-2026-11-15T20-29-3e9f236b.jsonl";
    fs::copy(recorded("0.61.0", &format!("plain/{name}")), chats(&desk).join(name)).unwrap();
    wait_for_events(&mut started, &["prompt", "tool_call", "tool_result", "usage", "text", "usage"]);
    started.child.kill().unwrap();
    started.finish(&desk, &args, Duration::from_secs(30));
}

// 0.61.0 writes thoughts and texts in another form when a session is resumed in the minute in which it was made.
#[test]
fn follow_prints_nothing_twice_when_a_resume_writes_it_in_another_form() {
    let desk = desk_with(&[]);
    let path = chats(&desk).join("session-2026-11-15T20-29-aaaaaaaa.jsonl");
    let header = r#"{"sessionId":"aaaaaaaa-1","projectHash":"h"}"#;
    let prompt = r#"{"id":"u","type":"user","content":[{"text":"hi"}]}"#;
    let answer = r#"{"id":"g","type":"gemini","content":"Yes.","thoughts":[{"subject":"First","description":"Look."}]}"#;
    fs::write(&path, format!("{header}\n{prompt}\n{answer}\n")).unwrap();
    let args = ["sessions", "follow", "--json", "--from-start"];
    let mut started = Started::new(&desk, desk.command(&args), b"");
    wait_for_events(&mut started, &["prompt", "thinking", "text"]);
    let resumed = r#"{"id":"g","type":"gemini","content":[{"text":"**First** Look.","thought":true},{"text":"Yes. "}]}"#;
    let next = r#"{"id":"u2","type":"user","content":[{"text":"And now?"}]}"#;
    let mut file = File::options().append(true).open(&path).unwrap();
    writeln!(file, r#"{{"$set":{{"messages":[{prompt},{resumed}]}}}}"#).unwrap();
    writeln!(file, "{next}").unwrap();
    wait_for_events(&mut started, &["prompt", "thinking", "text", "prompt"]);
    started.child.kill().unwrap();
    started.finish(&desk, &args, Duration::from_secs(30));
}

/// As it would be long after the CLI has ended.
fn make_old(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let past = SystemTime::now() - Duration::from_secs(3600);
        File::options().write(true).open(entry.unwrap().path()).unwrap().set_modified(past).unwrap();
    }
}

#[test]
fn repair_says_what_it_would_do_and_does_it_when_told_to() {
    let desk = desk_with(&[("0.61.0", "stub"), ("0.61.0", "cancelled"), ("0.61.0", "plain")]);
    make_old(&chats(&desk));
    let states = || {
        let list = desk.alhena(&["sessions", "list", "--json"]).json();
        let state = |entry: &Value| entry["state"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(state).collect::<Vec<_>>()
    };
    assert_eq!(states(), ["endangered", "lost", "answered"]);
    let planned = desk.alhena(&["sessions", "repair"]);
    assert_snapshot!(planned, @r#"
    [ID]
      would move away the stub [DESK]/home/.gemini/tmp/work/chats/session-2026-11-15T20-45-cccccccc.jsonl
    [ID]
      would bring back 2 messages that Gemini CLI dropped in [DESK]/home/.gemini/tmp/work/chats/session-2026-11-15T20-29-77db4d23.jsonl
    ---- stderr ----
    Nothing was changed; --apply does it.
    [exit 1]
    "#);
    assert_eq!(states(), ["endangered", "lost", "answered"]);
    let done = desk.alhena(&["sessions", "repair", "--apply"]);
    assert_eq!((done.code(), done.stderr.as_str()), (Some(0), ""), "{done}");
    let copies: Vec<&str> =
        done.stdout.lines().filter_map(|line| line.trim().strip_prefix("copy kept: ")).collect();
    assert!(copies.len() == 2 && copies.iter().all(|copy| Path::new(copy).is_file()), "{done}");
    let told: Vec<&str> = done.stdout.lines().filter(|line| !line.contains("copy kept")).collect();
    let would = |text: String| text.replace("would ", "");
    assert_eq!(told, would(planned.stdout).lines().collect::<Vec<_>>());
    // What came back makes the session the newest.
    assert_eq!(states(), ["open", "answered", "answered"]);
    desk.transcript("\n$ sessions repair\nNothing to repair.\n[exit 0]");
}

#[test]
fn parse_reads_sessions_and_single_records() {
    let desk = Desk::new();
    let whole = fs::read(recorded("0.61.0", "plain/session-2026-11-15T20-29-3e9f236b.jsonl")).unwrap();
    let messages = desk.alhena_reading(&whole, &["parse", "--from", "session", "--as", "messages"]);
    assert_eq!((messages.code(), messages.json().as_array().map(Vec::len)), (Some(0), Some(4)));
    let old = fs::read(recorded("0.30.1", "plain/session-2026-11-15T20-38-71f868aa.json")).unwrap();
    let messages = desk.alhena_reading(&old, &["parse", "--from", "session", "--as", "messages"]).json();
    assert_eq!(messages.as_array().map(Vec::len), Some(4));
    let record = whole.split(|byte| *byte == b'\n').nth(2).unwrap();
    let one = desk.alhena_reading(record, &["parse", "--from", "message", "--as", "messages"]).json();
    assert_eq!(one[0]["content"], json!([{"type": "text", "text": "What is in main.py?"}]));
    // None of them needs to be named.
    let told = |input: &[u8]| desk.alhena_reading(input, &["parse"]).json();
    assert_eq!(told(&whole).as_array().map(Vec::len), Some(4));
    assert_eq!(told(&old).as_array().map(Vec::len), Some(4));
    assert_eq!(told(record), one);
    for from in ["session", "message"] {
        for input in [&b""[..], b"garbage\n", b"[1,2]\n", b"{\"type\":\"init\"}\n", b"\xff\xfe"] {
            let bad = desk.alhena_reading(input, &["parse", "--from", from, "--as", "messages"]);
            assert!(bad.code() == Some(2) && bad.stderr.contains("hint: "), "{from} {input:?}: {bad}");
        }
    }
    desk.write("empty.json", "{}");
    desk.transcript(
        r"
        $ parse --from session empty.json --as messages
        error: this is no session of Gemini CLI
        hint: Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.
        $ parse --from message empty.json --as messages
        error: this is no record of a session
        hint: Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.
        ",
    );
}
