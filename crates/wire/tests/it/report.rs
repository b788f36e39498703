//! The json report: its fields, and finding it among noise.

use alhena_wire::report::{Report, ReportError, TokenMetrics, find_error_report, find_report};
use alhena_wire::{Count, Raw};

fn count(number: u64) -> Option<Count> {
    Some(Count::Whole(number))
}

fn error<'a>(session: &'a str, kind: &'a str, message: &'a str, code: &'a str) -> Report<'a> {
    Report {
        session_id: Some(session.into()),
        error: Some(ReportError {
            kind: Some(kind.into()),
            message: Some(message.into()),
            code: Raw::from_text(code),
        }),
        ..Report::default()
    }
}

fn response(text: &str) -> Report<'_> {
    Report { response: Some(text.into()), ..Report::default() }
}

const FULL: &str = r#"{
  "session_id": "s",
  "response": "Final answer.",
  "stats": {
    "models": {
      "gemini-2.5-flash": {
        "api": {"totalRequests": 3, "totalErrors": 1, "totalLatencyMs": 1191, "errorsByType": {"ApiError": 1}},
        "tokens": {"input": 80, "prompt": 100, "candidates": 20, "total": 127, "cached": 20, "thoughts": 7, "tool": 0},
        "roles": {
          "main": {
            "totalRequests": 3, "totalErrors": 1, "totalLatencyMs": 1191,
            "tokens": {"input": 80, "prompt": 100, "candidates": 20, "total": 127, "cached": 20, "thoughts": 7, "tool": 0}
          }
        }
      }
    },
    "tools": {
      "totalCalls": 2, "totalSuccess": 1, "totalFail": 1, "totalDurationMs": 12,
      "totalDecisions": {"accept": 0, "reject": 0, "modify": 0, "auto_accept": 2},
      "byName": {
        "read_file": {"count": 2, "success": 1, "fail": 1, "durationMs": 12,
          "decisions": {"accept": 0, "reject": 0, "modify": 0, "auto_accept": 2}}
      }
    },
    "files": {"totalLinesAdded": 4, "totalLinesRemoved": 1}
  },
  "warnings": ["Loop detected, stopping execution"]
}"#;

#[test]
fn every_metric_that_is_used_has_its_field() {
    let found = find_report(FULL.as_bytes()).unwrap();
    assert_eq!(found.skipped_bytes, 0);
    assert_eq!(found.report.clone().into_owned(), found.report);
    assert_eq!(found.report.session_id.as_deref(), Some("s"));
    assert_eq!(found.report.warnings, Some(vec!["Loop detected, stopping execution".into()]));
    let stats = found.report.stats.unwrap();
    let model = stats.models.as_ref().and_then(|models| models.get("gemini-2.5-flash")).unwrap();
    assert_eq!(model.api.as_ref().unwrap().total_requests, count(3));
    let tokens = TokenMetrics {
        input: count(80),
        prompt: count(100),
        candidates: count(20),
        total: count(127),
        cached: count(20),
        thoughts: count(7),
        tool: count(0),
    };
    assert_eq!(model.tokens, Some(tokens));
    assert_eq!(stats.tools.unwrap().total_calls, count(2));
}

#[test]
fn unknown_fields_of_a_report_are_skipped() {
    let odd = r#"{"response":"x","new":[1],"stats":{"models":{"m":{"tokens":{"audio":1.5}}},"future":null},"warnings":null}"#;
    let plain = r#"{"response":"x","stats":{"models":{"m":{"tokens":{}}}}}"#;
    assert_eq!(find_report(odd.as_bytes()), find_report(plain.as_bytes()));
    assert_eq!(find_report(odd.as_bytes()).unwrap().skipped_bytes, 0);
}

#[test]
fn code_may_be_a_number() {
    for (code, number) in [("429", Some(429)), ("\"ECONNREFUSED\"", None)] {
        assert_eq!(error("s", "Error", "m", code).error.unwrap().code_number(), number, "{code}");
    }
}

