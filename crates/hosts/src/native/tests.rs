use super::*;
use alhena_model::{End, Event, Exit, Input, Interpreter, Stop, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

const INIT: &str =
    r#"{"type":"init","timestamp":"2026-11-15T17:54:53.922Z","session_id":"s-1","model":"auto"}"#;
const ANSWER: &str = r#"{"type":"message","timestamp":"2026-11-15T17:54:54.000Z","role":"assistant","content":"Hi","delta":true}"#;
const SUCCESS: &str = r#"{"type":"result","timestamp":"2026-11-15T17:54:55.000Z","status":"success","stats":{"total_tokens":124,"input_tokens":100,"output_tokens":4,"cached":30,"input":70,"duration_ms":164,"tool_calls":0,"models":{"m":{"total_tokens":124,"input_tokens":100,"output_tokens":4,"cached":30,"input":70}}}}"#;
const BLOCKED: [&str; 2] = [
    r#"{"type":"error","timestamp":"2026-11-15T17:54:54.000Z","severity":"error","message":"Blocked."}"#,
    r#"{"type":"result","timestamp":"2026-11-15T17:54:55.000Z","status":"error","stats":{"total_tokens":0}}"#,
];

fn played(lines: &[&str], exit: Exit, stderr: &str, stop: Option<Stop>) -> (Vec<Event>, Arc<Outcome>) {
    let mut interpreter = Interpreter::new();
    let mut events = Vec::new();
    for line in lines {
        interpreter.line(line.as_bytes(), &mut events);
    }
    if let Some(stop) = stop {
        interpreter.feed(Input::Stop(stop), &mut events);
    }
    let end = End { exit, stderr: stderr.to_owned(), duration_ms: Some(7) };
    let outcome = interpreter.conclude(&end, &mut events);
    (events, outcome)
}

fn added(lines: &[&str], exit: Exit, stderr: &str, stop: Option<Stop>) -> Vec<Value> {
    let (_, outcome) = played(lines, exit, stderr, stop);
    let mut stream = StreamJson::default();
    for line in lines {
        drop(stream.line(line.as_bytes()));
    }
    let at = Timestamp::parse("2026-11-15T18:00:00.000Z").unwrap();
    stream.close(&outcome, at).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn result(error: Value, tool_calls: u64) -> Value {
    json!({
        "type": "result", "timestamp": "2026-11-15T18:00:00.000Z", "status": "error", "error": error,
        "stats": {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0, "input": 0,
                  "duration_ms": 7, "tool_calls": tool_calls, "models": {}},
    })
}

#[test]
fn a_truthful_stream_is_left_alone() {
    assert_eq!(added(&[INIT, ANSWER, SUCCESS], Exit::Code(0), "", None), Vec::<Value>::new());
    assert_eq!(added(&[INIT, BLOCKED[0], BLOCKED[1]], Exit::Code(0), "", None), Vec::<Value>::new());
}

#[test]
fn every_line_is_passed_on_but_the_ends_and_beginnings_between_two_attempts() {
    let passed = |lines: &[&str]| {
        let outcome = played(&[INIT, ANSWER, SUCCESS], Exit::Code(0), "", None).1;
        let mut stream = StreamJson::default();
        let mut out: Vec<String> = Vec::new();
        for line in lines {
            out.extend(
                stream.line(line.as_bytes()).map(|line| String::from_utf8(line.into_owned()).unwrap()),
            );
        }
        out.extend(stream.rest(&outcome).map(|line| String::from_utf8(line).unwrap()));
        out
    };
    for lines in [
        &[INIT, ANSWER, SUCCESS][..],
        &[INIT, BLOCKED[0], BLOCKED[1]],
        &[INIT, BLOCKED[1], ANSWER],
        &[INIT, BLOCKED[1], BLOCKED[1], SUCCESS],
        &[ANSWER, "\"init\"", "\"result\""],
    ] {
        assert_eq!(passed(lines), lines);
    }
    assert_eq!(passed(&[INIT, BLOCKED[1], INIT, ANSWER, SUCCESS]), [INIT, ANSWER]);
    assert_eq!(passed(&[INIT, INIT, ANSWER, BLOCKED[1]]), [INIT, ANSWER]);
    assert_eq!(added(&[INIT, BLOCKED[1], INIT, ANSWER, SUCCESS], Exit::Code(0), "", None).len(), 1);
}

#[test]
fn a_stream_without_a_result_gets_one() {
    let cases = [
        (
            &[INIT, ANSWER][..],
            Exit::Code(0),
            "",
            None,
            json!({"type": "CrashedError", "message": "Gemini CLI exited with code 0 and without a result"}),
        ),
        (
            &[][..],
            Exit::Code(55),
            "This folder is not trusted.\n",
            None,
            json!({"type": "FatalUntrustedWorkspaceError", "message": "This folder is not trusted."}),
        ),
        (
            &[INIT][..],
            Exit::Code(0),
            "",
            Some(Stop::Cancelled),
            json!({"type": "FatalCancellationError", "message": "The run was cancelled"}),
        ),
    ];
    for (lines, exit, stderr, stop, error) in cases {
        assert_eq!(added(lines, exit, stderr, stop), vec![result(error, 0)]);
    }
}

// The CLI makes no call for a prompt of 4 MB and reports success.
#[test]
fn a_result_that_lies_is_replaced_by_the_truth() {
    let lie = r#"{"type":"result","status":"success","stats":{"total_tokens":0,"models":{}}}"#;
    let (_, outcome) = played(&[INIT, lie], Exit::Code(0), "", None);
    let mut stream = StreamJson::default();
    drop(stream.line(INIT.as_bytes()));
    assert_eq!(stream.line(lie.as_bytes()).count(), 0);
    assert_eq!(stream.rest(&outcome), None);
    let error =
        json!({"type": "FatalInputError", "message": "Gemini CLI reported success without asking the model"});
    assert_eq!(added(&[INIT, lie], Exit::Code(0), "", None), vec![result(error, 0)]);
}

#[test]
fn stats_of_an_added_result_are_the_clis_own() {
    let (_, outcome) = played(&[INIT, ANSWER, SUCCESS], Exit::Code(1), "", None);
    let wire: Value = serde_json::from_str(SUCCESS).unwrap();
    let mut expected = wire["stats"].clone();
    expected["duration_ms"] = json!(7);
    assert_eq!(stream_json::stats(&outcome), expected);
}

// D: exit 0 is never a failure's code
#[test]
fn the_exit_code_is_the_clis_own_or_the_one_it_should_have_used() {
    let unknown_500 = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"code\":500,\"message\":\"x\"}}]"}}"#;
    let cases = [
        (&[INIT, ANSWER, SUCCESS][..], Exit::Code(0), None, 0),
        (&[INIT, BLOCKED[0], BLOCKED[1]][..], Exit::Code(0), None, 1),
        (&[INIT][..], Exit::Code(0), None, 1),
        (&[INIT][..], Exit::Code(55), None, 55),
        (&[INIT, unknown_500][..], Exit::Code(244), None, 244),
        (&[INIT, unknown_500][..], Exit::Unknown, None, 244),
        (&[INIT][..], Exit::Signal(9), None, 1),
        (&[INIT][..], Exit::Code(0), Some(Stop::Cancelled), 130),
        (&[INIT][..], Exit::Code(1), Some(Stop::Timeout(std::time::Duration::from_secs(1))), 124),
    ];
    for (lines, exit, stop, expected) in cases {
        let (_, outcome) = played(lines, exit, "", stop);
        assert_eq!(exit_code(&outcome), expected, "{lines:?} {exit:?}");
    }
    assert_eq!(http_code(429), 173);
    assert_eq!(http_code(512), 1);
}

