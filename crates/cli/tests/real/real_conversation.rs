//! One conversation: a run as it is followed, its recording, and its session file alone say the same.

use std::collections::BTreeMap;

use crate::lab::{Build, Lab};
use alhena_agent::home::McpServer;
use alhena_agent::{Approval, Item, ResolvedRequest, recording};
use alhena_model::{Conversation, Event, EventKind, Include, Source};
use alhena_scripted::{Scenario, Turn};
use alhena_session::Transcript;
use serde_json::{Value, json};

/// What one way to learn of a conversation made of it.
struct Learned {
    /// By kind, each in its order: an event comes when it becomes known, so the order among kinds is each way's own.
    events: BTreeMap<String, Vec<Value>>,
    messages: Vec<Value>,
}

/// The table of what only one source has is in `alhena_model::conversation`; all else has to be equal.
fn learned(events: &[Event], conversation: Conversation<'_>) -> Learned {
    let mut kinds: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut text = String::new();
    for event in events {
        match &event.kind {
            EventKind::Text { delta } => {
                text.push_str(delta);
                continue;
            }
            EventKind::Started { .. } | EventKind::Finished { .. } => continue,
            EventKind::Warning { .. } | EventKind::Error { .. } => continue,
            EventKind::Usage(_) if event.source != Source::Session => continue,
            EventKind::FileChange(change) if change.tool.is_none() => continue,
            _ => {}
        }
        let mut value = serde_json::to_value(&event.kind).unwrap();
        if let Some(error) = value.get_mut("error").and_then(Value::as_object_mut) {
            error.remove("type");
        }
        let fields = value.as_object_mut().unwrap();
        fields.remove("verified");
        fields.remove("cost_usd");
        let kind = fields.remove("type").unwrap().as_str().unwrap().to_owned();
        if kind == "tool_result" {
            end_answer(&mut text, &mut kinds);
        }
        kinds.entry(kind).or_default().push(value);
    }
    end_answer(&mut text, &mut kinds);
    let messages = conversation.into_messages().into_iter().map(|message| {
        let mut message = serde_json::to_value(message).unwrap();
        let fields = message.as_object_mut().unwrap();
        fields.remove("timestamp");
        fields.remove("_original");
        if fields["role"] == "user" {
            fields.remove("id");
        }
        message
    });
    Learned { events: kinds, messages: messages.collect() }
}

fn end_answer(text: &mut String, kinds: &mut BTreeMap<String, Vec<Value>>) {
    let said = std::mem::take(text).trim().to_owned();
    if !said.is_empty() {
        kinds.entry("text".to_owned()).or_default().push(json!(said));
    }
}

/// One run, learned in three ways; the playback has to equal the run in everything.
fn three_ways(lab: &Lab, request: ResolvedRequest) -> (Learned, Learned) {
    let record = lab.home.path().join("recording");
    let mut run = lab.start(request.record(&record).conversation());
    let (mut items, mut played) = (Vec::new(), Vec::new());
    while let Some(item) = run.next_item_blocking() {
        items.push(item);
    }
    let files = run.session_files();
    recording::play_keeping(&record, |item| played.push(item)).unwrap();
    played.retain(|item| !matches!(item, Item::Line(_)));
    assert_eq!(items, played);
    let (mut events, mut live) = (Vec::new(), Conversation::default());
    for item in items {
        match item {
            Item::Event(event) => events.push(event),
            Item::Conversation(said) => live = *said,
            Item::Line(_) => {}
        }
    }
    assert_eq!(files.len(), 1, "{files:?} {events:?}");
    let transcript = Transcript::read(&files[0]).unwrap();
    let stored = transcript.conversation(Include::Said);
    (learned(&events, live), learned(&stored.events(), stored))
}

fn same(name: &str, scenario: Scenario, request: impl FnOnce(&Lab) -> ResolvedRequest) -> Learned {
    let lab = Lab::real(name, "0.61.0", scenario);
    let request = request(&lab);
    let (live, stored) = three_ways(&lab, request);
    assert_eq!(live.events, stored.events);
    assert_eq!(live.messages, stored.messages);
    stored
}

fn yolo(lab: &Lab) -> ResolvedRequest {
    lab.request("go").approval(Approval::Yolo)
}

fn shell(command: &str) -> Scenario {
    Scenario::new()
        .turn(Turn::new().text("Running. ").call("run_shell_command", json!({"command": command})))
        .turn(Turn::say("Done."))
}

