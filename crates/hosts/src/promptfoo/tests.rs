use super::*;
use crate::samples;
use alhena_model::{End, Exit, Failure, Input, Interpreter, Prices, Status, Stop};
use alhena_wire::report;
use serde_json::json;
use std::time::Duration;

const NOISE: &str = "YOLO mode is enabled. All tool calls will be automatically approved.\n\
    The 'metricReader' option is deprecated. Please use 'metricReaders' instead.\n";
const NOISE_AND_REASON: &str =
    "The 'metricReader' option is deprecated. Please use 'metricReaders' instead.\nNo auth.\n";
const INIT: &str =
    r#"{"type":"init","timestamp":"2026-11-15T20:00:00.000Z","session_id":"s-1","model":"auto"}"#;

fn result(status: &str, error: Value, models: Value) -> String {
    let mut line =
        json!({"type": "result", "status": status, "stats": {"total_tokens": 1, "models": models}});
    if !error.is_null() {
        line["error"] = error;
    }
    line.to_string()
}

fn model(total: u64, prompt: u64, output: u64, cached: u64) -> Value {
    json!({"total_tokens": total, "input_tokens": prompt, "output_tokens": output, "cached": cached})
}

fn said(text: &str) -> String {
    json!({"type": "message", "role": "assistant", "content": text}).to_string()
}

fn respond(interpreter: Interpreter, mut events: Vec<Event>, exit: Exit, stderr: &str) -> ProviderResponse {
    let end = End { exit, stderr: stderr.to_owned(), duration_ms: Some(5) };
    let outcome = interpreter.conclude(&end, &mut events);
    let mut view = View::default();
    events.iter().for_each(|event| view.event(event));
    view.response(&outcome, None)
}

fn called(lines: &[&str], exit: Exit, stderr: &str) -> ProviderResponse {
    let mut interpreter = Interpreter::new().with_prices(Prices::shipped().unwrap());
    let mut events = Vec::new();
    for line in lines {
        interpreter.line(line.as_bytes(), &mut events);
    }
    respond(interpreter, events, exit, stderr)
}

// E-29 to E-31, E-34 to E-36, E-40
#[test]
fn a_success_has_output_tokens_cost_session_and_what_happened() {
    let call =
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"ls"}}"#;
    let back = r#"{"type":"tool_result","tool_id":"1","status":"success","output":"a.txt"}"#;
    let refused = r#"{"type":"tool_use","tool_name":"web_fetch","tool_id":"2","parameters":{}}"#;
    let refusal = r#"{"type":"tool_result","tool_id":"2","status":"error","error":{"type":"policy_violation","message":"denied"}}"#;
    let (looking, done) = (said("Looking. "), said("One file."));
    let end = result(
        "success",
        Value::Null,
        json!({"gemini-2.5-flash": model(1130, 1000, 100, 400), "gemini-3.5-flash-lite": model(110, 100, 10, 0)}),
    );
    let lines = [INIT, &looking, call, refused, back, refusal, &done, &end];
    let got = serde_json::to_value(called(&lines, Exit::Code(0), "")).unwrap();
    let raw = json!({
        "session_id": "s-1",
        "response": "One file.",
        "stats": {
            "models": {
                "gemini-2.5-flash": {"tokens": {"input": 600, "prompt": 1000, "candidates": 100, "total": 1130, "cached": 400, "thoughts": 30, "tool": 0}},
                "gemini-3.5-flash-lite": {"tokens": {"input": 100, "prompt": 100, "candidates": 10, "total": 110, "cached": 0, "thoughts": 0, "tool": 0}},
            },
            "tools": {"totalCalls": 2, "totalSuccess": 1, "totalFail": 1, "byName": {
                "run_shell_command": {"count": 1, "success": 1, "fail": 0},
                "web_fetch": {"count": 1, "success": 0, "fail": 1},
            }},
            "files": {"totalLinesAdded": 0, "totalLinesRemoved": 0},
        },
        "warnings": ["A call of web_fetch was denied by policy"],
    });
    // 600 * 0.3 + 400 * 0.03 + 130 * 2.5, and 100 * 0.3 + 10 * 2.5, per million
    let cost = 0.000517 + 0.000055;
    assert_eq!(
        got,
        json!({
            "output": "One file.",
            "tokenUsage": {"prompt": 1100, "completion": 110, "total": 1240, "cached": 400, "completionDetails": {"reasoning": 30}},
            "cost": cost,
            "sessionId": "s-1",
            "metadata": {
                "sessionId": "s-1",
                "toolCalls": [
                    {"id": "1", "name": "run_shell_command", "input": {"command": "ls"}, "output": "a.txt", "is_error": false},
                    {"id": "2", "name": "web_fetch", "input": {}, "output": "denied", "is_error": true},
                ],
                "files": [],
                "commands": [{"call_id": "1", "command": "ls", "output": "a.txt"}],
                "models": ["gemini-2.5-flash", "gemini-3.5-flash-lite"],
                "durationMs": 5,
                "exitCode": 0,
                "warnings": ["A call of web_fetch was denied by policy"],
            },
            "raw": raw.to_string(),
        })
    );
}

