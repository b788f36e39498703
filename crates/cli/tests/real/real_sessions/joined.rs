//! The same run, seen while it goes on (the stream joined with the store) and afterwards (the store alone).

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{RealCli, versions};
use serde_json::{Value, json};

use super::validator::Validator;
use super::{alhena, printed};
use crate::lab::Lab;

fn rich() -> Scenario {
    Scenario::new()
        .turn(
            Turn::new()
                .thought("Plan", "Look first.")
                .text("Looking. ")
                .call("read_file", json!({"file_path": "a.txt"})),
        )
        .turn(Turn::new().thought("Edit", "Then change it.").calls([
            (
                "replace",
                json!({"file_path": "a.txt", "instruction": "i", "old_string": "old", "new_string": "new"}),
            ),
            ("write_file", json!({"file_path": "b.txt", "content": "b\n"})),
        ]))
        .turn(Turn::new().text("Now a command.").calls([
            ("run_shell_command", json!({"command": "echo out; exit 3"})),
            ("read_file", json!({"file_path": "missing.txt"})),
        ]))
        .turn(Turn::say("All done. Größe: 10 µm"))
}

fn lab(version: &str) -> Lab {
    let lab = Lab::real("joined", version, rich());
    std::fs::write(lab.workspace().join("a.txt"), "old line\n").unwrap();
    lab
}

fn run(lab: &Lab, view: &str) -> String {
    let gemini = lab.gemini.path.to_str().unwrap();
    printed(
        lab,
        &["run", "--gemini", gemini, "--model", "gemini-2.5-flash", "--approval", "yolo", "--as", view, "go"],
    )
}

#[test]
fn real_cli_a_run_gives_the_messages_that_its_session_gives_later() {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema_path()).unwrap()).unwrap();
    for version in versions() {
        let lab = lab(&version);
        let live: Value = serde_json::from_str(&run(&lab, "messages")).unwrap();
        let stored: Value =
            serde_json::from_str(&printed(&lab, &["sessions", "show", "--as", "messages"])).unwrap();
        assert_eq!(live, stored, "{version}");
        let live = live.as_array().unwrap();
        // A prompt, four answers, and the results of the calls of three.
        assert_eq!(live.len(), 8, "{version} {live:?}");
        for message in live {
            Validator { root: &schema }.check(message).unwrap_or_else(|why| panic!("{version}: {why}"));
        }
        let edits: Vec<&Value> =
            live[3]["content"].as_array().unwrap().iter().map(|block| &block["name"]).collect();
        assert!(edits.ends_with(&[&json!("Edit"), &json!("Write")]), "{version} {edits:?}");
        assert!(live[4]["content"][0]["diff"].as_str().unwrap().contains("+new line"), "{version}");
        let shell = &live[6]["content"];
        assert_eq!(shell[0]["exit_code"], json!(3), "{version} {shell}");
        assert_eq!(shell[1]["is_error"], json!(true), "{version} {shell}");
    }
}

fn schema_path() -> std::path::PathBuf {
    alhena_testbed::cache::workspace().join("schemas/message.json")
}

/// What an event says, without when it was said and where that is from.
fn said(events: &str, kind: &str) -> Vec<Value> {
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let wanted = events.filter(|event| event["type"] == kind);
    let keep = |event: Value| {
        let mut fields = event.as_object().unwrap().clone();
        fields.retain(|key, _| !["seq", "at", "source"].contains(&key.as_str()));
        // The store does not say of which kind an error was, and has its text once.
        if let Some(error) = fields.get_mut("error").and_then(Value::as_object_mut) {
            error.remove("type");
            fields.remove("output");
        }
        Value::Object(fields)
    };
    wanted.map(keep).collect()
}

#[test]
fn real_cli_the_events_of_a_run_say_what_its_session_says_later() {
    for version in versions() {
        let lab = lab(&version);
        let live = run(&lab, "events");
        let stored = printed(&lab, &["sessions", "show", "--as", "events"]);
        for kind in ["thinking", "tool_call", "tool_result"] {
            let told = said(&live, kind);
            assert_eq!(told, said(&stored, kind), "{version}");
            assert!(told.len() >= 2, "{version} {kind}");
        }
        // The CLI trims what it stores.
        let text = |events: &str| -> String {
            let all: String = said(events, "text")
                .iter()
                .map(|event| event["delta"].as_str().unwrap().to_owned())
                .collect();
            all.split_whitespace().collect()
        };
        assert_eq!(text(&live), text(&stored), "{version}");
    }
}

#[test]
fn real_cli_an_old_release_gives_its_messages_too() {
    let version = "0.39.1";
    assert!(RealCli::get(version).is_ok());
    let lab = lab(version);
    let live: Value = serde_json::from_str(&run(&lab, "messages")).unwrap();
    let listed: Value = serde_json::from_str(&printed(&lab, &["sessions", "list", "--json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    let stored: Value =
        serde_json::from_str(&printed(&lab, &["sessions", "show", &id[..8], "--as", "messages"])).unwrap();
    assert_eq!((live.as_array().map(Vec::len), &live), (Some(8), &stored));
    assert_eq!(alhena(&lab, &["sessions", "repair"]).stdout_text(), "");
}
