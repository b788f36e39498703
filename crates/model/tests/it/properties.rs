//! Whatever comes, the interpreter gives a sound outcome.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use alhena_model::{End, Event, EventKind, Exit, Input, Interpreter, Outcome, Status, Stop};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A line that the CLI could write, if anything were possible.
fn line() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![Just(String::new()), "[ -~\\n]{0,20}", ".{0,20}"];
    let id = || prop_oneof![Just("a"), Just("b"), Just("c")];
    let tool = prop_oneof![
        Just("run_shell_command"),
        Just("write_file"),
        Just("replace"),
        Just("read_file"),
        Just("mcp_x_y"),
        Just("")
    ];
    let status = || prop_oneof![Just("success"), Just("error"), Just("strange")];
    let error = prop_oneof![
        Just("tool_not_registered"),
        Just("policy_violation"),
        Just("stop_execution"),
        Just("FatalTurnLimitedError"),
        Just("unknown")
    ];
    let tokens = prop_oneof![Just(json!(0)), Just(json!(100)), Just(json!(u64::MAX)), Just(json!(-1.5))];
    prop_oneof![
        (text(), text()).prop_map(|(id, model)| json!({"type": "init", "session_id": id, "model": model})),
        (prop_oneof![Just("user"), Just("assistant"), Just("other")], text()).prop_map(
            |(role, content)| json!({"type": "message", "role": role, "content": content, "delta": true})
        ),
        (tool, id(), text()).prop_map(|(name, id, text)| json!({"type": "tool_use", "tool_name": name,
            "tool_id": id, "parameters": {"command": text, "file_path": text, "old_string": text}})),
        (id(), status(), text())
            .prop_map(|(id, status, output)| json!({"type": "tool_result", "tool_id": id,
            "status": status, "output": output})),
        (id(), error, text()).prop_map(|(id, kind, message)| json!({"type": "tool_result", "tool_id": id,
            "status": "error", "error": {"type": kind, "message": message}})),
        (prop_oneof![Just("warning"), Just("error")], text()).prop_map(
            |(severity, message)| json!({"type": "error", "severity": severity, "message": message})
        ),
        (status(), tokens, text()).prop_map(|(status, tokens, time)| json!({"type": "result",
            "timestamp": time, "status": status, "stats": {"total_tokens": tokens, "input_tokens": tokens,
            "models": {"m": {"total_tokens": tokens}}}})),
        Just(json!({"type": "result", "status": "success"})),
        Just(json!({"type": "message", "role": "assistant", "content": "Hello", "delta": true})),
        Just(json!({"type": "news"})),
        Just(json!([1, 2])),
    ]
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        4 => Just(Exit::Code(0)),
        1 => any::<i32>().prop_map(Exit::Code),
        1 => (0..256).prop_map(Exit::Code),
        1 => any::<i32>().prop_map(Exit::Signal),
        1 => Just(Exit::Unknown),
    ]
}

fn stop() -> impl Strategy<Value = Stop> {
    prop_oneof![
        any::<Duration>().prop_map(Stop::Timeout),
        any::<Duration>().prop_map(Stop::NoFirstEvent),
        any::<Duration>().prop_map(Stop::Silence),
        Just(Stop::Cancelled),
        any::<u64>().prop_map(Stop::TooMuchOutput),
        Just(Stop::NoExit),
        Just(Stop::RateLimit { retry_after_ms: Some(2000) }),
    ]
}

/// Nothing that must hold may depend on what was fed.
fn check(events: &[Event], outcome: &Arc<Outcome>, end: &End) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.seq, index as u64);
        let finished = matches!(event.kind, EventKind::Finished { .. });
        assert_eq!(finished, index + 1 == events.len(), "the last event, and only it, is the end");
    }
    assert_eq!(
        events.last().map(|event| &event.kind),
        Some(&EventKind::Finished { outcome: outcome.clone() })
    );
    assert_eq!(outcome.status == Status::Success, outcome.failure.is_none());
    assert_eq!(outcome.exit_status() == 0, outcome.is_success());
    let malformed = events.iter().filter(|event| matches!(event.kind, EventKind::Malformed { .. })).count();
    assert_eq!(outcome.malformed.lines, malformed as u64);
    if let Some(failure) = &outcome.failure {
        assert!(!failure.hint.is_empty());
        assert_eq!(failure.exit_code, outcome.exit_code);
    }
    if outcome.is_success() {
        assert!(matches!(end.exit, Exit::Code(0) | Exit::Unknown));
    }
    let json = serde_json::to_string(events).unwrap();
    let read: Vec<Event> = serde_json::from_str(&json).unwrap();
    assert_eq!(read.len(), events.len());
    assert!(outcome.text.all().ends_with(outcome.text.last()));
}