#[test]
fn an_answer_that_was_cut_off_is_output_with_its_finish_reason() {
    let hi = said("Once upon a ti");
    let end = result("success", Value::Null, json!({}));
    for (reason, word) in [("MAX_TOKENS", "length"), ("RECITATION", "content_filter"), ("OTHER", "other")] {
        let (mut interpreter, mut events) = (Interpreter::new(), Vec::new());
        for line in [INIT, &hi, &end] {
            interpreter.line(line.as_bytes(), &mut events);
        }
        interpreter.feed(Input::FinishReason(Some(reason.to_owned())), &mut events);
        let end = End { exit: Exit::Code(0), stderr: String::new(), duration_ms: None };
        let outcome = interpreter.conclude(&end, &mut events);
        let mut view = View::default();
        events.iter().for_each(|event| view.event(event));
        let response = view.response(&outcome, None);
        assert_eq!(response.output, Some(json!("Once upon a ti")), "{reason}");
        assert_eq!((response.error, response.finish_reason.as_deref()), (None, Some(word)));
        assert_eq!(response.metadata.failure.unwrap().kind, FailureKind::InvalidResponse);
    }
}

// E-31: missing is 0; E-32: no models, no usage
#[test]
fn token_usage_needs_models() {
    let hi = said("Hi");
    let nothing = result("success", Value::Null, json!({}));
    let response = called(&[INIT, &hi, &nothing], Exit::Code(0), "");
    assert_eq!((response.token_usage, response.cost), (None, None));
    let bare = result("success", Value::Null, json!({"m": {}}));
    let response = called(&[INIT, &hi, &bare], Exit::Code(0), "");
    assert_eq!(
        response.token_usage,
        Some(TokenUsage { prompt: 0, completion: 0, total: 0, cached: None, completion_details: None })
    );
}

// E-26 within E-27
#[test]
fn another_exit_code_is_quoted_with_stderr_or_stdout() {
    let api = result(
        "error",
        json!({"type": "unknown", "message": "[API Error: {\"error\":{\"code\":400,\"message\":\"Bad.\"}}]"}),
        json!({}),
    );
    let unknown = r#"{"fatal": "No room"}"#;
    for (lines, code, stderr, expected) in [
        (&[][..], 41, "No auth.\n", "Gemini CLI error: Exit code 41: No auth.\n"),
        // Noise never stands before the reason, nor for it.
        (&[][..], 41, NOISE_AND_REASON, "Gemini CLI error: Exit code 41: No auth.\n"),
        (&[INIT, &api][..], 144, NOISE, "Gemini CLI error: Exit code 144: Bad."),
        (&[INIT, &api][..], 144, "stack trace", "Gemini CLI error: Exit code 144: stack trace"),
        (&[INIT, &api][..], 144, "", "Gemini CLI error: Exit code 144: Bad."),
        // What is on standard output is quoted where standard error says nothing, unless an event has the reason.
        (&["No room", "on disk"][..], 1, "", "Gemini CLI error: Exit code 1: No room\non disk\n"),
        (&["No room"][..], 1, NOISE, "Gemini CLI error: Exit code 1: No room\n"),
        (&["Starting"][..], 1, "No room\n", "Gemini CLI error: Exit code 1: No room\n"),
        (&[unknown][..], 1, "", "Gemini CLI error: Exit code 1: {\"fatal\":\"No room\"}\n"),
        (&[unknown][..], 1, "No room\n", "Gemini CLI error: Exit code 1: No room\n"),
        (&[INIT, "Starting", &api][..], 144, NOISE, "Gemini CLI error: Exit code 144: Bad."),
        (
            &[][..],
            55,
            "",
            "Gemini CLI error: Exit code 55: Gemini CLI exited with code 55 and without a result",
        ),
    ] {
        let response = called(lines, Exit::Code(code), stderr);
        assert_eq!((response.error.as_deref(), response.output), (Some(expected), None));
    }
}

