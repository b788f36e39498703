//! The same scenario headless and over ACP: equal messages, files, commands and usage.

use std::sync::Arc;

use alhena_agent::home::McpServer;
use alhena_agent::{Approval, ResolvedRequest};
use alhena_agent::{Item, Transport, recording};
use alhena_model::{EventKind, FailureKind, Outcome, Status};
use alhena_scripted::{After, Scenario, Turn};
use serde_json::{Value, json};

use super::lab;
use crate::lab::{Build, Lab, warnings};

/// What has to be equal.
#[derive(Debug, PartialEq)]
struct Learned {
    status: Status,
    failure: Option<(FailureKind, Option<u16>)>,
    text: String,
    final_text: String,
    messages: Vec<Value>,
    files: Value,
    commands: Vec<(String, Option<i32>, Option<String>)>,
    usage: Value,
    models: Vec<String>,
    tool_calls: u64,
    warnings: Vec<String>,
    finish_reason: Option<String>,
}

/// One run, and its recording, which has to say the same.
fn learn(lab: &Lab, transport: Transport, request: ResolvedRequest) -> (Learned, Arc<Outcome>) {
    let record = lab.home.path().join("recording");
    let mut run = lab.start(request.transport(transport).record(&record).conversation());
    let (mut items, mut played) = (Vec::new(), Vec::new());
    while let Some(item) = run.next_item_blocking() {
        items.push(item);
    }
    recording::play_keeping(&record, |item| played.push(item)).unwrap();
    played.retain(|item| !matches!(item, Item::Line(_)));
    assert_eq!(items, played, "{transport:?}");
    let mut messages = Vec::new();
    for item in items {
        if let Item::Conversation(said) = item {
            messages = said.into_messages();
        }
    }
    let outcome = run.outcome_blocking();
    let learned = Learned {
        status: outcome.status,
        failure: outcome.failure.as_ref().map(|failure| (failure.kind, failure.http_status)),
        text: outcome.text.all().to_owned(),
        final_text: outcome.text.last().to_owned(),
        messages: messages
            .into_iter()
            .map(|message| plain(serde_json::to_value(message).unwrap(), lab))
            .collect(),
        files: plain(serde_json::to_value(&outcome.files).unwrap(), lab),
        commands: outcome
            .commands
            .iter()
            .map(|run| {
                (run.command.clone(), run.exit_code, run.output.as_deref().map(|out| out.trim().to_owned()))
            })
            .collect(),
        usage: usage(&outcome),
        models: outcome.models.clone(),
        tool_calls: outcome.tool_calls,
        warnings: warnings(&outcome),
        finish_reason: outcome.finish_reason.clone(),
    };
    (learned, outcome)
}

/// Headless also names models that took nothing.
fn usage(outcome: &Outcome) -> Value {
    let mut usage = serde_json::to_value(&outcome.usage).unwrap();
    usage["models"].as_object_mut().unwrap().retain(|_, tokens| tokens["total"] != 0);
    usage
}

/// Without what differs between any two runs: ids, times, process numbers, the folder's name.
fn plain(value: Value, lab: &Lab) -> Value {
    match value {
        Value::String(text) => {
            let dir = lab.workspace().canonicalize().unwrap();
            let text = text.replace(&*dir.to_string_lossy(), "/dir");
            let lines = text.lines().filter(|line| !line.starts_with("Process Group PGID: "));
            json!(lines.collect::<Vec<_>>().join("\n"))
        }
        Value::Array(items) => items.into_iter().map(|item| plain(item, lab)).collect(),
        Value::Object(fields) => {
            let dropped = ["id", "tool_use_id", "timestamp", "_original"];
            let kept = fields.into_iter().filter(|(name, _)| !dropped.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, plain(value, lab))).collect())
        }
        other => other,
    }
}

fn equal(name: &str, scenario: impl Fn() -> Scenario, request: impl Fn(&Lab) -> ResolvedRequest) -> Learned {
    let learn = |transport: Transport| {
        let lab = lab(&format!("{name} {transport:?}"), scenario());
        let request = request(&lab);
        learn(&lab, transport, request).0
    };
    let (headless, acp) = (learn(Transport::Headless), learn(Transport::Acp));
    assert_eq!(headless, acp, "{name}: headless first, then over ACP");
    acp
}

fn yolo(lab: &Lab) -> ResolvedRequest {
    std::fs::write(lab.workspace().join("a.txt"), "alpha\nbeta\n").unwrap();
    lab.request("go").approval(Approval::Yolo)
}

fn call(name: &str, args: Value) -> Scenario {
    Scenario::new().turn(Turn::new().text("Now. ").call(name, args)).turn(Turn::say("Done."))
}

