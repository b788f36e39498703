//! Tools get their complete input over ACP, and messages are those of a headless run.

use std::time::Duration;

use alhena_agent::Approval;
use alhena_model::{EventKind, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::{Value, json};

use super::{converse, follow, kinds, lab};
use crate::lab::Lab;

fn edit() -> Value {
    json!({"file_path": "a.txt", "old_string": "one", "new_string": "two", "instruction": "count"})
}

fn shell() -> Value {
    json!({"command": "echo hi", "description": "greets"})
}

/// Two calls in one answer, then an edit, with text before each.
fn turns() -> [Turn; 3] {
    let both = [("read_file", json!({"file_path": "a.txt"})), ("run_shell_command", shell())];
    [
        Turn::new().thought("Plan", "look first").text("I look.").calls(both),
        Turn::new().text("I edit.").call("replace", edit()),
        Turn::say("Done."),
    ]
}

fn write(lab: &Lab) {
    std::fs::write(lab.workspace().join("a.txt"), "one\n").unwrap();
}

#[test]
fn real_cli_tool_calls_have_their_complete_input_in_every_mode_and_when_they_are_rejected() {
    let modes = [
        (Approval::Default, true),
        (Approval::AutoEdit, true),
        (Approval::Yolo, true),
        (Approval::Default, false),
    ];
    let all = modes.iter().fold(Scenario::new(), |all, _| turns().into_iter().fold(all, Scenario::turn));
    let lab = lab("inputs", all);
    let mut talk = converse(&lab, lab.request(""));
    for (approval, allows) in modes {
        write(&lab);
        talk.set_mode(approval).unwrap();
        let mut asked = Vec::new();
        let (events, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
            asked.push((permission.tool.clone(), permission.input.clone()));
            match allows || permission.tool != "replace" {
                true => permission.allow_once(),
                false => permission.reject("no"),
            }
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
        let text = std::fs::read_to_string(lab.workspace().join("a.txt")).unwrap();
        assert_eq!(text, if allows { "two\n" } else { "one\n" });
    }
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
        let lab = lab("order", turns().into_iter().fold(Scenario::new(), Scenario::turn));
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
    for (transport, view) in [("headless", "messages"), ("acp", "agent-cli-sdk-lines")] {
        let lab = lab("half", halves());
        let printed = printed(&lab, transport, view);
        assert!(printed.contains("cut \u{fffd} here"), "{transport} {view}: {printed}");
        assert!(!printed.contains("\\ud83d"), "{transport} {view}: {printed}");
    }
}