#[test]
fn a_json_report_has_the_clis_shape() {
    let shell = r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"false"}}"#;
    let shell_result =
        r#"{"type":"tool_result","tool_id":"1","status":"success","output":"Command exited with code: 1"}"#;
    let gone = r#"{"type":"tool_use","tool_name":"write_file","tool_id":"2","parameters":{}}"#;
    let gone_result = r#"{"type":"tool_result","tool_id":"2","status":"error","error":{"type":"tool_not_registered","message":"no"}}"#;
    let lines = [INIT, ANSWER, shell, gone, shell_result, gone_result, ANSWER, SUCCESS];
    let (events, outcome) = played(&lines, Exit::Code(0), "", None);
    let mut report = JsonReport::default();
    events.iter().for_each(|event| report.event(event));
    assert_eq!(
        report.report(&outcome),
        json!({
            "session_id": "s-1",
            "response": "Hi",
            "stats": {
                "models": {"m": {"tokens": {"input": 70, "prompt": 100, "candidates": 4, "total": 124, "cached": 30, "thoughts": 20, "tool": 0}}},
                "tools": {"totalCalls": 2, "totalSuccess": 1, "totalFail": 1, "byName": {
                    "run_shell_command": {"count": 1, "success": 1, "fail": 0},
                    "write_file": {"count": 1, "success": 0, "fail": 1},
                }},
                "files": {"totalLinesAdded": 0, "totalLinesRemoved": 0},
            },
            "warnings": ["The model asked for write_file, which was not offered to it; `approval` auto-edit or yolo offers it, unless it is denied"],
        })
    );
}