#[test]
fn real_cli_text_thoughts_and_tools_are_equal() {
    let shell = |command: &str| ("run_shell_command", json!({"command": command}));
    let replace = |old: &str| {
        (
            "replace",
            json!({"file_path": "a.txt", "old_string": old, "new_string": "gamma", "instruction": "change"}),
        )
    };
    let write = |content: &str| ("write_file", json!({"file_path": "n.txt", "content": content}));
    let delegate = json!({"agent_name": "generalist", "prompt": "Find main"});
    let calls = [
        ("read_file", json!({"file_path": "a.txt"})),
        ("list_directory", json!({"dir_path": "."})),
        ("glob", json!({"pattern": "*.txt"})),
        ("grep_search", json!({"pattern": "beta"})),
        ("read_file", json!({"file_path": "not-there.txt"})),
        shell("echo out; touch made"),
        shell("echo bad >&2; exit 3"),
        shell("true"),
        shell("kill -9 $$"),
        write("one\n"),
        replace("beta"),
        replace("nowhere"),
        write("two\n"),
        ("mcp_echo_shout", json!({"word": "hey"})),
        ("invoke_agent", delegate),
        shell("touch by-another"),
        ("complete_task", json!({"result": {"response": "It is in main.py"}})),
    ];
    let scenario = || {
        let both = [("read_file", json!({"file_path": "a.txt"})), shell("echo two")];
        let scenario = Scenario::new().turn(
            Turn::new().thought("Plan", "think").text("Hello ").text("there 🌍.\n\n- one\n").calls(both),
        );
        let calls = calls.iter().map(|(name, args)| Turn::new().text("Now. ").call(*name, args.clone()));
        calls.fold(scenario, Scenario::turn).turn(Turn::say("Done."))
    };
    let learned = equal("tools", scenario, |lab| {
        let script = lab.home.write("server.js", crate::lab::SHOUTING_SERVER).unwrap();
        yolo(lab).mcp_server(McpServer::process("echo", "node", [script.to_str().unwrap()]))
    });
    assert_eq!(learned.status, Status::Success);
    let claimed = learned.files.as_array().unwrap().iter().filter(|file| file["claimed"] == true);
    assert_eq!(claimed.count(), 2, "{:?}", learned.files);
    // Those of the sub-agent are its own.
    assert_eq!(learned.tool_calls, 17);
}

#[test]
fn real_cli_a_tool_that_nobody_has_never_announces_itself_and_is_told_all_the_same() {
    let learn = |transport: Transport| {
        let lab = lab(&format!("unknown {transport:?}"), call("no_such_tool", json!({"x": 1})));
        let (learned, _) = learn(&lab, transport, yolo(&lab));
        (
            learned.status,
            learned.text,
            learned.final_text,
            learned.tool_calls,
            learned.warnings,
            learned.usage,
        )
    };
    assert_eq!(learn(Transport::Headless), learn(Transport::Acp));
}

#[test]
fn real_cli_a_build_file_is_refused_headless_with_the_way_that_can_and_edited_over_acp() {
    let scenario = || call("write_file", json!({"file_path": "Cargo.toml", "content": "[package]\n"}));
    let headless = lab("build headless", scenario());
    let (refused, _) = learn(&headless, Transport::Auto, yolo(&headless));
    let warned =
        |learned: &Learned, what: &str| learned.warnings.iter().any(|warning| warning.contains(what));
    assert!(
        warned(&refused, "`transport` acp") && warned(&refused, "build configuration files"),
        "{refused:?}"
    );
    assert_eq!(refused.files, json!([]));
    let acp = lab("build acp", scenario());
    let (done, _) = learn(&acp, Transport::Acp, yolo(&acp).approval(Approval::AutoEdit));
    assert_eq!(done.status, Status::Success, "{done:?}");
    assert!(acp.workspace().join("Cargo.toml").exists() && !headless.workspace().join("Cargo.toml").exists());
    assert_eq!(
        (done.files[0]["path"].as_str(), done.files[0]["change"].as_str()),
        (Some("Cargo.toml"), Some("created"))
    );
    assert_eq!(done.warnings, Vec::<String>::new());
}

/// Headless they are in `real_run`.
#[test]
fn real_cli_a_loop_that_the_cli_stops_and_a_limit_of_turns_are_told_apart_over_acp() {
    let learn = |limit: Option<u32>| {
        let call = Turn::new().call("list_directory", json!({"dir_path": "."}));
        let lab = lab("loop", Scenario::new().turn(call).after(After::Repeat));
        learn(&lab, Transport::Acp, limit.into_iter().fold(yolo(&lab), ResolvedRequest::max_turns)).0
    };
    let stopped = learn(None);
    let warning = "Loop detected, stopping execution".to_owned();
    assert_eq!((stopped.status, &stopped.warnings[..]), (Status::Success, &[warning][..]));
    assert_eq!(learn(Some(2)).failure, Some((FailureKind::TurnLimit, None)));
}

/// Headless it is in `real_offline`.
#[test]
fn real_cli_a_run_over_acp_that_is_stopped_has_the_text_so_far() {
    let lab = lab("stopped", Scenario::new().turn(Turn::new().text("part ").hang()));
    let mut run = lab.start(lab.request("go").transport(Transport::Acp));
    while let Some(event) = run.next_blocking() {
        if matches!(event.kind, EventKind::Text { .. }) {
            break;
        }
    }
    run.stop();
    let outcome = run.outcome_blocking();
    assert_eq!((outcome.status, outcome.text.all()), (Status::Cancelled, "part "));
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Cancelled));
}
