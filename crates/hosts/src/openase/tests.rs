use super::*;
use alhena_model::{End, Exit, Interpreter, Timestamp};
use serde_json::json;

const AT: &str = "2026-11-15T17:49:10.599Z";

fn lines_of(wire: &[Value], exit: Exit, mode: Mode) -> Vec<Value> {
    let mut interpreter = Interpreter::new();
    let mut events = Vec::new();
    for line in wire {
        let mut line = line.clone();
        line["timestamp"] = json!(AT);
        interpreter.line(line.to_string().as_bytes(), &mut events);
    }
    interpreter.conclude(&End { exit, stderr: String::new(), duration_ms: Some(9) }, &mut events);
    events
        .iter()
        .flat_map(|event| lines(event, mode))
        .map(|line| serde_json::to_value(line).unwrap())
        .collect()
}

/// A line as it should be; the time is the same everywhere.
fn at(mut line: Value) -> Value {
    line["at"] = json!(AT);
    line
}

macro_rules! line {
    ($($fields:tt)+) => { at(json!($($fields)+)) };
}

fn init() -> Value {
    json!({"type": "init", "session_id": "s", "model": "auto"})
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true})
}

fn success() -> Value {
    json!({"type": "result", "status": "success", "stats": {
        "total_tokens": 130, "input_tokens": 100, "output_tokens": 10, "cached": 40, "input": 60, "duration_ms": 5, "tool_calls": 1,
        "models": {"m": {"total_tokens": 130, "input_tokens": 100, "output_tokens": 10, "cached": 40, "input": 60}},
    }})
}

