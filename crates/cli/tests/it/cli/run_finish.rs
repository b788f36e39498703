//! An answer that was cut off is a failure in every host's view and in the drop-in, with the text so far.

use serde_json::json;

use crate::common::{Desk, Transcript};

/// Says something, reports success, and records why the answer ended, as Gemini CLI 0.61.0 does.
const STAND_IN: &str = r#"#!/bin/sh
for word in "$@"; do
    case "$word" in
        --version) echo 0.61.0; exit 0 ;;
        --record-responses=*) file=${word#--record-responses=} ;;
    esac
done
echo '{"method":"generateContentStream","response":[{"candidates":[{"content":{"parts":[{"text":"Once upon"}]},"finishReason":"REASON"}]}]}' > "$file"
echo '{"type":"init","timestamp":"2026-11-15T17:49:10.686Z","session_id":"11111111-1111-4111-8111-111111111111","model":"m"}'
echo '{"type":"message","timestamp":"2026-11-15T17:49:10.686Z","role":"assistant","content":"Once upon","delta":true}'
echo '{"type":"result","timestamp":"2026-11-15T17:49:10.686Z","status":"success","stats":{"total_tokens":10,"input_tokens":5,"output_tokens":5,"cached":0,"input":5,"duration_ms":1,"tool_calls":0,"models":{}}}'
"#;

fn alhena(reason: &str, args: &[&str]) -> Transcript {
    let desk = Desk::new().env("GEMINI_API_KEY", "none");
    desk.program("gemini", &STAND_IN.replace("REASON", reason));
    desk.alhena(args)
}

fn cut_off(view: &str) -> Transcript {
    let seen = alhena("MAX_TOKENS", &["run", "--trust", "--as", view, "go"]);
    assert_eq!(seen.code(), Some(1), "{seen}");
    seen
}

const MESSAGE: &str = "The answer was cut off at the limit of output tokens (MAX_TOKENS)";

#[test]
fn every_host_gets_the_text_so_far_and_the_reason_and_no_success() {
    for view in ["aiwf", "openase", "messages", "agent-cli-sdk"] {
        let seen = cut_off(view);
        assert!(seen.stdout.contains("Once upon"), "{view}: {seen}");
        let told = if view == "messages" { &seen.stderr } else { &seen.stdout };
        assert!(told.contains(MESSAGE), "{view}: {seen}");
    }
    let aiwf = cut_off("aiwf").json();
    assert_eq!(aiwf["response"], "Once upon", "{aiwf}");
    assert!(aiwf["error"].to_string().contains(MESSAGE), "{aiwf}");
    let last = cut_off("openase").json_lines().pop().unwrap();
    assert_eq!((&last["type"], &last["kind"]), (&json!("TurnFailed"), &json!("invalid_response")), "{last}");
    assert_eq!(last["message"], MESSAGE, "{last}");
    let result = cut_off("agent-cli-sdk").json();
    assert_eq!(result["success"], json!(false), "{result}");
    assert!(result["messages"].to_string().contains("Once upon"), "{result}");
}

#[test]
fn the_drop_in_exits_with_an_error_and_says_why_in_every_format() {
    for format in ["text", "json", "stream-json"] {
        let seen = alhena("SAFETY", &["gemini", "--output-format", format, "-p", "go"]);
        assert_eq!(seen.code(), Some(1), "{seen}");
        assert!(seen.stdout.contains("Once upon"), "{seen}");
        assert!(seen.stderr.contains("The answer was cut off by a content filter (SAFETY)"), "{seen}");
        if format == "stream-json" {
            let lines = seen.json_lines();
            let results: Vec<_> = lines.iter().filter(|line| line["type"] == "result").collect();
            assert_eq!(results.len(), 1, "{seen}");
            assert_eq!(results[0]["status"], "error", "{seen}");
        }
        let whole = alhena("STOP", &["gemini", "--output-format", format, "-p", "go"]);
        assert_eq!((whole.code(), whole.stderr.as_str()), (Some(0), ""), "{whole}");
    }
}
