//! Every recording of the real CLI (0.61.0): each line is an event, each report is found, each exit code is explained.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use alhena_wire::exit::{ExitMeaning, meaning};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::report::{find_error_report, find_report};
use alhena_wire::stream::{Status, StreamEvent, parse_line};
use serde_json::Value;

fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings");
    let mut found: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() > 70);
    found
}

fn name(recording: &Path) -> String {
    recording.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The exit code, or `None` when the recording was cut by a kill.
fn exit_code(recording: &Path) -> Option<i32> {
    let text = fs::read_to_string(recording.join("exit")).unwrap();
    text.split_whitespace().next().unwrap().parse().ok()
}

fn events(stdout: &[u8]) -> Vec<StreamEvent<'static>> {
    let mut framer = Framer::default();
    let mut events = Vec::new();
    let mut take = |frame: Frame<'_>| match frame {
        Frame::Line(line) => {
            let event = parse_line(line).unwrap();
            let value: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(serde_json::to_value(&event).unwrap(), value, "round trip");
            events.push(event.into_owned());
        }
        other => panic!("{other:?}"),
    };
    framer.push(stdout, &mut take);
    framer.finish(&mut take);
    events
}

fn is_stream(stdout: &[u8]) -> bool {
    stdout.starts_with(b"{\"type\":")
}

#[test]
fn every_line_of_a_stream_is_one_of_the_six_events_and_survives() {
    // C-01, C-47
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for recording in recordings() {
        let stdout = fs::read(recording.join("stdout")).unwrap();
        if !is_stream(&stdout) {
            continue;
        }
        for event in events(&stdout) {
            assert!(!matches!(event, StreamEvent::Unknown(_)), "{}: {event:?}", name(&recording));
            assert!(event.timestamp().unwrap().ends_with('Z'));
            *kinds.entry(event.kind().unwrap().to_owned()).or_default() += 1;
        }
    }
    let expected =
        [("error", 4), ("init", 58), ("message", 122), ("result", 48), ("tool_result", 40), ("tool_use", 42)];
    assert_eq!(kinds, expected.map(|(kind, count)| (kind.to_owned(), count)).into());
}

#[test]
fn nothing_in_a_recorded_event_is_unknown() {
    // A field that ends up in `extra` is one that these types forgot.
    for recording in recordings() {
        let stdout = fs::read(recording.join("stdout")).unwrap();
        for event in if is_stream(&stdout) { events(&stdout) } else { Vec::new() } {
            let known = match &event {
                StreamEvent::Init(event) => event.extra.is_empty(),
                StreamEvent::Message(event) => event.extra.is_empty(),
                StreamEvent::ToolUse(event) => event.extra.is_empty(),
                StreamEvent::ToolResult(event) => {
                    event.extra.is_empty() && event.error.as_ref().is_none_or(|error| error.extra.is_empty())
                }
                StreamEvent::Error(event) => event.extra.is_empty(),
                StreamEvent::Result(event) => {
                    event.extra.is_empty()
                        && event.error.as_ref().is_none_or(|error| error.extra.is_empty())
                        && event.stats.as_ref().is_none_or(|stats| {
                            stats.extra.is_empty()
                                && stats
                                    .models
                                    .iter()
                                    .flat_map(|models| models.iter())
                                    .all(|(_, m)| m.extra.is_empty())
                        })
                }
                StreamEvent::Unknown(_) => false,
            };
            assert!(known, "{}: {event:?}", name(&recording));
        }
    }
}

#[test]
fn stream_ends_with_the_result_that_its_exit_code_implies() {
    for recording in recordings() {
        let stdout = fs::read(recording.join("stdout")).unwrap();
        let (true, Some(code)) = (is_stream(&stdout), exit_code(&recording)) else { continue };
        let status = match events(&stdout).pop().unwrap() {
            StreamEvent::Result(result) => Some(result.status),
            _ => None,
        };
        let allowed: &[Option<Status<'static>>] = match meaning(code) {
            // Without a result: stopped by a signal. With an error: an invalid stream.
            ExitMeaning::Done => &[Some(Status::Success), Some(Status::Error), None],
            ExitMeaning::General | ExitMeaning::Http(_) | ExitMeaning::Cancelled | ExitMeaning::TurnLimit => {
                &[Some(Status::Error)]
            }
            other => panic!("{}: {other:?} after a stream", name(&recording)),
        };
        assert!(allowed.contains(&status), "{}: {code} {status:?}", name(&recording));
    }
}

#[test]
fn every_exit_code_is_explained() {
    for recording in recordings() {
        if let Some(code) = exit_code(&recording).filter(|code| *code >= 0) {
            assert_ne!(meaning(code), ExitMeaning::Unknown, "{}: {code}", name(&recording));
        }
    }
}

#[test]
fn reports_are_found_where_the_cli_puts_them() {
    let on = |file: &str, recording: &str| {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings").join(recording).join(file);
        fs::read(path).unwrap()
    };
    for recording in
        ["01_json_plain", "01_json_unicode", "03_thoughts_only_json", "03_toolloop_json", "14_json_tools"]
    {
        let stdout = on("stdout", recording);
        let found = find_report(&stdout).unwrap();
        assert_eq!(found.skipped_bytes, 0, "{recording}");
        let value: Value = serde_json::from_slice(&stdout).unwrap();
        assert_eq!(serde_json::to_value(found.report).unwrap(), value, "{recording}");
    }
    for (recording, kind, code) in [
        ("03_500_att2_json", "Error", Some(500)),
        ("03_api403_json", "Error", Some(403)),
        ("03_noauth_nokey_json", "Error", Some(41)),
        ("03_selected_apikey_but_no_key_json", "Error", Some(41)),
        ("03_drop_midstream_json", "Error", Some(1)),
        ("14_pty_ctrlc_stream_json", "FatalCancellationError", Some(130)),
    ] {
        assert_eq!(find_report(&on("stdout", recording)), None, "{recording}");
        let stderr = on("stderr", recording);
        let error = find_error_report(&stderr).unwrap_or_else(|| panic!("{recording}")).report.error.unwrap();
        assert_eq!((error.kind.as_deref(), error.code_number()), (Some(kind), code), "{recording}");
    }
}