#[test]
fn a_failed_json_run_says_so_in_the_report() {
    let quota = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"code\":429,\"message\":\"Quota.\"}}]"}}"#;
    let (_, outcome) = played(&[INIT, quota], Exit::Code(173), "", None);
    let report = JsonReport::default().report(&outcome);
    assert_eq!(
        report["error"],
        json!({"type": "unknown", "message": "[API Error: {\"error\":{\"code\":429,\"message\":\"Quota.\"}}]", "code": 429})
    );
    let (_, outcome) = played(&[INIT, BLOCKED[0], BLOCKED[1]], Exit::Code(0), "", None);
    assert_eq!(
        JsonReport::default().report(&outcome)["error"],
        json!({"type": "INVALID_STREAM", "message": "Blocked.", "code": 1})
    );
}

#[test]
fn a_json_report_is_printed_as_the_cli_prints_it() {
    let (_, outcome) = played(&[INIT], Exit::Code(41), "No key.", None);
    let printed = JsonReport::default().print(&outcome);
    assert!(printed.starts_with("{\n  \"session_id\": \"s-1\",\n  \"response\": \"\","), "{printed}");
    assert!(printed.ends_with("\n}"));
    assert_eq!(alhena_wire::report::find_report(printed.as_bytes()).unwrap().skipped_bytes, 0);
}

// 14_text_tools: text before a tool call ends with a newline, and so does the whole
#[test]
fn text_puts_every_turn_on_its_own_lines() {
    let said = |text: &str| json!({"type": "message", "role": "assistant", "content": text}).to_string();
    let call = r#"{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{}}"#;
    let back = r#"{"type":"tool_result","tool_id":"1","status":"success"}"#;
    let (reading, writing, last) = (said("Reading. "), said("Writing.\n"), said("Final answer."));
    let lines = [INIT, &reading, call, back, &writing, call, back, call, back, &last, SUCCESS];
    let (events, outcome) = played(&lines, Exit::Code(0), "", None);
    let mut text = TextOutput::default();
    let printed: String = events.iter().map(|event| text.event(event)).collect();
    assert_eq!(printed, "Reading. \nWriting.\nFinal answer.\n");
    assert_eq!(TextOutput::complaint(&outcome), "");
}

#[test]
fn a_failed_text_run_says_why_and_what_to_do() {
    let (events, outcome) = played(&[INIT], Exit::Code(55), "Not trusted.", None);
    let mut text = TextOutput::default();
    assert_eq!(events.iter().map(|event| text.event(event)).collect::<String>(), "");
    assert_eq!(TextOutput::complaint(&outcome), format!("Not trusted.\n{}\n", FailureKind::Untrusted.hint()));
}

#[test]
fn events_of_another_source_become_the_clis_lines() {
    let lines = [
        INIT,
        r#"{"type":"message","timestamp":"2026-11-15T17:54:54.000Z","role":"user","content":"Do it"}"#,
        ANSWER,
        r#"{"type":"tool_use","timestamp":"2026-11-15T17:54:54.000Z","tool_name":"glob","tool_id":"1","parameters":{"pattern":"*"}}"#,
        r#"{"type":"tool_result","timestamp":"2026-11-15T17:54:54.000Z","tool_id":"1","status":"success","output":"Found"}"#,
        r#"{"type":"tool_result","timestamp":"2026-11-15T17:54:54.000Z","tool_id":"2","status":"error","error":{"type":"unknown","message":"no"}}"#,
        r#"{"type":"error","timestamp":"2026-11-15T17:54:54.000Z","severity":"warning","message":"Loop"}"#,
        r#"{"type":"error","timestamp":"2026-11-15T17:54:54.000Z","severity":"error","message":"Bad"}"#,
        r#"{"type":"novelty","x":1}"#,
    ];
    let (events, _) = played(&lines, Exit::Unknown, "", None);
    let written: Vec<String> = events.iter().filter_map(line_for).collect();
    assert_eq!(written, lines);
}

#[test]
fn every_kind_of_failure_has_a_name_of_its_own() {
    let failures: Vec<Failure> = FailureKind::all().map(|kind| Failure::new(kind, "")).collect();
    let names: std::collections::BTreeSet<&str> = failures.iter().map(super::error_type).collect();
    assert_eq!(names.len(), failures.len(), "{names:?}");
    assert!(!names.contains(super::NAMELESS));
}
