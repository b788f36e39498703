use super::*;
use alhena_model::{End, Exit, Failure, FailureKind, Input, Interpreter, Status, Stop};
use std::time::Duration;

fn run(lines: &[&str], code: i32, stderr: &str) -> Value {
    ended(lines, Exit::Code(code), stderr)
}

fn ended(lines: &[&str], exit: Exit, stderr: &str) -> Value {
    let mut interpreter = Interpreter::new();
    let mut events = Vec::new();
    for line in lines {
        interpreter.line(line.as_bytes(), &mut events);
    }
    let end = End { exit, stderr: stderr.to_owned(), duration_ms: Some(1) };
    let outcome = interpreter.conclude(&end, &mut events);
    serde_json::to_value(view(&outcome, None)).unwrap()
}

const INIT: &str =
    r#"{"type":"init","timestamp":"2026-11-15T17:49:10.599Z","session_id":"s","model":"auto"}"#;
const USER: &str = r#"{"type":"message","role":"user","content":"not me"}"#;
const SUCCESS: &str = r#"{"type":"result","status":"success","stats":{"total_tokens":5,"models":{}}}"#;

fn said(text: &str) -> String {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true}).to_string()
}

fn call(id: &str, tool: &str, path: &str) -> String {
    json!({"type": "tool_use", "tool_id": id, "tool_name": tool, "parameters": {"file_path": path}})
        .to_string()
}

fn result(id: &str, status: &str) -> String {
    json!({"type": "tool_result", "tool_id": id, "status": status}).to_string()
}

// A-18, A-19, A-20 to A-26
#[test]
fn response_is_all_text_and_files_are_confirmed_writes_in_order() {
    let lines = [
        INIT.to_owned(),
        USER.to_owned(),
        said("Reading. "),
        call("r", "read_file", "read.txt"),
        result("r", "success"),
        call("1", "write_file", "b.txt"),
        call("2", "replace", "a.txt"),
        call("3", "write_file", "refused.txt"),
        call("4", "write_file", "open.txt"),
        call("5", "replace", "b.txt"),
        result("2", "success"),
        result("1", "success"),
        result("3", "error"),
        result("5", "success"),
        said("Done."),
        SUCCESS.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let expected = json!({"response": "Reading. Done.", "files": {"a.txt": null, "b.txt": null}});
    let got = run(&lines, 0, "");
    assert_eq!(got, expected);
    // Equality of JSON objects does not see their order.
    assert_eq!(got.to_string(), r#"{"response":"Reading. Done.","files":{"a.txt":null,"b.txt":null}}"#);
}

// A-27, A-28
#[test]
fn malformed_and_blank_lines_change_nothing() {
    let hello = said("Hello");
    let lines = [INIT, "warning: not JSON", "{\"type\":\"mess", &hello, "[1]", SUCCESS];
    assert_eq!(run(&lines, 0, ""), json!({"response": "Hello", "files": {}}));
}

// A-29, A-30: whatever the exit code
#[test]
fn stderr_that_speaks_of_auth_or_login_is_an_authentication_error() {
    for (code, stderr) in [
        (41, "Please set an Auth method in your settings\n"),
        (1, "you must LOGIN first"),
        (127, "sh: gemini-auth: not found"),
        (53, "author unknown"),
    ] {
        let expected = format!("Gemini CLI authentication error. Run: gemini auth login\n{stderr}");
        assert_eq!(run(&[], code, stderr)["error"], expected);
        assert_eq!(process_error(code, stderr), expected);
    }
}

// A-31
#[test]
fn exit_127_is_not_found() {
    let expected = "Gemini CLI not found. Install from: https://github.com/google-gemini/gemini-cli";
    assert_eq!(run(&[], 127, "sh: 1: gemini: not found\n")["error"], expected);
    assert_eq!(run(&[], 127, "")["error"], expected);
    let mut nothing_to_start = Outcome::default();
    nothing_to_start.status = Status::Failed;
    nothing_to_start.failure = Some(Failure::new(FailureKind::NotInstalled, "no gemini on PATH"));
    assert_eq!(
        serde_json::to_value(view(&nothing_to_start, None)).unwrap(),
        json!({"response": "", "files": {}, "error": expected})
    );
}

// A-32
#[test]
fn any_other_failure_names_exit_code_and_stderr() {
    let partial = said("half an ans");
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&[], 1, "boom\nbang\n", "Gemini CLI failed (exit 1): boom\nbang\n"),
        (&[], 41, "", "Gemini CLI failed (exit 41): "),
        (&[INIT, &partial], 0, "", "Gemini CLI failed (exit 0): "),
        (&[INIT, &partial], 0, "Killed", "Gemini CLI failed (exit 0): Killed"),
        (
            &[
                INIT,
                r#"{"type":"error","severity":"error","message":"Blocked."}"#,
                r#"{"type":"result","status":"error"}"#,
            ],
            0,
            "YOLO mode is enabled. All tool calls will be automatically approved.\n",
            "Gemini CLI failed (exit 0): Blocked.",
        ),
        (
            &[
                INIT,
                r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"code\":500,\"message\":\"Internal.\"}}]"}}"#,
            ],
            244,
            "",
            "Gemini CLI failed (exit 244): Internal.",
        ),
    ];
    for (lines, code, stderr, expected) in cases {
        assert_eq!(run(lines, *code, stderr)["error"], *expected);
    }
}

