//! agent-cli-sdk's package, in TypeScript.

use std::path::PathBuf;

use alhena::scripted::{Scenario, Turn, When};
use alhena_testbed::cache;
use alhena_testbed::real_cli::{Optional, npm_install};
use serde_json::json;

use crate::place::Place;

const TYPESCRIPT: &str = "5.9.3";
const NODE_TYPES: &str = "20.19.0";

/// The compiler, and the types of Node beside it.
fn typescript() -> PathBuf {
    cache::entry(&format!("typescript/{TYPESCRIPT}"), |directory| {
        npm_install(directory, &format!("typescript@{TYPESCRIPT}"), Optional::LeftOut)?;
        npm_install(directory, &format!("@types/node@{NODE_TYPES}"), Optional::LeftOut)
    })
    .unwrap()
    .join("node_modules")
}

/// Builds the package with the strictest checks, outside of the repository.
fn build(place: &Place) -> PathBuf {
    let modules = typescript();
    let out = place.home.path().join("package");
    let compiler = modules.join("typescript/bin/tsc");
    let mut command =
        place.command("agent-cli-sdk", "node", &[&compiler.to_string_lossy(), "-p", ".", "--strict"]);
    command.arg("--outDir").arg(&out).arg("--typeRoots").arg(modules.join("@types"));
    place.run(&mut command);
    let manifest = cache::workspace().join("hosts/agent-cli-sdk/package.json");
    std::fs::copy(manifest, out.join("package.json")).unwrap();
    out
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
        ("json", Scenario::new().turn(Turn::say("Here:\n```json\n{\"files\": [\"a\", \"b\"]}\n```"))),
        ("talk", Scenario::new().turn(Turn::say("Hello.")).turn(Turn::say("Tony."))),
        ("refused", Scenario::new().turn(Turn::error(400, refused).always())),
        ("hang", Scenario::new().turn(Turn::new().text("Thinking").hang().always())),
    ]
}

#[test]
fn the_typescript_package_keeps_its_contract() {
    let place = Place::new("agent-cli-sdk", scenarios());
    let package = build(&place);
    let mut command = place.command("agent-cli-sdk", "node", &["--test", "--test-concurrency=1", "test/"]);
    let done = place.run(command.current_dir(&package));
    let said = done.stdout_text();
    assert!(said.contains("# skipped 0"), "{said}");
    assert_eq!(place.requests("write")[0].prompt(), Some("- write it"));
    let talk = place.requests("talk");
    let texts: Vec<&str> = talk.last().unwrap().texts().collect();
    assert!(texts.contains(&"My name is Tony"), "{texts:?}");
    place.assert_nothing_left();
}

#[test]
fn the_typescript_example_runs() {
    let answer = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "haiku.txt", "content": "rivers\n"})))
        .turn(Turn::say("Here it is."));
    let place = Place::new("agent-cli-sdk-example", [("example", answer)]);
    let example = build(&place).join("examples/basic.js");
    let mut command = place.command("agent-cli-sdk", "node", &[&example.to_string_lossy(), "Write it"]);
    let done = place.run(command.current_dir(place.home.workspace()));
    let said = done.stdout_text();
    assert!(said.starts_with("[Write]\nHere it is.\ndone, 3 messages, session "), "{said}");
}