fn usage() -> Value {
    let counts = json!({"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 10, "reasoning_tokens": 20, "total_tokens": 130});
    let mut line =
        json!({"type": "TokenUsageUpdated", "models": {"m": counts}, "derived_fields": ["reasoning_tokens"]});
    line.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
    at(line)
}

// C-33, C-34, C-35, C-39, C-45
#[test]
fn a_chat_is_anchored_streamed_and_completed() {
    let wire = [
        init(),
        json!({"type": "message", "role": "user", "content": "Hello?"}),
        said("Hel"),
        said("lo"),
        success(),
    ];
    let delta = |text: &str| line!({"type": "OutputProduced", "stream": "assistant", "text": text, "snapshot": false});
    assert_eq!(
        lines_of(&wire, Exit::Code(0), Mode::Chat),
        vec![
            line!({"type": "session_anchor", "session_id": "s", "model": "auto"}),
            line!({"type": "user_message", "text": "Hello?"}),
            delta("Hel"),
            delta("lo"),
            usage(),
            line!({"type": "TurnCompleted", "session_id": "s", "text": "Hello", "final_text": "Hello", "duration_ms": 9, "tool_calls": 0, "cli_status": "success", "exit_code": 0,
                       "derived_fields": ["text", "final_text", "duration_ms", "tool_calls"]}),
        ]
    );
}

// C-28, C-29, C-48: a shell command is a request and its output
#[test]
fn a_shell_command_is_a_tool_call_and_a_command_output() {
    let wire = [
        init(),
        json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": {"command": "ls", "description": "look"}}),
        json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": "a.txt"}),
        said("One file."),
        success(),
    ];
    let got = lines_of(&wire, Exit::Code(0), Mode::Chat);
    assert_eq!(
        got[1..4],
        [
            line!({"type": "ToolCallRequested", "tool_id": "1", "tool_name": "run_shell_command", "class": "command",
                      "command": "ls", "arguments": {"command": "ls", "description": "look"}, "derived_fields": ["class", "command"]}),
            line!({"type": "tool_result", "tool_id": "1", "tool_name": "run_shell_command", "class": "command",
                      "status": "success", "output": "a.txt", "derived_fields": ["tool_name", "class"]}),
            line!({"type": "OutputProduced", "stream": "command", "text": "a.txt", "snapshot": true, "tool_id": "1",
                      "command": "ls", "derived": true}),
        ]
    );
}

// C-30, C-31: mutation and diff are derived, whatever the CLI printed
#[test]
fn writes_are_mutations_and_a_diff_is_marked_as_derived() {
    let diff = "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n";
    let wire = [
        init(),
        json!({"type": "tool_use", "tool_name": "replace", "tool_id": "1", "parameters": {"file_path": "a", "old_string": "old", "new_string": "new"}}),
        json!({"type": "tool_use", "tool_name": "write_file", "tool_id": "2", "parameters": {"file_path": "b", "content": "x"}}),
        json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": diff}),
        json!({"type": "tool_result", "tool_id": "2", "status": "success"}),
        said("Done."),
        success(),
    ];
    let got = lines_of(&wire, Exit::Code(0), Mode::Chat);
    let derived: Vec<&Value> = got.iter().filter(|line| line.get("derived").is_some()).collect();
    assert_eq!(
        derived,
        [
            &line!({"type": "file_mutation", "path": "a", "change": "modified", "tool_id": "1", "tool_name": "replace", "verified": false, "derived": true}),
            &line!({"type": "TurnDiffUpdated", "path": "a", "diff": diff, "tool_id": "1", "derived": true}),
            &line!({"type": "file_mutation", "path": "b", "change": "created", "tool_id": "2", "tool_name": "write_file", "verified": false, "derived": true}),
        ]
    );
}

// C-25, C-27, C-36, C-37, C-48: web tools and unknown ones are tool cards, not command cards
#[test]
fn other_tools_are_cards_with_their_class() {
    let wire = [
        init(),
        json!({"type": "tool_use", "tool_name": "web_fetch", "tool_id": "1", "parameters": {"prompt": "x", "command": "not one"}}),
        json!({"type": "tool_use", "tool_name": "run_shell_commands", "tool_id": "2", "parameters": {}}),
        json!({"type": "tool_result", "tool_id": "2", "status": "error", "output": "Tool not found", "error": {"type": "tool_not_registered", "message": "Tool not found"}}),
        json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": "Fetched"}),
        success(),
    ];
    let got = lines_of(&wire, Exit::Code(0), Mode::Chat);
    assert_eq!(
        got[1..4],
        [
            line!({"type": "ToolCallRequested", "tool_id": "1", "tool_name": "web_fetch", "class": "search_fetch", "arguments": {"prompt": "x", "command": "not one"}, "derived_fields": ["class"]}),
            line!({"type": "ToolCallRequested", "tool_id": "2", "tool_name": "run_shell_commands", "class": "unknown", "arguments": {}, "derived_fields": ["class"]}),
            line!({"type": "tool_result", "tool_id": "2", "tool_name": "run_shell_commands", "class": "unknown", "status": "error",
                      "output": "Tool not found", "error": {"type": "tool_not_registered", "message": "Tool not found"}, "derived_fields": ["tool_name", "class"]}),
        ]
    );
    assert!(got.iter().all(|line| line["stream"] != "command"));
}

// C-38, C-46: warnings do not end anything
#[test]
fn warnings_and_errors_are_traces() {
    let wire = [
        init(),
        json!({"type": "error", "severity": "warning", "message": "Loop detected"}),
        said("Still here"),
        json!({"type": "surprise"}),
        success(),
    ];
    let got = lines_of(&wire, Exit::Code(0), Mode::Chat);
    assert_eq!(got[1], line!({"type": "trace", "severity": "warning", "message": "Loop detected"}));
    assert_eq!(
        got[3],
        at(json!({"type": "trace", "severity": "warning", "derived": true,
                  "message": format!("an event of an unknown type: {{\"type\":\"surprise\",\"timestamp\":\"{AT}\"}}")}))
    );
    assert_eq!(got.last().unwrap()["type"], "TurnCompleted");
}

// C-09: an `error` event does not end a turn; Alhena's own verdict stands beside the CLI's
#[test]
fn an_error_event_before_a_success_does_not_fail_the_turn() {
    let error = json!({"type": "error", "severity": "error", "message": "Something broke"});
    let wire = [init(), error.clone(), said("Still here"), success()];
    let got = lines_of(&wire, Exit::Code(0), Mode::Chat);
    assert_eq!(got[1], line!({"type": "trace", "severity": "error", "message": "Something broke"}));
    let last = got.last().unwrap();
    assert_eq!((&last["type"], &last["text"]), (&json!("TurnCompleted"), &json!("Still here")));
    assert_eq!((last.get("derived"), &last["cli_status"]), (None, &json!("success")));
    let failure = &last["failure"];
    assert_eq!(
        (&failure["kind"], &failure["message"]),
        (&json!("invalid_response"), &json!("Something broke"))
    );
    assert!(last["derived_fields"].as_array().unwrap().contains(&json!("failure")));
    // What else is wrong fails the turn: no answer, another exit code, an error as the result, no result.
    let failed = [
        (vec![init(), error.clone(), success()], Exit::Code(0)),
        (wire.to_vec(), Exit::Code(3)),
        (
            vec![init(), error.clone(), said("Hi"), json!({"type": "result", "status": "error"})],
            Exit::Code(0),
        ),
        (vec![init(), error, said("Hi")], Exit::Code(0)),
    ];
    for (wire, exit) in failed {
        assert_eq!(lines_of(&wire, exit, Mode::Ticket).last().unwrap()["type"], "TurnFailed", "{wire:?}");
    }
}

// C-31: any tool can print a diff
#[test]
fn a_diff_that_any_tool_prints_is_a_derived_diff_of_each_file() {
    let one = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";
    let two = "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-old\n+new\n";
    let printed = format!("diff --git a/x b/x\n{one}diff --git a/y b/y\n{two}");
    for (tool, parameters) in [
        ("run_shell_command", json!({"command": "git diff"})),
        ("mcp_git_diff", json!({})),
        ("invented", json!({})),
    ] {
        let wire = [
            init(),
            json!({"type": "tool_use", "tool_name": tool, "tool_id": "1", "parameters": parameters}),
            json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": printed}),
            said("Two files."),
            success(),
        ];
        let got = lines_of(&wire, Exit::Code(0), Mode::Ticket);
        let diffs: Vec<&Value> = got.iter().filter(|line| line["type"] == "TurnDiffUpdated").collect();
        let updated = |path: &str, diff: &str| line!({"type": "TurnDiffUpdated", "path": path, "diff": diff, "tool_id": "1", "derived": true});
        assert_eq!(diffs, [&updated("x", one), &updated("y", two)], "{tool}");
    }
}

// C-39: failure
#[test]
fn a_failed_turn_says_what_and_why() {
    let reported = json!({"type": "unknown", "message": "[API Error: {\"error\":{\"code\":429,\"message\":\"Slow down.\",\"details\":[{\"retryDelay\":\"2s\"}]}}]"});
    let wire = [init(), json!({"type": "result", "status": "error", "error": reported})];
    let got = lines_of(&wire, Exit::Code(173), Mode::Ticket);
    assert_eq!(
        got,
        [line!({"type": "TurnFailed", "session_id": "s", "kind": "rate_limited", "message": "Slow down.",
                   "hint": "Wait 2 s and run again, or use another model or key; `on_rate_limit` can do both.", "cli_status": "error", "cli_error": reported, "exit_code": 173, "http_status": 429,
                   "retry_after_ms": 2000, "text": "", "duration_ms": 9,
                   "derived_fields": ["kind", "message", "hint", "http_status", "retry_after_ms", "text", "duration_ms"]})]
    );
    // Nobody said it: the process just ended.
    let got = lines_of(&[init(), said("half")], Exit::Code(0), Mode::Ticket);
    let last = got.last().unwrap();
    assert_eq!(
        (&last["type"], &last["kind"], &last["derived"], &last["text"]),
        (&json!("TurnFailed"), &json!("crashed"), &json!(true), &json!("half"))
    );
}

// C-16, C-17: a verdict that the CLI did not give is marked, with the CLI's own word beside it
#[test]
fn a_corrected_status_is_derived_and_stands_beside_the_clis_own_word() {
    let error = json!({"type": "result", "status": "error"});
    let exits = [Exit::Code(0), Exit::Code(3), Exit::Signal(9), Exit::Unknown];
    let judged = |last: Option<Value>, exit: Exit| {
        let wire: Vec<Value> = [init(), said("Hi")].into_iter().chain(last).collect();
        let line = lines_of(&wire, exit, Mode::Ticket).pop().unwrap();
        let field = |name: &str| line.get(name).cloned().unwrap_or_default();
        (field("type"), field("derived"), field("cli_status"), field("exit_code"))
    };
    let (completed, failed) = (json!("TurnCompleted"), json!("TurnFailed"));
    let (yes, none) = (json!(true), Value::Null);
    let (good, bad) = (json!("success"), json!("error"));
    let codes = [json!(0), json!(3), none.clone(), none.clone()];
    assert_eq!(
        exits.map(|exit| judged(Some(success()), exit)),
        [
            (completed.clone(), none.clone(), good.clone(), json!(0)),
            (failed.clone(), yes.clone(), good.clone(), json!(3)),
            (failed.clone(), yes.clone(), good.clone(), none.clone()),
            (completed, none.clone(), good, none.clone()),
        ]
    );
    let told = codes.clone().map(|code| (failed.clone(), none.clone(), bad.clone(), code));
    assert_eq!(exits.map(|exit| judged(Some(error.clone()), exit)), told);
    let silent = codes.map(|code| (failed.clone(), yes.clone(), none.clone(), code));
    assert_eq!(exits.map(|exit| judged(None, exit)), silent);
}

// C-40, C-41, C-19
#[test]
fn a_ticket_gets_the_six_types_and_no_other() {
    let wire = [
        init(),
        json!({"type": "message", "role": "user", "content": "Go"}),
        said("Working"),
        json!({"type": "tool_use", "tool_name": "replace", "tool_id": "1", "parameters": {"file_path": "a", "old_string": "x"}}),
        json!({"type": "tool_use", "tool_name": "write_todos", "tool_id": "2", "parameters": {"todos": []}}),
        json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}),
        json!({"type": "tool_result", "tool_id": "2", "status": "success"}),
        json!({"type": "error", "severity": "warning", "message": "w"}),
        said("Done"),
        success(),
    ];
    let kinds: Vec<String> = lines_of(&wire, Exit::Code(0), Mode::Ticket)
        .iter()
        .map(|line| line["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "OutputProduced",
            "ToolCallRequested",
            "ToolCallRequested",
            "TurnDiffUpdated",
            "OutputProduced",
            "TokenUsageUpdated",
            "TurnCompleted"
        ]
    );
}

// C-44: only the session file knows of a cancelled call
#[test]
fn a_cancelled_tool_is_cancelled_where_that_is_known() {
    let event = |cancelled| Event {
        seq: 0,
        at: Timestamp::parse(AT).unwrap(),
        source: Source::Session,
        kind: EventKind::ToolResult {
            id: "1".into(),
            name: "glob".into(),
            ok: cancelled != Some(true),
            output: None,
            error: None,
            exit_code: None,
            cancelled,
        },
    };
    let status =
        |cancelled| serde_json::to_value(&lines(&event(cancelled), Mode::Chat)[0]).unwrap()["status"].clone();
    assert_eq!(
        (status(Some(true)), status(None), status(Some(false))),
        (json!("cancelled"), json!("success"), json!("success"))
    );
}
