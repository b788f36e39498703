//! Each way in which the stand-in writes badly is what its name says.

use std::io::{Seek, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use alhena_testbed::script::{Ending, Script, Step};
use alhena_testbed::stand_in::{StdinSeen, hostile_path, sha256};
use alhena_testbed::{Finished, Hostile, run_bounded};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(60);

fn run(steps: impl IntoIterator<Item = Step>) -> Finished {
    let hostile = Hostile::new(Script::new(steps)).unwrap();
    run_bounded(hostile.command().args(["-o", "stream-json", "-p", "Say hi"]), LIMIT).unwrap()
}

/// The events of an output whose lines are all JSON, without what differs from run to run.
fn events(stdout: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(stdout.to_vec()).unwrap();
    text.lines().map(|line| timeless(serde_json::from_str(line).unwrap())).collect()
}

fn timeless(mut event: Value) -> Value {
    let object = event.as_object_mut().unwrap();
    let timestamp = object.shift_remove("timestamp").unwrap();
    assert_eq!(timestamp.as_str().unwrap().len(), "2026-11-15T17:49:10.599Z".len());
    object.shift_remove("session_id");
    event
}

#[test]
fn without_a_script_it_writes_what_the_real_cli_writes() {
    let done =
        run_bounded(Command::new(hostile_path().unwrap()).args(["-o", "stream-json", "-p", "Say hi"]), LIMIT)
            .unwrap();
    // recorded from 0.61.0
    let recorded = include_bytes!("../data/plain.jsonl");
    assert_eq!(events(&done.stdout), events(recorded));
    let first = done.stdout_text().lines().next().unwrap().to_owned();
    assert!(
        first.starts_with(r#"{"type":"init","timestamp":"#) && first.contains(r#","session_id":""#),
        "{first}"
    );
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn model_and_session_come_from_the_arguments() {
    let hostile = Hostile::new(Script::new([Step::Init])).unwrap();
    let arguments =
        ["--model=gemini-3", "--resume", "5f2b0d3d-69fc-4284-8f34-d199fc201ce7", "--unknown", "--yolo"];
    let done = run_bounded(hostile.command().args(arguments), LIMIT).unwrap();
    let mut event: Value = serde_json::from_slice(&done.stdout).unwrap();
    event.as_object_mut().unwrap().shift_remove("timestamp");
    let expected =
        json!({"type": "init", "session_id": "5f2b0d3d-69fc-4284-8f34-d199fc201ce7", "model": "gemini-3"});
    assert_eq!(event, expected);
}

#[test]
fn what_is_written_has_its_form_and_its_size() {
    let stats = json!({"total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0, "input": 0, "duration_ms": 0, "tool_calls": 1, "models": {}});
    let done = run([
        Step::Tool { name: "read_file".into(), parameters: json!({"file_path": "a.txt"}), output: "".into() },
        Step::Error { severity: "warning".into(), message: "Loop detected, stopping execution".into() },
        Step::LineSeparators,
        Step::ResultError("[API Error: no]".into()),
    ]);
    let events = events(&done.stdout);
    let id = events[0]["tool_id"].as_str().unwrap();
    assert!(id.starts_with("read_file__read_file_") && id.ends_with("_0"), "{id}");
    let expected = [
        json!({"type": "tool_use", "tool_name": "read_file", "tool_id": id, "parameters": {"file_path": "a.txt"}}),
        json!({"type": "tool_result", "tool_id": id, "status": "success", "output": ""}),
        json!({"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}),
        json!({"type": "message", "role": "assistant", "content": "one\u{2028}two\u{2029}three\u{85}four", "delta": true}),
        json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": "[API Error: no]"}, "stats": stats}),
    ];
    assert_eq!(events, expected);
    assert_eq!(done.stdout_text().matches(['\u{2028}', '\u{2029}', '\u{85}']).count(), 3);

    let garbled = run([Step::InvalidUtf8]).stdout;
    let lines: Vec<_> = garbled.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| std::str::from_utf8(line).is_err()));
    let endless = run([Step::EndlessLine(1_000_001)]).stdout;
    assert_eq!((endless.len(), endless.contains(&b'\n')), (1_000_001, false));
    for (step, types) in [(Step::Deltas(3_000_000), 1), (Step::Mixed(3_000_000), 3)] {
        let written = run([step.clone()]).stdout;
        assert!((3_000_000..6_000_000).contains(&written.len()), "{step:?}: {}", written.len());
        let lines = written.split_inclusive(|byte| *byte == b'\n');
        let events = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()["type"].to_string());
        assert_eq!(events.collect::<std::collections::BTreeSet<_>>().len(), types, "{step:?}");
    }
}

#[test]
fn it_dies_at_exactly_the_byte_asked_for() {
    let whole = run([Step::Normal]).stdout.len() as u64;
    for bytes in [0, 1, 137, 138, whole - 1, whole] {
        let done = run([Step::DieAtByte { bytes, ending: Ending::Exit(3) }, Step::Normal, Step::Hang]);
        assert_eq!((done.stdout.len() as u64, done.status.code()), (bytes, Some(3)));
    }
}

/// A stdin that has it all at once: a pipe may get its first byte after the half second that is waited for it.
fn holding(bytes: &[u8]) -> Stdio {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file.into()
}

#[test]
fn each_start_is_dumped() {
    let hostile = Hostile::new(Script::normal()).unwrap().version("9.9.9-preview");
    let version = run_bounded(hostile.command().arg("--version"), LIMIT).unwrap();
    assert_eq!(version.stdout, b"9.9.9-preview\n");
    let directory = std::env::temp_dir().canonicalize().unwrap();
    let mut command = hostile.command();
    command.args(["-p", "two\nlines", "--yolo"]).env("SEEN", "yes").current_dir(&directory);
    let output = command.stdin(holding("größe".as_bytes())).output().unwrap();
    assert_eq!(
        events(&output.stdout)[1],
        json!({"type": "message", "role": "user", "content": "größe\n\ntwo\nlines"})
    );

    let starts = hostile.starts().unwrap();
    assert_eq!(starts.len(), 2);
    assert_eq!((&starts[0].argv[1..], &starts[0].stdin), (["--version".to_owned()].as_slice(), &None));
    assert_eq!(starts[1].argv[1..], ["-p", "two\nlines", "--yolo"]);
    assert_eq!(starts[1].env.get("SEEN").map(String::as_str), Some("yes"));
    assert_eq!(starts[1].cwd, directory.to_str().unwrap());
    let stdin = StdinSeen { bytes: 7, sha256: sha256("größe".as_bytes()), text: Some("größe".into()) };
    assert_eq!(starts[1].stdin, Some(stdin));
    assert_eq!(hostile.pids().unwrap(), [starts[0].pid, starts[1].pid]);
}

#[test]
fn a_large_stdin_is_dumped_as_a_hash() {
    let hostile = Hostile::new(Script::new([])).unwrap();
    let bytes = vec![b'y'; 3_000_000];
    hostile.command().stdin(holding(&bytes)).status().unwrap();
    let seen = StdinSeen { bytes: 3_000_000, sha256: sha256(&bytes), text: None };
    assert_eq!(hostile.starts().unwrap()[0].stdin, Some(seen));
}

#[test]
fn stdin_can_be_left_unread() {
    let hostile = Hostile::new(Script::new([Step::IgnoreStdin, Step::Result])).unwrap();
    let mut child = hostile.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let refused = child.stdin.take().unwrap().write_all(&vec![b'y'; 3_000_000]).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(events(&child.wait_with_output().unwrap().stdout)[0]["type"], "result");
    assert_eq!(hostile.starts().unwrap()[0].stdin, None);
}

#[test]
fn a_script_that_is_no_script_is_an_error() {
    let done =
        run_bounded(Command::new(hostile_path().unwrap()).env("HOSTILE", "[\"dance\"]"), LIMIT).unwrap();
    assert_eq!((done.stdout_text(), done.status.code()), (String::new(), Some(98)));
    assert!(
        done.stderr_text().starts_with("hostile: HOSTILE is not a list of steps: unknown variant `dance`")
    );
}