proptest! {
    #[test]
    fn any_sequence_of_events_gives_a_sound_outcome(
        lines in prop::collection::vec(line(), 0..30),
        exit in exit(),
        stderr in prop_oneof![".{0,200}", Just("Error when talking to Gemini API\n  status: 429\n}\n".to_owned())],
        duration_ms in any::<Option<u64>>(),
    ) {
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        for line in &lines {
            interpreter.line(line.to_string().as_bytes(), &mut out);
        }
        let had_result = interpreter.has_result();
        let end = End { exit, stderr, duration_ms };
        let outcome = interpreter.conclude(&end, &mut out);
        check(&out, &outcome, &end);
        if outcome.is_success() {
            // The five conditions, seen from outside.
            let first = lines.iter().find(|line| line["type"] == "result").unwrap();
            let spoke = lines.iter().any(|line| {
                line["type"] == "tool_result"
                    || line["role"] != "user" && line["content"].as_str().is_some_and(|text| !text.trim().is_empty())
            });
            let complained = lines.iter().any(|line| line["type"] == "error" && line["severity"] == "error");
            prop_assert!(had_result && first["status"] == "success" && spoke && !complained);
        }
    }

    #[test]
    fn a_stop_before_the_result_is_never_a_success(
        lines in prop::collection::vec(line(), 0..20),
        later in prop::collection::vec(line(), 0..20),
        stops in prop::collection::vec(stop(), 1..3),
        exit in exit(),
    ) {
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        for line in &lines {
            interpreter.line(line.to_string().as_bytes(), &mut out);
        }
        let before = !interpreter.has_result();
        for stop in &stops {
            interpreter.feed(Input::Stop(*stop), &mut out);
        }
        for line in &later {
            interpreter.line(line.to_string().as_bytes(), &mut out);
        }
        let end = End { exit, stderr: String::new(), duration_ms: None };
        let outcome = interpreter.conclude(&end, &mut out);
        prop_assert!(!(before && outcome.is_success()));
        let status = match stops[0] {
            Stop::Timeout(_) => Status::Timeout,
            Stop::NoFirstEvent(_) | Stop::Silence(_) => Status::Stalled,
            Stop::Cancelled => Status::Cancelled,
            Stop::TooMuchOutput(_)
            | Stop::TooMuchStderr(_)
            | Stop::NoExit
            | Stop::RateLimit { .. } => Status::Failed,
        };
        prop_assert!(!before || outcome.status == status);
    }

    #[test]
    fn any_bytes_give_a_sound_outcome(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(b'"')], 0..2000),
        stderr in prop::collection::vec(any::<u8>(), 0..500),
        exit in exit(),
    ) {
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        crate::common::feed(&mut interpreter, &bytes, &mut out);
        let end = End { exit, stderr: String::from_utf8_lossy(&stderr).into_owned(), duration_ms: None };
        let outcome = interpreter.conclude(&end, &mut out);
        check(&out, &outcome, &end);
        prop_assert!(!outcome.is_success());
    }

    // A recording that breaks off anywhere, or is damaged, is no success.
    #[test]
    fn a_recording_cut_anywhere_is_no_success(cut in 0.0..1.0f64, flip in any::<prop::sample::Index>()) {
        static RECORDING: LazyLock<crate::common::Recording> = LazyLock::new(|| crate::common::Recording::get("06_new_with_id"));
        let (recording, whole) = (&*RECORDING, &RECORDING.stdout);
        let kept = &whole[..(whole.len() as f64 * cut) as usize];
        let judge = |bytes: &[u8]| {
            let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
            crate::common::feed(&mut interpreter, bytes, &mut out);
            let end = End { exit: Exit::Code(0), stderr: recording.stderr.clone(), duration_ms: None };
            let outcome = interpreter.conclude(&end, &mut out);
            check(&out, &outcome, &end);
            outcome
        };
        // All but the last newline is needed.
        prop_assert!(kept.len() + 1 >= whole.len() || !judge(kept).is_success());
        let mut damaged = whole.clone();
        let at = flip.index(damaged.len());
        damaged[at] ^= 0x55;
        judge(&damaged);
    }

    #[test]
    fn any_report_gives_a_sound_outcome(
        noise in ".{0,50}",
        response in any::<Option<String>>(),
        warnings in prop::collection::vec(".{0,30}", 0..3),
        error in prop::option::of((".{0,20}", ".{0,40}", prop_oneof![any::<i64>().prop_map(Value::from), ".{0,9}".prop_map(Value::from)])),
        exit in exit(),
    ) {
        let error = error.map(|(kind, message, code)| json!({"type": kind, "message": message, "code": code}));
        let report = json!({"session_id": "s", "response": response, "warnings": warnings, "error": error, "stats": {}});
        let bytes = format!("{noise}\n[ERROR] {report:#}\n{noise}");
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        if let Some(found) = alhena_wire::report::find_report(bytes.as_bytes()) {
            interpreter.feed(Input::Report(Box::new(found.report)), &mut out);
        }
        let end = End { exit, stderr: noise, duration_ms: None };
        let outcome = interpreter.conclude(&end, &mut out);
        check(&out, &outcome, &end);
        if error.is_some() {
            prop_assert!(!outcome.is_success());
        }
    }
}
