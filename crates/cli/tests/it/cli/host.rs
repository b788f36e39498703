//! `alhena host`: what hosts need beyond a view.

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::json;

use crate::common::Desk;

#[test]
fn every_host_is_in_the_list_with_its_view_and_its_adapter() {
    let desk = Desk::new();
    let rows = desk.alhena(&["host", "list", "--json"]).json();
    let names: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["aiwf", "agent-cli-sdk", "openase", "promptfoo", "claude-agent-sdk", "cao"]);
    let shown = desk.alhena(&["host", "list"]);
    assert!(names.iter().all(|name| shown.stdout.contains(name)), "{shown}");
}

#[test]
fn metadata_is_that_of_the_host() {
    let desk = Desk::new();
    assert_eq!(desk.alhena(&["host", "metadata", "aiwf"]).json()["name"], json!("gemini-cli"));
}

#[test]
fn a_configuration_is_checked_in_the_words_of_its_host() {
    let desk = Desk::new();
    desk.transcript(
        r#"
        $ host validate promptfoo '{"model": "gemini-2.5-flash", "approval_mode": "auto_edit"}'
        $ host validate aiwf '{"timeout": 30}'
        [exit 0]
        $ host validate promptfoo '{"approval_mode": "maybe"}'
        error: approval_mode must be one of suggest, auto_edit, full_auto, got: "maybe"
        [exit 1]
        $ host validate promptfoo '{"modle": "x"}'
        warning: unknown option modle is ignored
        [exit 0]
        $ host validate promptfoo {
        error: the configuration is not JSON: EOF while parsing an object at line 1 column 1
        hint: Give one JSON object.
        "#,
    );
}

#[test]
fn the_dropin_is_a_link_and_never_replaces_another_gemini() {
    let desk = Desk::new();
    let link = desk.work().join("bin/gemini");
    for _ in 0..2 {
        assert_eq!(desk.alhena(&["host", "install-dropin", "bin"]).code(), Some(0));
        assert_eq!(fs::canonicalize(&link).unwrap(), fs::canonicalize(env!("CARGO_BIN_EXE_alhena")).unwrap());
    }
    fs::remove_file(&link).unwrap();
    symlink("/bin/true", &link).unwrap();
    assert_snapshot!(desk.alhena(&["host", "install-dropin", "bin"]), @r#"
    ---- stderr ----
    error: bin/gemini exists and is something else
    hint: Give a directory that can be written to and has no other program gemini in it.
    [exit 1]
    "#);
    assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("/bin/true"));
}

#[test]
fn a_program_is_told_what_the_claude_command_cannot_do() {
    let desk = Desk::new();
    let initialize =
        r#"{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":null}}"#;
    let said = |arguments: &[&str], stdin: &str| {
        let arguments = [&["claude", "--input-format", "stream-json"], arguments].concat();
        desk.alhena_reading(stdin.as_bytes(), &arguments)
    };
    let refused = said(&["--task-budget", "5"], initialize);
    assert_eq!(refused.code(), Some(2));
    assert!(
        refused.stdout.contains(r#""subtype":"error""#) && refused.stdout.contains("--task-budget"),
        "{refused}"
    );
    assert!(refused.stderr.contains("error: --task-budget cannot be done"), "{refused}");
    // Nothing but faults, an answer that nobody asked for, and the end.
    let long = format!("{{\"type\":\"keep_alive\",\"x\":\"{}\"}}", "x".repeat(1 << 20));
    let odd =
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"9","response":{}}}"#;
    let unknown = r#"{"type":"control_request","request_id":"2","request":{"subtype":"fly"}}"#;
    let faulty = said(&[], &["{", "\u{1b}[31m", odd, &long, unknown, "7"].join("\n"));
    assert_eq!(faulty.code(), Some(0), "{faulty}");
    assert_eq!(faulty.stdout.lines().count(), 1, "{faulty}");
    assert!(faulty.stdout.contains(r#""error":"fly cannot be done with Gemini CLI""#), "{faulty}");
    assert_eq!(faulty.stderr.matches("error: a line on stdin is no JSON").count(), 2, "{faulty}");
    for arguments in [&["claude", "--version"][..], &["claude", "-v"]] {
        assert!(desk.alhena(arguments).stdout.starts_with("2.1.325 "));
    }
}