#[test]
fn real_cli_a_plain_answer_is_the_same_three_ways() {
    let said = same("plain", Scenario::new().turn(Turn::say("Just an answer.")), |lab| lab.request("ask"));
    assert_eq!(said.events["text"], [json!("Just an answer.")]);
    assert_eq!(said.messages.len(), 2);
}

#[test]
fn real_cli_unicode_in_many_pieces_is_the_same_three_ways() {
    let text = "Grüße 👩‍👩‍👧 naïve\n\n```rust\nfn main() {}\n```\nend";
    let scenario = Scenario::new().turn(Turn::new().chunks(text, 3, std::time::Duration::ZERO));
    let lab = Lab::real("unicode", "0.61.0", scenario);
    let (live, stored) = three_ways(&lab, lab.request("日本語 \"quoted\" \\ ok"));
    assert_eq!(live.events["text"], [json!(text)]);
    assert_eq!(live.messages[1]["content"][0]["text"], text);
    // The CLI leaves letters without a width out of its session file.
    let kept = |value: Value| value.to_string().replace('\u{200d}', "");
    assert_eq!(kept(json!(live.events)), json!(stored.events).to_string());
    assert_eq!(kept(json!(live.messages)), json!(stored.messages).to_string());
}

#[test]
fn real_cli_thoughts_with_colons_are_the_same_three_ways() {
    let scenario = Scenario::new()
        .turn(
            Turn::new()
                .thought("Plan: the first step", "Look: then act.")
                .thought("More", "x")
                .text("Hm. ")
                .call("list_directory", json!({"dir_path": "."})),
        )
        .turn(Turn::new().thought("End", "Done: all.").text("Done."));
    let said = same("thoughts", scenario, |lab| lab.request("think"));
    assert_eq!(said.events["thinking"][0]["subject"], "Plan: the first step");
    assert_eq!(said.events["thinking"].len(), 3);
}

#[test]
fn real_cli_a_created_file_is_the_same_three_ways() {
    let scenario = Scenario::new()
        .turn(Turn::new().calls([
            ("write_file", json!({"file_path": "new.txt", "content": "one\n"})),
            ("write_file", json!({"file_path": "old.txt", "content": "two\n"})),
        ]))
        .turn(Turn::say("Written."));
    let said = same("created", scenario, |lab| {
        std::fs::write(lab.workspace().join("old.txt"), "before\n").unwrap();
        yolo(lab)
    });
    let changes: Vec<_> = said.events["file_change"].iter().map(|change| &change["change"]).collect();
    assert_eq!(changes, ["created", "modified"]);
}

#[test]
fn real_cli_an_edited_file_is_the_same_three_ways() {
    let edit = json!({"file_path": "a.txt", "instruction": "i", "old_string": "old", "new_string": "new"});
    let scenario = Scenario::new().turn(Turn::new().call("replace", edit)).turn(Turn::say("Edited."));
    let said = same("edited", scenario, |lab| {
        std::fs::write(lab.workspace().join("a.txt"), "old line\n").unwrap();
        yolo(lab)
    });
    assert_eq!(said.events["file_change"][0]["change"], "modified");
    assert!(said.events["file_change"][0]["diff"].as_str().unwrap().contains("+new line"));
}

#[test]
fn real_cli_commands_that_succeed_are_the_same_three_ways() {
    let said = same("fine", shell("echo out; echo err >&2"), yolo);
    assert_eq!(said.events["command"][0]["exit_code"], 0);
    let said = same("silent", shell("true"), yolo);
    assert_eq!(said.events["command"][0]["output"], "");
}

#[test]
fn real_cli_commands_that_fail_are_the_same_three_ways() {
    let said = same("failed", shell("echo bad; exit 3"), yolo);
    assert_eq!(
        (&said.events["command"][0]["exit_code"], &said.events["tool_result"][0]["ok"]),
        (&json!(3), &json!(false))
    );
    let said = same("failed silently", shell("exit 4"), yolo);
    assert_eq!(said.events["command"][0]["exit_code"], 4);
}

#[test]
fn real_cli_a_command_that_a_signal_ended_is_the_same_three_ways() {
    for command in ["echo begun; kill -9 $$", "kill -9 $$"] {
        let said = same("killed", shell(command), yolo);
        let result = &said.events["tool_result"][0];
        assert_eq!((&result["ok"], result.get("exit_code")), (&json!(false), None), "{command}");
    }
}

