//! Each kind of stream-json line, field by field (C-02 to C-14, C-47).

use std::borrow::Cow;

use alhena_wire::stream::{
    ErrorEvent, ErrorInfo, Init, LineError, Message, ModelStats, ResultEvent, Role, Severity, Status,
    StreamEvent, StreamStats, ToolResult, ToolUse, Unknown, parse_line,
};
use alhena_wire::{Count, Named, Raw};
use serde_json::{Value, json};

fn parse(line: &str) -> StreamEvent<'_> {
    let event = parse_line(line.as_bytes()).unwrap();
    assert_eq!(event.clone().into_owned(), event);
    event
}

fn raw(text: &str) -> Raw<'_> {
    Raw::from_text(text).unwrap()
}

fn count(number: u64) -> Option<Count> {
    Some(Count::Whole(number))
}

const AT: &str = "2026-11-15T17:49:10.599Z";

#[test]
fn each_kind_of_line_is_parsed_field_by_field() {
    // C-02 to C-13, C-47
    let at = || Some(AT.into());
    let result = |id: &'static str, status, output: Option<&'static str>, error| {
        let output = output.map(Cow::from);
        StreamEvent::ToolResult(ToolResult { timestamp: at(), tool_id: id.into(), status, output, error })
    };
    let error = |kind: &'static str, message: &'static str| {
        Some(Box::new(ErrorInfo { kind: Some(kind.into()), message: message.into() }))
    };
    let end =
        |status, error, stats| StreamEvent::Result(ResultEvent { timestamp: at(), status, error, stats });
    let message = |role, content: &'static str, delta| {
        StreamEvent::Message(Message { timestamp: at(), role, content: content.into(), delta })
    };
    let model = |total, input_tokens, output, cached, input| ModelStats {
        total_tokens: count(total),
        input_tokens: count(input_tokens),
        output_tokens: count(output),
        cached: count(cached),
        input: count(input),
    };
    let stats = StreamStats {
        total_tokens: count(124),
        input_tokens: count(100),
        output_tokens: count(4),
        cached: count(60),
        input: count(40),
        duration_ms: count(164),
        tool_calls: count(2),
        models: Some(Named(vec![
            ("gemini-3.8-flash".into(), model(120, 96, 4, 60, 36)),
            ("gemini-3.5-flash-lite".into(), model(4, 4, 0, 0, 4)),
        ])),
    };
    // 0.11 wrote five of them.
    let few = StreamStats {
        total_tokens: count(105),
        input_tokens: count(100),
        output_tokens: count(5),
        duration_ms: count(164),
        tool_calls: count(0),
        ..StreamStats::default()
    };
    for (kind, fields, expected) in [
        (
            "init",
            r#""session_id":"a1990dbd","model":"auto""#,
            StreamEvent::Init(Init { timestamp: at(), session_id: "a1990dbd".into(), model: "auto".into() }),
        ),
        // The prompt has no delta; a chunk of the answer is one.
        ("message", r#""role":"user","content":"Say hi""#, message(Role::User, "Say hi", None)),
        (
            "message",
            r#""role":"assistant","content":"Hel","delta":true"#,
            message(Role::Assistant, "Hel", Some(true)),
        ),
        (
            "tool_use",
            r#""tool_name":"write_file","tool_id":"write_file__1","parameters":{"file_path":"a.txt", "content":"x\n"}"#,
            StreamEvent::ToolUse(ToolUse {
                timestamp: at(),
                tool_name: "write_file".into(),
                tool_id: "write_file__1".into(),
                parameters: raw(r#"{"file_path":"a.txt", "content":"x\n"}"#),
            }),
        ),
        (
            "tool_result",
            r#""tool_id":"glob__1","status":"success","output":"Found 1 matching file(s)""#,
            result("glob__1", Status::Success, Some("Found 1 matching file(s)"), None),
        ),
        // Most tools have no output.
        (
            "tool_result",
            r#""tool_id":"replace__1","status":"success""#,
            result("replace__1", Status::Success, None, None),
        ),
        (
            "tool_result",
            r#""tool_id":"x","status":"error","output":"No file.","error":{"type":"file_not_found","message":"No file: a"}"#,
            result("x", Status::Error, Some("No file."), error("file_not_found", "No file: a")),
        ),
        (
            "error",
            r#""severity":"warning","message":"Loop detected, stopping execution""#,
            StreamEvent::Error(ErrorEvent {
                timestamp: at(),
                severity: Severity::Warning,
                message: "Loop detected, stopping execution".into(),
            }),
        ),
        (
            "result",
            r#""status":"success","stats":{"total_tokens":124,"input_tokens":100,"output_tokens":4,"cached":60,"input":40,"duration_ms":164,"tool_calls":2,"models":{"gemini-3.8-flash":{"total_tokens":120,"input_tokens":96,"output_tokens":4,"cached":60,"input":36},"gemini-3.5-flash-lite":{"total_tokens":4,"input_tokens":4,"output_tokens":0,"cached":0,"input":4}}}"#,
            end(Status::Success, None, Some(Box::new(stats))),
        ),
        (
            "result",
            r#""status":"success","stats":{"total_tokens":105,"input_tokens":100,"output_tokens":5,"duration_ms":164,"tool_calls":0}"#,
            end(Status::Success, None, Some(Box::new(few))),
        ),
        (
            "result",
            r#""status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns"}"#,
            end(Status::Error, error("FatalTurnLimitedError", "Reached max session turns"), None),
        ),
        // An invalid model stream ends like this.
        ("result", r#""status":"error""#, end(Status::Error, None, None)),
    ] {
        let line = format!(r#"{{"type":"{kind}","timestamp":"{AT}",{fields}}}"#);
        let event = parse(&line);
        assert_eq!((event.kind(), event.timestamp()), (Some(kind), Some(AT)), "{line}");
        assert_eq!(event, expected);
    }
}

#[test]
fn unknown_type_is_kept_whole() {
    let line = r#"{"type":"thought", "subject":"plan"}"#;
    assert_eq!(parse(line), StreamEvent::Unknown(Unknown { kind: Some("thought".into()), raw: raw(line) }));
    assert_eq!(parse(line).kind(), Some("thought"));
    assert_eq!(parse(line).timestamp(), None);
}

#[test]
fn object_without_a_usable_type_is_unknown() {
    for line in [
        "{}",
        r#"{"a":1}"#,
        r#"{"type":null}"#,
        r#"{"type":[{"b":[]}]}"#,
        r#"{"type":{"a":2}}"#,
        r#"{"type":7}"#,
    ] {
        assert_eq!(parse(line), StreamEvent::Unknown(Unknown { kind: None, raw: raw(line) }), "{line}");
    }
}

#[test]
fn unknown_fields_are_skipped_and_null_is_nothing() {
    for (line, plain) in [
        (
            r#"{"type":"init","new":{"b":[1,2]},"session_id":"s","model":"m","again":1.50}"#,
            r#"{"type":"init","session_id":"s","model":"m"}"#,
        ),
        (
            r#"{"type":"tool_result","tool_id":"i","status":"error","error":{"type":"t","message":"m","code":3},"n":[]}"#,
            r#"{"type":"tool_result","tool_id":"i","status":"error","error":{"type":"t","message":"m"}}"#,
        ),
        (
            r#"{"type":"result","status":"success","stats":{"x":1,"models":{"m":{"y":{}}}}}"#,
            r#"{"type":"result","status":"success","stats":{"models":{"m":{}}}}"#,
        ),
        (
            r#"{"type":"tool_result","timestamp":null,"tool_id":"i","status":"success","output":null,"error":null}"#,
            r#"{"type":"tool_result","tool_id":"i","status":"success"}"#,
        ),
        (r#"{"type":"result","status":"success","stats":null}"#, r#"{"type":"result","status":"success"}"#),
    ] {
        assert_eq!(parse(line), parse(plain), "{line}");
    }
}

#[test]
fn words_outside_the_known_set_survive() {
    let StreamEvent::Message(message) = parse(r#"{"type":"message","role":"system","content":""}"#) else {
        panic!("not a message")
    };
    assert_eq!((message.role.as_str(), &message.role), ("system", &Role::Other("system".into())));
    let StreamEvent::Result(result) = parse(r#"{"type":"result","status":"cancelled"}"#) else {
        panic!("not a result")
    };
    assert_eq!(result.status, Status::Other("cancelled".into()));
    let StreamEvent::Error(error) = parse(r#"{"type":"error","severity":"fatal","message":""}"#) else {
        panic!("not an error")
    };
    assert_eq!(error.severity, Severity::Other("fatal".into()));
}

#[test]
fn last_word_counts_when_a_field_is_written_twice() {
    for (twice, once) in [
        (
            r#"{"type":"tool_result","tool_id":"a","tool_id":"b","status":"success","output":null,"output":"x","n":1,"n":2}"#,
            r#"{"type":"tool_result","tool_id":"b","status":"success","output":"x"}"#,
        ),
        (
            r#"{"type":"tool_result","tool_id":"a","status":"success","output":"x","output":null}"#,
            r#"{"type":"tool_result","tool_id":"a","status":"success"}"#,
        ),
    ] {
        assert_eq!(parse(twice), parse(once), "{twice}");
    }
}

#[test]
fn odd_numbers_cost_nothing_but_themselves() {
    let line = r#"{"type":"result","status":"success","stats":{"total_tokens":-5,"input_tokens":1.5,"duration_ms":18446744073709551615,"tool_calls":1e300,"models":{"m":{"cached":2.0}}}}"#;
    let StreamEvent::Result(ResultEvent { stats: Some(stats), .. }) = parse(line) else { panic!("no stats") };
    assert_eq!(stats.total_tokens, Some(Count::Other(-5.0)));
    assert_eq!(stats.input_tokens, Some(Count::Other(1.5)));
    assert_eq!(stats.total_tokens.map(Count::get), Some(0));
    assert_eq!(stats.input_tokens.map(Count::get), Some(2));
    assert_eq!(stats.models.as_ref().and_then(|models| models.get("m")?.cached), Some(Count::from(2)));
    assert_eq!(stats.duration_ms.map(Count::get), Some(u64::MAX));
    assert_eq!(stats.tool_calls.map(Count::get), Some(u64::MAX));
}

#[test]
fn order_of_keys_does_not_matter() {
    let first = parse(r#"{"type":"message","role":"assistant","content":"x","delta":true}"#);
    for line in [
        r#"{"delta":true,"content":"x","role":"assistant","type":"message"}"#,
        r#" { "role" : "assistant" , "type" : "message" , "content" : "x" , "delta" : true } "#,
        r#"{"\u0074ype":"mess\u0061ge","role":"\u0061ssistant","content":"x","delta":true}"#,
        r#"{"type":"other","type":"message","role":"assistant","content":"x","delta":true}"#,
    ] {
        assert_eq!(parse(line), first, "{line}");
    }
}

#[test]
fn plain_strings_are_borrowed_from_the_line() {
    let StreamEvent::Message(message) = parse(r#"{"type":"message","role":"user","content":"plain é 日本"}"#)
    else {
        panic!("not a message")
    };
    assert!(matches!(message.content, Cow::Borrowed("plain é 日本")));
    let StreamEvent::ToolResult(result) =
        parse(r#"{"type":"tool_result","tool_id":"i","status":"error","output":"o"}"#)
    else {
        panic!("not a tool result")
    };
    assert!(matches!(result.output, Some(Cow::Borrowed("o"))));
}

#[test]
fn escapes_are_decoded() {
    let content = |line: &str| match parse(line) {
        StreamEvent::Message(message) => message.content.into_owned(),
        other => panic!("{other:?}"),
    };
    let line = r#"{"type":"message","role":"user","content":"\"\\\/\b\f\n\r\t\u00e9\ud83c\udf0d🌍\u2028"}"#;
    assert_eq!(content(line), "\"\\/\u{8}\u{c}\n\r\té🌍🌍\u{2028}");
}

#[test]
fn lone_surrogates_are_replaced_not_rejected() {
    // JSON.stringify("\ud800") is "\\ud800" since Node 12.
    let cases = [
        (r"a\ud800b", "a\u{fffd}b"),
        (r"\udc00", "\u{fffd}"),
        (r"\ud83c\ud83c\udf0d", "\u{fffd}🌍"),
        (r"\ud83c", "\u{fffd}"),
        (r"\\ud83c \ud83c\n", "\\ud83c \u{fffd}\n"),
        (r"\ud83c\\udf0d \udf0d", "\u{fffd}\\udf0d \u{fffd}"),
        (r"\uD83C x \uDF0D \uD83C\uDF0D", "\u{fffd} x \u{fffd} 🌍"),
    ];
    for (written, read) in cases {
        let line = format!(r#"{{"type":"message","role":"assistant","content":"{written}","delta":true}}"#);
        let message =
            Message { timestamp: None, role: Role::Assistant, content: read.into(), delta: Some(true) };
        assert_eq!(parse(&line), StreamEvent::Message(message), "{written}");
    }
}

#[test]
fn lone_surrogates_in_raw_values_stay_as_written() {
    let line = r#"{"type":"tool_use","tool_name":"t","tool_id":"i","parameters":{"text":"\ud800"}}"#;
    let StreamEvent::ToolUse(tool) = parse(line) else { panic!("not a tool use") };
    assert_eq!(tool.parameters.get(), r#"{"text":"\ud800"}"#);
    assert_eq!(tool.parameters.decode::<Value>().unwrap(), json!({"text": "\u{fffd}"}));
    let line = r#"{"type":"new","text":"\ud800"}"#;
    assert_eq!(parse(line), StreamEvent::Unknown(Unknown { kind: Some("new".into()), raw: raw(line) }));
    let odd = r#"{"type":"\ud800"}"#;
    assert_eq!(parse(odd), StreamEvent::Unknown(Unknown { kind: Some("\u{fffd}".into()), raw: raw(odd) }));
}

#[test]
fn what_is_not_an_event_says_why() {
    let error = |line: &[u8]| parse_line(line).unwrap_err();
    assert_eq!(error(b"\xff\xfe"), LineError::NotUtf8);
    for stray in [
        "",
        "Loading...",
        "[STARTUP] Phase 'cleanup_ops' was started",
        "123 files",
        "\"a\" b",
        "{",
        "{\"type\":",
        "{} x",
    ] {
        assert_eq!(error(stray.as_bytes()), LineError::NotJson, "{stray}");
    }
    for other in ["[1]", "1", "\"text\"", "null", "true", " [ ] "] {
        assert_eq!(error(other.as_bytes()), LineError::NotAnObject, "{other}");
    }
    assert_eq!(error(br#"{"type":"init","session_id":5 garbage"#), LineError::NotJson);
    assert_eq!(error(br#"{"type":"message","role":"user","content":"\ud800\x"}"#), LineError::NotJson);
}

#[test]
fn known_type_with_a_wrong_field_is_an_error() {
    for line in [
        r#"{"type":"init"}"#,
        r#"{"type":"init","session_id":null,"model":"m"}"#,
        r#"{"type":"init","session_id":5,"model":"m"}"#,
        r#"{"type":"message","role":"user","content":["x"]}"#,
        r#"{"type":"message","role":{},"content":"x"}"#,
        r#"{"type":"message","role":"user","content":"\ud800","delta":"yes"}"#,
        r#"{"role":"user","type":"message"}"#,
        r#"{"type":"tool_use","tool_name":"t","tool_id":"i"}"#,
        r#"{"type":"tool_result","tool_id":"i","status":"error","error":"no"}"#,
        r#"{"type":"result","status":"success","stats":[]}"#,
        r#"{"type":"result","status":"success","stats":{"models":[]}}"#,
        r#"{"type":"result","status":"success","stats":{"total_tokens":"5"}}"#,
    ] {
        let error = parse_line(line.as_bytes()).unwrap_err();
        assert!(matches!(error, LineError::WrongShape { .. }), "{line}: {error:?}");
    }
}

#[test]
fn errors_are_told_to_people() {
    let text = |line: &[u8]| parse_line(line).unwrap_err().to_string();
    assert_eq!(text(b"\xff"), "the line is not UTF-8");
    assert_eq!(text(b"x"), "the line is not JSON");
    assert_eq!(text(b"1"), "the line is JSON, but not an object");
    assert_eq!(
        text(br#"{"type":"init"}"#),
        "the event has an unexpected shape: missing field `session_id` at line 1 column 15"
    );
}

#[test]
fn deep_nesting_is_carried_not_followed() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let line = format!(r#"{{"type":"tool_use","tool_name":"t","tool_id":"i","parameters":{deep}}}"#);
    let StreamEvent::ToolUse(tool) = parse(&line) else { panic!("not a tool use") };
    assert_eq!(tool.parameters.get(), deep);
    assert!(tool.parameters.decode::<Value>().is_err());
    assert!(matches!(parse(&format!(r#"{{"type":"x","y":{deep}}}"#)), StreamEvent::Unknown(_)));
    assert_eq!(parse_line(deep.as_bytes()), Err(LineError::NotAnObject));
}
