//! Every recording of the real CLI (0.61.0): each line is an event, each report is found, each exit code is explained.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use alhena_wire::Count;
use alhena_wire::exit::{ExitMeaning, meaning};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::report::{find_error_report, find_report};
use alhena_wire::schema::Field;
use alhena_wire::stream::{
    ErrorEvent, ErrorInfo, Init, Message, ModelStats, ResultEvent, Status, StreamEvent, StreamStats,
    ToolResult, ToolUse, parse_line,
};
use serde_json::{Value, json};

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

/// Each line of a stream, as JSON and as an event.
fn events(stdout: &[u8]) -> Vec<(Value, StreamEvent<'static>)> {
    let mut framer = Framer::default();
    let mut events = Vec::new();
    let mut take = |frame: Frame<'_>| match frame {
        Frame::Line(line) => {
            events.push((serde_json::from_slice(line).unwrap(), parse_line(line).unwrap().into_owned()));
        }
        other => panic!("{other:?}"),
    };
    framer.push(stdout, &mut take);
    framer.finish(&mut take);
    events
}

/// Fails where a field holds anything else than the line says under that name.
fn assert_reads(event: &StreamEvent<'_>, line: &Value) {
    let count =
        |value: &Value, count: Option<Count>| assert_eq!(count.map(Count::get), value.as_u64(), "{line}");
    let error = |error: &Option<Box<ErrorInfo<'_>>>| {
        assert_eq!(error.is_some(), line.get("error").is_some(), "{line}");
        if let Some(error) = error {
            assert_eq!(error.kind.as_deref(), line["error"]["type"].as_str(), "{line}");
            assert_eq!(line["error"]["message"], *error.message);
        }
    };
    assert_eq!(event.timestamp(), line["timestamp"].as_str());
    match event {
        StreamEvent::Init(event) => {
            assert_eq!(
                (&line["session_id"], &line["model"]),
                (&json!(event.session_id), &json!(event.model))
            );
        }
        StreamEvent::Message(event) => {
            assert_eq!(
                (&line["role"], &line["content"]),
                (&json!(event.role.as_str()), &json!(event.content))
            );
            assert_eq!(event.delta, line.get("delta").and_then(Value::as_bool));
        }
        StreamEvent::ToolUse(event) => {
            assert_eq!(
                (&line["tool_name"], &line["tool_id"]),
                (&json!(event.tool_name), &json!(event.tool_id))
            );
            assert_eq!(event.parameters.decode::<Value>().unwrap(), line["parameters"]);
        }
        StreamEvent::ToolResult(event) => {
            assert_eq!(
                (&line["tool_id"], &line["status"]),
                (&json!(event.tool_id), &json!(event.status.as_str()))
            );
            assert_eq!(event.output.as_deref(), line.get("output").and_then(Value::as_str));
            error(&event.error);
        }
        StreamEvent::Error(event) => {
            assert_eq!(
                (&line["severity"], &line["message"]),
                (&json!(event.severity.as_str()), &json!(event.message))
            );
        }
        StreamEvent::Result(event) => {
            assert_eq!(line["status"], event.status.as_str());
            error(&event.error);
            let stats = event.stats.as_deref().cloned().unwrap_or_default();
            let told = line.get("stats").unwrap_or(&Value::Null);
            count(&told["total_tokens"], stats.total_tokens);
            count(&told["input_tokens"], stats.input_tokens);
            count(&told["output_tokens"], stats.output_tokens);
            count(&told["cached"], stats.cached);
            count(&told["input"], stats.input);
            count(&told["duration_ms"], stats.duration_ms);
            count(&told["tool_calls"], stats.tool_calls);
            let models = stats.models.unwrap_or_default();
            assert_eq!(models.len(), told["models"].as_object().map_or(0, serde_json::Map::len), "{line}");
            for (name, model) in models.iter() {
                let told = &told["models"][name];
                count(&told["total_tokens"], model.total_tokens);
                count(&told["input_tokens"], model.input_tokens);
                count(&told["output_tokens"], model.output_tokens);
                count(&told["cached"], model.cached);
                count(&told["input"], model.input);
            }
        }
        StreamEvent::Unknown(_) => panic!("{line}"),
    }
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
        for (line, event) in events(&stdout) {
            assert_reads(&event, &line);
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
    // C-15, C-18: a key without a field is one that these types forgot.
    let check = |object: &Value, fields: &[Field]| {
        for key in object.as_object().unwrap().keys() {
            assert!(fields.iter().any(|field| field.name == key), "{key} in {object}");
        }
    };
    for recording in recordings() {
        let stdout = fs::read(recording.join("stdout")).unwrap();
        for (mut line, event) in if is_stream(&stdout) { events(&stdout) } else { Vec::new() } {
            let kind = line.as_object_mut().unwrap().remove("type").unwrap();
            assert_eq!(Some(kind.as_str().unwrap()), event.kind());
            let fields = match event {
                StreamEvent::Init(_) => Init::FIELDS,
                StreamEvent::Message(_) => Message::FIELDS,
                StreamEvent::ToolUse(_) => ToolUse::FIELDS,
                StreamEvent::ToolResult(_) => ToolResult::FIELDS,
                StreamEvent::Error(_) => ErrorEvent::FIELDS,
                StreamEvent::Result(_) => ResultEvent::FIELDS,
                StreamEvent::Unknown(_) => panic!("{}: {line}", name(&recording)),
            };
            check(&line, fields);
            line.get("error").inspect(|error| check(error, ErrorInfo::FIELDS));
            let Some(stats) = line.get("stats") else { continue };
            check(stats, StreamStats::FIELDS);
            let models = stats.get("models").and_then(Value::as_object);
            models.into_iter().flatten().for_each(|(_, model)| check(model, ModelStats::FIELDS));
        }
    }
}

#[test]
fn stream_ends_with_the_result_that_its_exit_code_implies() {
    for recording in recordings() {
        let stdout = fs::read(recording.join("stdout")).unwrap();
        let (true, Some(code)) = (is_stream(&stdout), exit_code(&recording)) else { continue };
        let status = match events(&stdout).pop().unwrap().1 {
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
        let (report, stats) = (&found.report, found.report.stats.as_ref().unwrap());
        assert_eq!(
            (&json!(report.session_id), &json!(report.response)),
            (&value["session_id"], &value["response"])
        );
        let told = &value["stats"];
        let (models, tools) = (stats.models.as_ref().unwrap(), stats.tools.as_ref().unwrap());
        assert_eq!(tools.total_calls.map(Count::get), told["tools"]["totalCalls"].as_u64(), "{recording}");
        assert_eq!(models.len(), told["models"].as_object().unwrap().len(), "{recording}");
        for (name, model) in models.iter() {
            let (api, tokens) = (model.api.as_ref().unwrap(), model.tokens.as_ref().unwrap());
            let told = &told["models"][name];
            assert_eq!(
                api.total_requests.map(Count::get),
                told["api"]["totalRequests"].as_u64(),
                "{recording}"
            );
            for (count, key) in [
                (tokens.input, "input"),
                (tokens.prompt, "prompt"),
                (tokens.candidates, "candidates"),
                (tokens.total, "total"),
                (tokens.cached, "cached"),
                (tokens.thoughts, "thoughts"),
                (tokens.tool, "tool"),
            ] {
                assert_eq!(count.map(Count::get), told["tokens"][key].as_u64(), "{recording}: {key}");
            }
        }
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
