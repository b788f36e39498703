//! The npm packages for Node and for agent-cli-sdk, in TypeScript.

use std::path::Path;
use std::process::Command;

use alhena_scripted::{Scenario, Turn, When};
use alhena_testbed::npm::Packages;
use alhena_testbed::{Finished, tools};
use serde_json::json;

use super::place::{Place, conversation, failing_tools};
use super::promptfoo::PROMPTFOO;

pub const SDK: &str = "@alhena/agent-cli-sdk-gemini";

fn build(place: &Place) -> Packages {
    Packages::build(&place.home.path().join("npm"), &[SDK]).unwrap()
}

/// `npm test` of a package, on a release of Node.
fn npm_test(place: &Place, package: &Path, node: Option<&Path>, scenarios: bool) -> Finished {
    let mut command = place.command("agent-cli-sdk", "npm", &["test"]);
    if let Some(directory) = node.and_then(Path::parent) {
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", directory.display()));
    }
    if !scenarios {
        command.env_remove("ALHENA_TEST_SCENARIOS");
    }
    let command: &mut Command = command.env("npm_config_update_notifier", "false");
    place.run(command.current_dir(package))
}

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let after = |tool: &str| When::new().response_of(tool);
    let refused = json!({"code": 400, "message": "Bad argument.", "status": "INVALID_ARGUMENT"});
    let write = json!({"file_path": "made.txt", "content": "made\n"});
    let shell = json!({"command": "echo ran; exit 3", "description": "run"});
    vec![
        (
            "write",
            Scenario::new().turn(Turn::say("I wrote it.").when(after("write_file")).always()).turn(
                Turn::new().thought("Plan", "Write it.").text("I write. ").call("write_file", write).always(),
            ),
        ),
        (
            "shell",
            Scenario::new()
                .turn(Turn::say("It ran.").when(after("run_shell_command")))
                .turn(Turn::new().call("run_shell_command", shell)),
        ),
        (
            "json",
            Scenario::new().turn(Turn::say("Here:\n```json\n{\"files\": [\"a\", \"b\"]}\n```").always()),
        ),
        ("talk", Scenario::new().turn(Turn::say("Hello.")).turn(Turn::say("Tony."))),
        ("refused", Scenario::new().turn(Turn::error(400, refused).always())),
        ("failing", failing_tools()),
        ("failing-sdk", failing_tools()),
        ("conversation", conversation()),
        ("hang", Scenario::new().turn(Turn::new().text("Thinking").hang().always())),
    ]
}

#[test]
fn the_typescript_packages_keep_their_contracts() {
    let place = Place::new("agent-cli-sdk", scenarios());
    let packages = build(&place);
    for package in ["alhena", SDK] {
        let said = npm_test(&place, &packages.directory(package), None, true).stdout_text();
        assert!(said.contains(" skipped 0") && said.contains(" fail 0"), "{said}");
    }
    assert_eq!(place.requests("write")[0].prompt(), Some("- write it"));
    let talk = place.requests("talk");
    let texts: Vec<&str> = talk.last().unwrap().texts().collect();
    assert!(texts.contains(&"My name is Tony"), "{texts:?}");
    place.assert_nothing_left();
}

#[test]
fn npm_test_works_on_every_node_that_the_packages_promise() {
    let place = Place::new("agent-cli-sdk-nodes", []);
    let packages = Packages::build(&place.home.path().join("npm"), &[SDK, PROMPTFOO]).unwrap();
    for node in tools::nodes().unwrap() {
        for name in ["alhena", SDK, PROMPTFOO] {
            let said = npm_test(&place, &packages.directory(name), Some(&node), false);
            assert!(said.stdout_text().contains(" fail 0"), "{}\n{}", node.display(), said.stdout_text());
        }
    }
}

#[test]
fn the_typescript_examples_run() {
    let answer = || {
        Scenario::new()
            .turn(Turn::new().call("write_file", json!({"file_path": "haiku.txt", "content": "rivers\n"})))
            .turn(Turn::say("Here it is."))
    };
    let place = Place::new("agent-cli-sdk-example", [("sdk", answer())]);
    let packages = build(&place);
    let run = |place: &Place, example: &Path| {
        let mut command = place.command("agent-cli-sdk", "node", &[&example.to_string_lossy(), "Write it"]);
        place.run(command.current_dir(place.home.workspace())).stdout_text()
    };
    let said = run(&place, &packages.directory(SDK).join("dist/examples/basic.js"));
    assert!(said.starts_with("[Write]\nHere it is.\ndone, 3 messages, session "), "{said}");
    let place = Place::new("node-example", [("node", answer())]);
    let said = run(&place, &packages.directory("alhena").join("dist/examples/haiku.js"));
    assert_eq!(said, "- Write\nHere it is.\ncreated haiku.txt\n");
}
