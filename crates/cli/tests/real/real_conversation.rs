//! One conversation: a run as it is followed, its recording, and its session file alone say the same.

use std::collections::BTreeMap;

use crate::lab::{Build, Lab};
use alhena_agent::home::McpServer;
use alhena_agent::{Approval, ResolvedRequest};
use alhena_agent::{Item, recording};
use alhena_model::{Conversation, Include, Source};
use alhena_model::{Event, EventKind};
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

#[test]
fn real_cli_a_run_with_tools_is_the_same_three_ways() {
    let shell = |command: &str| ("run_shell_command", json!({"command": command}));
    let write = |path: &str| ("write_file", json!({"file_path": path, "content": "one\n"}));
    let edit = json!({"file_path": "a.txt", "instruction": "i", "old_string": "old", "new_string": "new"});
    let one = |(name, args): (&str, Value)| Turn::new().text("Now. ").call(name, args);
    let scenario = Scenario::new()
        .turn(
            Turn::new()
                .thought("Plan: the first step", "Look: then act.")
                .thought("More", "x")
                .text("Hm. ")
                .call("list_directory", json!({"dir_path": "."})),
        )
        .turn(Turn::new().calls([write("new.txt"), write("old.txt")]))
        .turn(one(("replace", edit)))
        .turn(one(shell("echo out; echo err >&2")))
        .turn(one(shell("true")))
        .turn(one(shell("echo bad; exit 3")))
        .turn(one(shell("exit 4")))
        .turn(one(shell("echo begun; kill -9 $$")))
        .turn(one(shell("kill -9 $$")))
        .turn(one(("mcp_echo_shout", json!({"word": "hey"}))))
        .turn(Turn::new().text("All at once. ").calls([
            ("read_file", json!({"file_path": "a.txt"})),
            ("read_file", json!({"file_path": "missing.txt"})),
            ("glob", json!({"pattern": "*.txt"})),
            ("no_such_tool", json!({})),
        ]))
        .turn(Turn::new().thought("End", "Done: all.").text("Done."));
    let lab = Lab::real("tools", "0.61.0", scenario);
    std::fs::write(lab.workspace().join("old.txt"), "before\n").unwrap();
    std::fs::write(lab.workspace().join("a.txt"), "old line\n").unwrap();
    let script = lab.home.write("server.js", crate::lab::SHOUTING_SERVER).unwrap();
    let server = McpServer::process("echo", "node", [script.to_str().unwrap()]);
    let (live, said) = three_ways(&lab, lab.request("go").approval(Approval::Yolo).mcp_server(server));
    assert_eq!(live.events, said.events);
    assert_eq!(live.messages, said.messages);

    assert_eq!(said.events["thinking"].len(), 3);
    assert_eq!(said.events["thinking"][0]["subject"], "Plan: the first step");
    let changes = &said.events["file_change"];
    let kinds: Vec<_> = changes.iter().map(|change| &change["change"]).collect();
    assert_eq!(kinds, ["created", "modified", "modified"]);
    assert!(changes[2]["diff"].as_str().unwrap().contains("+new line"));
    let results = &said.events["tool_result"];
    let failed = results.iter().filter(|result| result["ok"] == false).count();
    assert_eq!((results.len(), failed), (15, 6), "{results:#?}");
    // What a signal ended has no exit code.
    let commands = results.iter().filter(|result| result["name"] == "run_shell_command");
    let codes: Vec<Option<u64>> = commands.map(|result| result["exit_code"].as_u64()).collect();
    assert_eq!(codes, [Some(0), Some(0), Some(3), Some(4), None, None]);
    assert!(results.iter().any(|result| result["output"].to_string().contains("HEY")), "{results:#?}");
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