#[test]
fn report_is_found_among_noise() {
    let text = "Loaded cached credentials.\n{ not json\n{\n  key: 1\n}\n{\"log\":true}\n  {\"response\":\"indented\"}\n{\n  \"response\": \"x\"\n} trailing\nmore\n";
    let found = find_report(text.as_bytes()).unwrap();
    assert_eq!(found.report, response("x"));
    let noise =
        "Loadedcachedcredentials.{notjson{key:1}{\"log\":true}{\"response\":\"indented\"}trailingmore";
    assert_eq!(found.skipped_bytes, noise.len() as u64);
}

#[test]
fn report_is_found_after_a_stack_trace_with_braces() {
    let text = "Attempt 1 failed. _ApiError: {\"error\":{\"code\":500}}\n    at throwErrorIfNotOK (file:///x.js:1:2) {\n  status: 500\n}\n{\n  \"session_id\": \"s\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"m\",\n    \"code\": 500\n  }\n}";
    assert_eq!(find_error_report(text.as_bytes()).unwrap().report, error("s", "Error", "m", "500"));
}

#[test]
fn error_printed_twice_is_found_behind_its_prefix() {
    // Turn limit and cancel: bare, then behind `[ERROR] `.
    let object = |id: &str| {
        format!(
            "{{\n  \"session_id\": \"{id}\",\n  \"error\": {{\"type\": \"T\", \"message\": \"m\", \"code\": 53}}\n}}"
        )
    };
    let text = format!("{}\n[ERROR] {}\n", object("one"), object("two"));
    let found = find_error_report(text.as_bytes()).unwrap();
    assert_eq!(found.report, error("two", "T", "m", "53"));
    let first = object("one").split_whitespace().collect::<String>().len();
    assert_eq!(found.skipped_bytes, (first + "[ERROR]".len()) as u64);
    let alone = format!("[ERROR] {}", object("one"));
    assert_eq!(find_error_report(alone.as_bytes()).unwrap().report, error("one", "T", "m", "53"));
    let middle = format!("x [ERROR] {}", object("one"));
    assert_eq!(find_error_report(middle.as_bytes()), None);
}

#[test]
fn invalid_stream_has_both_response_and_error() {
    let text = br#"{"session_id":"s","response":"","error":{"type":"INVALID_STREAM","message":"blocked"}}"#;
    let report = find_report(text).unwrap().report;
    assert_eq!(find_error_report(text).unwrap().report, report);
    assert_eq!(report.response.as_deref(), Some(""));
    assert_eq!(report.error.unwrap().kind.as_deref(), Some("INVALID_STREAM"));
}

#[test]
fn what_is_no_report_is_not_taken_for_one_and_what_stands_around_one_does_not_matter() {
    for (text, said, skipped) in [
        (&b"\xff\xfe\r\n{\"response\":\"x\"}\r\n\xc3"[..], "x", 3),
        (b"{\"a\":[\n{\"response\":\"x\"}\n", "x", 6),
        (br#"{"response":"a\ud800"}"#, "a\u{fffd}", 0),
    ] {
        let found = find_report(text).unwrap();
        assert_eq!((found.report, found.skipped_bytes), (response(said), skipped), "{text:?}");
    }
    let of_the_api = br#"{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}"#;
    for text in [FULL.as_bytes(), of_the_api] {
        assert_eq!(find_error_report(text), None);
    }
    for text in [
        &of_the_api[..],
        b"{\"session_id\":\"only\"}",
        b"{\"response\":\"\xff\"}",
        &b""[..],
        b"\n\n",
        b"{",
        b"{}",
        b"[ERROR] {",
        b"[1]",
        b"{\"response\":\"cut",
        b"{\"response\":5}",
        b"\xff\xfe",
    ] {
        assert_eq!(find_report(text), None, "{text:?}");
    }
}

#[test]
fn endless_beginnings_are_not_quadratic() {
    // 50,000 objects that never close, one inside the other: 10^10 steps if each were read to the end.
    let text = "{\"a\":\n".repeat(50_000);
    assert_eq!(find_report(text.as_bytes()), None);
    let with = text + "\n\"broken\n{\"response\":\"x\"}";
    assert_eq!(find_report(with.as_bytes()).unwrap().report, response("x"));
}