#[test]
fn real_cli_a_tool_that_is_refused_is_the_same_three_ways() {
    let said = same("refused", shell("touch x"), |lab| {
        lab.request("go").approval(Approval::AutoEdit).allow_tool("run_shell_command(git)")
    });
    assert_eq!(said.events["tool_result"][0]["ok"], false);
    assert!(!said.events.contains_key("command"));
    let said = same("not offered", shell("touch x"), |lab| lab.request("go"));
    assert!(!said.events.contains_key("command"));
}

#[test]
fn real_cli_a_tools_error_is_the_same_three_ways() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("read_file", json!({"file_path": "missing.txt"})))
        .turn(Turn::say("Not there."));
    let said = same("missing", scenario, |lab| lab.request("read"));
    assert!(said.events["tool_result"][0]["error"]["message"].as_str().unwrap().contains("not found"));
}

#[test]
fn real_cli_several_tools_in_one_turn_are_the_same_three_ways() {
    let scenario = Scenario::new()
        .turn(Turn::new().text("All at once. ").calls([
            ("read_file", json!({"file_path": "a.txt"})),
            ("run_shell_command", json!({"command": "exit 7"})),
            ("write_file", json!({"file_path": "b.txt", "content": "b"})),
            ("glob", json!({"pattern": "*.txt"})),
            ("no_such_tool", json!({})),
        ]))
        .turn(Turn::new().text("And more. ").call("read_file", json!({"file_path": "b.txt"})))
        .turn(Turn::say("Done."));
    let said = same("several", scenario, |lab| {
        std::fs::write(lab.workspace().join("a.txt"), "alpha\n").unwrap();
        yolo(lab)
    });
    assert_eq!(said.events["tool_result"].len(), 6);
}

#[test]
fn real_cli_an_answer_that_began_twice_is_one_message_three_ways() {
    let scenario = Scenario::new()
        .turn(Turn::new().text("Half an ans").without_finish())
        .turn(Turn::say("Half an answer, whole."));
    let lab = Lab::real("twice", "0.61.0", scenario);
    let (mut live, mut stored) = three_ways(&lab, lab.request("tell"));
    assert_eq!(live.messages, stored.messages);
    // Only the stream has what was said before the retry.
    let (live_text, stored_text) =
        (live.events.remove("text").unwrap(), stored.events.remove("text").unwrap());
    assert!(live_text[0].as_str().unwrap().ends_with(stored_text[0].as_str().unwrap()), "{live_text:?}");
    assert_eq!(live.events, stored.events);
}

#[test]
fn real_cli_a_tool_of_an_mcp_server_is_the_same_three_ways() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("mcp_echo_shout", json!({"word": "hey"})))
        .turn(Turn::say("It shouted."));
    let said = same("mcp", scenario, |lab| {
        let script = lab.home.write("server.js", crate::lab::SHOUTING_SERVER).unwrap();
        let server = McpServer::process("echo", "node", [script.to_str().unwrap()]);
        yolo(lab).mcp_server(server)
    });
    let result = &said.events["tool_result"][0];
    assert_eq!(result["ok"], true, "{result}");
    assert!(result["output"].as_str().unwrap().contains("HEY"), "{result}");
}

#[test]
fn real_cli_a_prompt_that_names_a_file_is_the_same_three_ways() {
    let lab = Lab::real("at", "0.61.0", Scenario::new().turn(Turn::say("Read it.")));
    std::fs::write(lab.workspace().join("a.txt"), "alpha\n").unwrap();
    let (mut live, mut stored) = three_ways(&lab, lab.request("What is in @a.txt ?"));
    // Only the session has what the CLI put in place of the name.
    let (typed, sent) = (live.events.remove("prompt").unwrap(), stored.events.remove("prompt").unwrap());
    assert!(
        sent[0]["text"].as_str().unwrap().starts_with(typed[0]["text"].as_str().unwrap()),
        "{typed:?} {sent:?}"
    );
    assert_eq!(live.events, stored.events);
    assert_eq!(live.messages[1..], stored.messages[1..]);
}

#[test]
fn real_cli_an_empty_answer_after_a_tool_is_the_same_three_ways() {
    let mut scenario = Scenario::new().turn(Turn::new().call("list_directory", json!({"dir_path": "."})));
    // The CLI asks again before it gives up.
    for _ in 0..4 {
        scenario = scenario.turn(Turn::new().thought("Hm", "Nothing to say."));
    }
    let said = same("empty", scenario, |lab| lab.request("ask"));
    assert_eq!(said.events["tool_result"].len(), 1);
}
