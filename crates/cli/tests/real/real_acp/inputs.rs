//! Tools get their complete input over ACP, and messages are those of a headless run.

use std::time::Duration;

use alhena_agent::Approval;
use alhena_model::{EventKind, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::{Value, json};

use super::{converse, follow, kinds, lab};
use crate::lab::{Build, Lab};

fn edit() -> Value {
    json!({"file_path": "a.txt", "old_string": "one", "new_string": "two", "instruction": "count"})
}

fn shell() -> Value {
    json!({"command": "echo hi", "description": "greets"})
}

/// Two calls in one answer, then an edit, with text before each.
fn scenario() -> Scenario {
    let both = [("read_file", json!({"file_path": "a.txt"})), ("run_shell_command", shell())];
    Scenario::new()
        .turn(Turn::new().thought("Plan", "look first").text("I look.").calls(both))
        .turn(Turn::new().text("I edit.").call("replace", edit()))
        .turn(Turn::say("Done."))
}

fn write(lab: &Lab) {
    std::fs::write(lab.workspace().join("a.txt"), "one\n").unwrap();
}

#[test]
fn real_cli_tool_calls_have_their_complete_input_in_every_mode() {
    for approval in [Approval::Yolo, Approval::AutoEdit, Approval::Default] {
        let lab = lab("inputs", scenario());
        write(&lab);
        let mut talk = converse(&lab, lab.request("").approval(approval));
        let mut asked = Vec::new();
        let (events, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
            asked.push((permission.tool.clone(), permission.input.clone()));
            permission.allow_once();
        });
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        let told: Vec<Value> = kinds(&events)
            .into_iter()
            .filter_map(|kind| match kind {
                EventKind::ToolCall { input, .. } => Some((**input).clone()),
                _ => None,
            })
            .collect();
        assert_eq!(told, [json!({"file_path": "a.txt"}), shell(), edit()], "{approval:?}");
        let edits: Vec<&Value> =
            asked.iter().filter(|(tool, _)| tool == "replace").map(|(_, input)| input).collect();
        let expected: &[&Value] = if approval == Approval::Default { &[&edit()] } else { &[] };
        assert_eq!(edits, expected, "{approval:?}");
        assert_eq!(std::fs::read_to_string(lab.workspace().join("a.txt")).unwrap(), "two\n");
    }
}

#[test]
fn real_cli_an_edit_that_is_rejected_is_told_with_its_input() {
    let lab = lab("rejected edit", scenario());
    write(&lab);
    let mut talk = converse(&lab, lab.request("").approval(Approval::Default));
    let (events, _) = follow(talk.prompt("go").unwrap(), |permission| match permission.tool.as_str() {
        "replace" => permission.reject("no"),
        _ => permission.allow_once(),
    });
    let called = kinds(&events).into_iter().find_map(|kind| match kind {
        EventKind::ToolCall { name, input, .. } if name == "replace" => Some((**input).clone()),
        _ => None,
    });
    assert_eq!(called, Some(edit()));
}

/// What a view prints of one run.
fn printed(lab: &Lab, transport: &str, view: &str) -> String {
    write(lab);
    let args =
        ["--model", "gemini-2.5-flash", "--approval", "yolo", "--transport", transport, "--as", view, "go"];
    let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
    assert!(done.succeeded(), "{view} {}: {} {}", done.ending(), done.stdout_text(), done.stderr_text());
    done.stdout_text()
}

/// Role and kinds of blocks of each message.
fn shape(messages: &Value) -> Vec<(Value, Vec<Value>)> {
    let blocks = |message: &Value| {
        message["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect()
    };
    messages.as_array().unwrap().iter().map(|message| (message["role"].clone(), blocks(message))).collect()
}

#[test]
fn real_cli_messages_are_in_claudes_order_over_both_transports() {
    let of = |role: &str, blocks: &[&str]| (json!(role), blocks.iter().map(|kind| json!(kind)).collect());
    let expected = [
        of("user", &["text"]),
        of("assistant", &["thinking", "text", "tool_use", "tool_use"]),
        of("user", &["tool_result", "tool_result"]),
        of("assistant", &["text", "tool_use"]),
        of("user", &["tool_result"]),
        of("assistant", &["text"]),
    ];
    for transport in ["headless", "acp"] {
        let lab = lab("order", scenario());
        let messages: Value = serde_json::from_str(&printed(&lab, transport, "messages")).unwrap();
        assert_eq!(shape(&messages), expected, "{transport}");
        let lab = super::lab("order by lines", scenario());
        let lines = printed(&lab, transport, "message-lines");
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = lines.last().unwrap();
        assert_eq!(shape(&result["messages"]), expected, "{transport}");
        // What was told under a name is what came of it.
        let mut told: Vec<&Value> = Vec::new();
        for message in lines.iter().filter_map(|line| line.get("message")) {
            match told.iter_mut().find(|before| before["id"] == message["id"]) {
                Some(before) => *before = message,
                None => told.push(message),
            }
        }
        assert_eq!(told, result["messages"].as_array().unwrap().iter().collect::<Vec<_>>(), "{transport}");
    }
}

/// An answer with half of an emoji in its text and in the arguments of a call, as JavaScript writes it.
fn halves() -> Scenario {
    let chunk = |part: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{part}]}}}}]}}\r\n\r\n"
        )
    };
    let call = r#"{"functionCall":{"name":"run_shell_command","args":{"command":"echo x # \ud83d","description":"d"}}}"#;
    Scenario::new()
        .turn(Turn::new().raw(chunk(r#"{"text":"cut \ud83d here"}"#)).raw(chunk(call)))
        .turn(Turn::say("Done."))
}

#[test]
fn real_cli_half_a_character_breaks_no_view_of_a_run() {
    let of_acp = [("acp", "message-lines"), ("acp", "agent-cli-sdk-lines")];
    for (transport, view) in
        [("headless", "messages"), ("headless", "agent-cli-sdk")].into_iter().chain(of_acp)
    {
        let lab = lab("half", halves());
        let printed = printed(&lab, transport, view);
        assert!(printed.contains("cut \u{fffd} here"), "{transport} {view}: {printed}");
        assert!(!printed.contains("\\ud83d"), "{transport} {view}: {printed}");
    }
}