// E-33, from the stream and from a json report
#[test]
fn an_error_that_was_reported_with_exit_0_is_type_and_message() {
    let blocked = r#"{"type":"error","severity":"error","message":"The model response was blocked due to safety settings."}"#;
    let end = result("error", Value::Null, json!({"m": model(4, 3, 1, 0)}));
    let response = called(&[INIT, blocked, &end], Exit::Code(0), "noise on stderr");
    assert_eq!(
        response.error.as_deref(),
        Some("INVALID_STREAM: The model response was blocked due to safety settings.")
    );
    assert_eq!(
        response.token_usage,
        Some(TokenUsage { prompt: 3, completion: 1, total: 4, cached: None, completion_details: None })
    );

    let text = json!({"session_id": "s", "response": "", "error": {"type": "ApiError", "message": "Rate limit.", "code": 429}}).to_string();
    for exit in [Exit::Code(0), Exit::Unknown] {
        let mut interpreter = Interpreter::new();
        let mut events = Vec::new();
        let report = report::find_report(text.as_bytes()).unwrap().report;
        interpreter.feed(Input::Report(Box::new(report)), &mut events);
        let response = respond(interpreter, events, exit, "");
        assert_eq!(response.error.as_deref(), Some("ApiError: Rate limit."));
        let raw: Value = serde_json::from_str(&response.raw).unwrap();
        assert_eq!(raw["error"]["type"], "ApiError");
    }
}

// E-23, E-24, E-27: never thrown
#[test]
fn whatever_else_happens_is_a_gemini_cli_error() {
    let cut = called(&[INIT], Exit::Code(0), "");
    assert_eq!(
        cut.error.as_deref(),
        Some("Gemini CLI error: Gemini CLI exited with code 0 and without a result")
    );
    for (stop, expected) in [
        (Stop::Timeout(Duration::from_millis(120_000)), "Gemini CLI error: The run took longer than 120 s"),
        (Stop::Cancelled, "Gemini CLI error: The run was cancelled"),
    ] {
        let mut interpreter = Interpreter::new();
        interpreter.feed(Input::Stop(stop), &mut Vec::new());
        let response = respond(interpreter, Vec::new(), Exit::Code(0), "");
        assert_eq!(response.error.as_deref(), Some(expected));
    }
    let mut missing = Outcome::default();
    missing.status = Status::Failed;
    missing.failure = Some(Failure::new(FailureKind::NotInstalled, "Gemini CLI was not found"));
    let response = View::default().response(&missing, None);
    assert_eq!(response.error.as_deref(), Some("Gemini CLI error: Gemini CLI was not found"));
}

#[test]
fn what_is_kept_of_tool_calls_is_bounded() {
    let mut view = View::default();
    let big = "x".repeat(MOST_BYTES);
    let call = |id: usize, input: Value| samples::event(samples::call(&id.to_string(), "t", input));
    view.event(&call(0, json!({"content": big})));
    for id in 1..=MOST_CALLS {
        view.event(&call(id, json!(id)));
    }
    assert_eq!(view.calls.len(), MOST_CALLS);
    assert_eq!((&view.calls[0].input, &view.calls[1].input), (&Value::Null, &json!(1)));
}

// E-03, E-11
#[test]
fn a_right_configuration_is_taken_and_unknown_options_only_warn() {
    for right in [Value::Null, json!({}), json!({"sandbox": false, "model": null})] {
        assert_eq!(validate(&right), Ok(Vec::new()), "{right}");
    }
    let all = json!({
        "disable_tools": ["a", "b"], "sandbox": "podman", "include_directories": ["x", "y"], "yolo": true,
        "approval_mode": "full_auto", "model": "gemini-2.5-pro", "apiKey": "k", "googleCloudProject": "p", "useVertexAI": true,
        "timeout_ms": 1500.2, "working_dir": "./src", "flavour": "sweet",
    });
    assert_eq!(validate(&all), Ok(vec!["unknown option flavour is ignored".to_owned()]));
}

#[test]
fn wrong_options_are_refused() {
    for (config, expected) in [
        (json!([]), "config must be an object"),
        (
            json!({"approval_mode": "always"}),
            "approval_mode must be one of suggest, auto_edit, full_auto, got: \"always\"",
        ),
        (json!({"model": 1}), "model must be a string, got: 1"),
        (json!({"yolo": "yes"}), "yolo must be true or false, got: \"yes\""),
        (json!({"disable_tools": "x"}), "disable_tools must be a list of strings, got: \"x\""),
        (json!({"include_directories": [1]}), "include_directories must be a list of strings, got: [1]"),
        (json!({"sandbox": 3}), "sandbox must be docker, podman or false, got: 3"),
        (json!({"timeout_ms": 0}), "timeout_ms must be a number > 0, got: 0"),
        (json!({"mcp_servers": []}), "mcp_servers must be an object, got: []"),
    ] {
        assert_eq!(validate(&config).unwrap_err(), expected);
    }
}