#[test]
fn an_error_begins_with_its_reason_and_never_with_noise() {
    let api = "Error when talking to Gemini API Full report available at: /tmp/x/client-error.json _ApiError: \
               {\"error\":{\"code\":400,\"message\":\"Not so.\"}}\n    at f (file.js:1:2) {\n  status: 400\n}\n";
    let noise = "YOLO mode is enabled. All tool calls will be automatically approved.\n\
                 The 'metricReader' option is deprecated. Please use 'metricReaders' instead.\n";
    let text = run(&[INIT], 144, &format!("{noise}{api}"))["error"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with(
            "Gemini CLI failed (exit 144): Not so.\nError when talking to Gemini API _ApiError: "
        ),
        "{text}"
    );
    assert!(!text.contains("YOLO") && !text.contains("metricReader") && !text.contains("/tmp/x"), "{text}");
    // Nothing but noise is not a reason.
    let text = run(&[], 41, noise)["error"].as_str().unwrap().to_owned();
    assert!(text.starts_with("Gemini CLI failed (exit 41): ") && !text.contains("YOLO"), "{text}");
}

#[test]
fn a_recording_without_an_exit_code_uses_the_failures_words() {
    assert_eq!(
        ended(&[INIT], Exit::Unknown, ""),
        json!({"response": "", "files": {}, "error": "Gemini CLI failed (exit 1): The output ends without a result"})
    );
}

// A-12: the wait is over, whatever stderr says
#[test]
fn a_run_that_was_stopped_says_why_with_alhenas_code() {
    let mut events = Vec::new();
    let mut interpreter = Interpreter::new();
    interpreter.line(INIT.as_bytes(), &mut events);
    interpreter.feed(Input::Stop(Stop::Timeout(Duration::from_secs(600))), &mut events);
    let end = End { exit: Exit::Code(0), stderr: "Loaded auth".to_owned(), duration_ms: None };
    let outcome = interpreter.conclude(&end, &mut events);
    assert_eq!(
        view(&outcome, None).error.as_deref(),
        Some("Gemini CLI failed (exit 124): The run took longer than 600 s")
    );
}

// A-33
#[test]
fn metadata_is_the_documents_to_the_letter() {
    assert_eq!(
        metadata().to_string(),
        concat!(
            r#"{"name":"gemini-cli","description":"Gemini CLI AI agent via subprocess","requires_config":false,"#,
            r#""config_keys":["model","sandbox","approval_mode","include_directories","allowed_tools","working_dir","timeout"],"#,
            r#""default_response_timeout":600,"fs_ability":"local-write"}"#
        )
    );
}

// A-34 to A-36
#[test]
fn wrong_configurations_are_refused_in_pythons_words() {
    let refused = [
        (json!({"timeout": 0}), "timeout must be > 0"),
        (json!({"timeout": -1.5}), "timeout must be > 0"),
        (json!({"timeout": false}), "timeout must be > 0"),
        (json!({"timeout": "10"}), "'<=' not supported between instances of 'str' and 'int'"),
        (
            json!({"approval_mode": "plan"}),
            "approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: 'plan'",
        ),
        (
            json!({"approval_mode": "it's"}),
            "approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: \"it's\"",
        ),
        (
            json!({"approval_mode": ""}),
            "approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: ''",
        ),
        (
            json!({"approval_mode": 1}),
            "approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: 1",
        ),
        (json!({"include_directories": "src"}), "include_directories must be a list, got: str"),
        (json!({"include_directories": {}}), "include_directories must be a list, got: dict"),
        (json!({"allowed_tools": 3}), "allowed_tools must be a list, got: int"),
        (json!({"allowed_tools": 3.0}), "allowed_tools must be a list, got: float"),
        (json!({"allowed_tools": true}), "allowed_tools must be a list, got: bool"),
        (json!([]), "config must be a dict, got: list"),
        // The document checks in this order.
        (
            json!({"allowed_tools": 1, "include_directories": 1, "approval_mode": "x", "timeout": 0}),
            "timeout must be > 0",
        ),
        (
            json!({"allowed_tools": 1, "include_directories": 1}),
            "include_directories must be a list, got: int",
        ),
    ];
    for (config, expected) in refused {
        assert_eq!(validate(&config), Err(expected.to_owned()), "{config}");
    }
}

// A-37, A-38
#[test]
fn nulls_are_not_validated_and_unknown_keys_only_warn() {
    let nothing: Vec<String> = Vec::new();
    assert_eq!(validate(&Value::Null), Ok(nothing.clone()));
    assert_eq!(
        validate(&json!({"timeout": null, "approval_mode": null, "allowed_tools": null})),
        Ok(nothing.clone())
    );
    assert_eq!(
        validate(&json!({"timeout": 0.1, "approval_mode": "yolo", "include_directories": [], "model": 7})),
        Ok(nothing)
    );
    assert_eq!(
        validate(&json!({"zeta": 1, "model": "m", "alpha": null})),
        Ok(vec!["Unknown GeminiCliProvider config keys ignored: ['alpha', 'zeta']".to_owned()])
    );
}
