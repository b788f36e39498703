//! The same scenario headless and over ACP: equal messages, files, commands and usage.

use std::sync::Arc;
use std::time::Duration;

use alhena_agent::home::McpServer;
use alhena_agent::{Approval, Item, ResolvedRequest, Transport, recording};
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
fn real_cli_text_and_thoughts_are_equal() {
    let scenario = || {
        Scenario::new().turn(Turn::new().thought("Plan", "think").text("Hello ").text("there 🌍.\n\n- one\n"))
    };
    let learned = equal("text", scenario, |lab| lab.request("Say hi"));
    assert_eq!(learned.status, Status::Success);
}

#[test]
fn real_cli_what_the_router_takes_is_equal() {
    let scenario = || Scenario::new().turn(Turn::say("Hi."));
    let learned = equal("router", scenario, |lab| lab.request("Say hi").model("auto"));
    assert_eq!(learned.models.len(), 2, "{:?}", learned.usage);
}

#[test]
fn real_cli_reading_and_searching_are_equal() {
    for (name, args) in [
        ("read_file", json!({"file_path": "a.txt"})),
        ("list_directory", json!({"dir_path": "."})),
        ("glob", json!({"pattern": "*.txt"})),
        ("grep_search", json!({"pattern": "beta"})),
        ("read_file", json!({"file_path": "not-there.txt"})),
    ] {
        equal(name, || call(name, args.clone()), yolo);
    }
}

#[test]
fn real_cli_commands_that_work_and_that_fail_are_equal() {
    for command in ["echo out; touch made", "echo bad >&2; exit 3", "true", "kill -9 $$"] {
        equal(command, || call("run_shell_command", json!({"command": command})), yolo);
    }
}

#[test]
fn real_cli_writes_and_edits_are_equal() {
    let scenario = || {
        Scenario::new()
            .turn(Turn::new().call("write_file", json!({"file_path": "n.txt", "content": "one\n"})))
            .turn(Turn::new().call(
                "replace",
                json!({"file_path": "a.txt", "old_string": "beta", "new_string": "gamma", "instruction": "change"}),
            ))
            .turn(Turn::new().call("write_file", json!({"file_path": "n.txt", "content": "two\n"})))
            .turn(Turn::say("Done."))
    };
    let learned = equal("edits", scenario, |lab| yolo(lab).approval(Approval::AutoEdit));
    assert_eq!(learned.files.as_array().unwrap().len(), 2, "{:?}", learned.files);
}

#[test]
fn real_cli_an_edit_that_fails_and_two_calls_at_once_are_equal() {
    let miss =
        json!({"file_path": "a.txt", "old_string": "nowhere", "new_string": "x", "instruction": "change"});
    equal("miss", || call("replace", miss.clone()), yolo);
    let two = || {
        Scenario::new()
            .turn(Turn::new().calls([
                ("read_file", json!({"file_path": "a.txt"})),
                ("run_shell_command", json!({"command": "echo two"})),
            ]))
            .turn(Turn::say("Done."))
    };
    equal("two", two, yolo);
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
        warned(&refused, "--transport acp") && warned(&refused, "build configuration files"),
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

#[test]
fn real_cli_a_sub_agents_work_is_equal() {
    let scenario = || {
        Scenario::new()
            .turn(
                Turn::new()
                    .thought("Plan", "Let another look.")
                    .text("Delegating. ")
                    .call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Find main"})),
            )
            .turn(Turn::new().call("run_shell_command", json!({"command": "touch by-another"})))
            .turn(Turn::new().call("complete_task", json!({"result": {"response": "It is in main.py"}})))
            .turn(Turn::say("The agent found it."))
    };
    equal("sub-agent", scenario, yolo);
}

#[test]
fn real_cli_an_api_error_and_an_answer_that_is_cut_off_are_equal() {
    let refused = || {
        let error = json!({"code": 400, "message": "It said no.", "status": "INVALID_ARGUMENT"});
        Scenario::new().turn(Turn::error(400, error)).after(After::Repeat)
    };
    equal("refused", refused, |lab| lab.request("go").max_attempts(1));
    let cut = || Scenario::new().turn(Turn::new().text("partial").finish("MAX_TOKENS"));
    let learned = equal("cut off", cut, |lab| lab.request("go"));
    assert_eq!(learned.failure, Some((FailureKind::InvalidResponse, None)));
    assert_eq!(learned.finish_reason.as_deref(), Some("MAX_TOKENS"));
}

#[test]
fn real_cli_a_loop_that_the_cli_stops_and_a_limit_of_turns_are_told_apart_and_equal() {
    let looping = || {
        let call = Turn::new().call("list_directory", json!({"dir_path": "."}));
        Scenario::new().turn(call).after(After::Repeat)
    };
    // What is left of the call at which it was stopped differs: it is announced headless, and never over ACP.
    let learn = |transport: Transport, limit: Option<u32>| {
        let lab = lab(&format!("loop {transport:?}"), looping());
        let request = limit.into_iter().fold(yolo(&lab), Build::max_turns);
        let (learned, _) = learn(&lab, transport, request);
        (learned.status, learned.failure, learned.warnings, learned.text)
    };
    let stopped = learn(Transport::Acp, None);
    assert_eq!(
        (stopped.0, &stopped.2[..]),
        (Status::Success, &["Loop detected, stopping execution".to_owned()][..])
    );
    assert_eq!(learn(Transport::Headless, None), stopped);
    let limited = learn(Transport::Acp, Some(2));
    assert_eq!(limited.1, Some((FailureKind::TurnLimit, None)));
    assert_eq!(learn(Transport::Headless, Some(2)), limited);
}

#[test]
fn real_cli_a_run_that_is_stopped_is_equal() {
    let learn = |transport: Transport| {
        let lab =
            lab(&format!("stopped {transport:?}"), Scenario::new().turn(Turn::new().text("part ").hang()));
        let mut run = lab.start(lab.request("go").transport(transport));
        while let Some(event) = run.next_blocking() {
            if matches!(event.kind, EventKind::Text { .. }) {
                break;
            }
        }
        run.stop();
        let outcome = run.outcome_blocking();
        (outcome.status, outcome.text.all().to_owned(), outcome.failure.as_ref().map(|failure| failure.kind))
    };
    assert_eq!(learn(Transport::Headless), learn(Transport::Acp));
}

#[test]
fn real_cli_a_tool_of_an_mcp_server_is_equal() {
    let scenario = || {
        Scenario::new()
            .turn(Turn::new().call("mcp_echo_shout", json!({"word": "hey"})))
            .turn(Turn::say("It shouted."))
    };
    equal("mcp", scenario, |lab| {
        let script = lab.home.write("server.js", crate::lab::SHOUTING_SERVER).unwrap();
        yolo(lab).mcp_server(McpServer::process("echo", "node", [script.to_str().unwrap()]))
    });
}

#[test]
fn real_cli_a_time_limit_is_equal() {
    let learn = |transport: Transport| {
        let lab =
            lab(&format!("timeout {transport:?}"), Scenario::new().turn(Turn::new().text("part ").hang()));
        // The start of the CLI counts.
        let outcome = lab.run(lab.request("go").transport(transport).timeout(Duration::from_secs(30)));
        (outcome.status, outcome.text.all().to_owned(), outcome.failure.as_ref().map(|failure| failure.kind))
    };
    assert_eq!(learn(Transport::Headless), learn(Transport::Acp));
}
