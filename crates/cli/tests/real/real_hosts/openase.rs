//! OpenASE's module, in Go.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use alhena_scripted::{Scenario, Turn, When};
use alhena_testbed::{Deadline, RealCli, cache, tools};
use serde_json::json;

use super::place::Place;

const MODULE: &str = "alhena.dev/hosts/openase";
/// The last release without stream-json.
const WITHOUT_STREAM: &str = "0.10.0";

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let after = |tool: &str| When::new().response_of(tool);
    let work = Scenario::new().turn(Turn::say("All done.").when(after("run_shell_command")).always()).turn(
        Turn::new()
            .text("I begin. ")
            .call("write_file", json!({"file_path": "made.txt", "content": "made\n"}))
            .call("run_shell_command", json!({"command": "echo hello", "description": "greet"}))
            .always(),
    );
    let talk = Scenario::new().turn(Turn::say("Hello.")).turn(Turn::say("Tony."));
    vec![
        ("work", work),
        ("talk", talk),
        ("value", Scenario::new().turn(Turn::say("It is {\"n\": 7}").always())),
        ("quota", Scenario::new().turn(Turn::daily_quota().always())),
        ("hang", Scenario::new().turn(Turn::new().text("Thinking").hang())),
        ("stuck", Scenario::new().turn(Turn::new().text("Thinking").hang().always())),
        ("report", Scenario::new().turn(Turn::say("An old answer.").always())),
    ]
}

fn in_go(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command("openase", tools::go().unwrap(), arguments);
    command
        .env("GOCACHE", cache::root().join("go-build"))
        .env("GOPATH", cache::root().join("go-path"))
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=readonly");
    command
}

/// A program of a host that uses the module as it is here.
pub fn program(place: &Place, source: &str) -> PathBuf {
    let host = place.home.tmp().join("host");
    std::fs::create_dir(&host).unwrap();
    let module = cache::workspace().join("hosts/openase");
    let manifest = format!(
        "module example.org/host\n\ngo 1.21\n\nrequire {MODULE} v0.0.0\n\nreplace {MODULE} => {}\n",
        module.display()
    );
    std::fs::write(host.join("go.mod"), manifest).unwrap();
    std::fs::write(host.join("main.go"), source).unwrap();
    let program = host.join("host");
    let mut build = in_go(place, &["build", "-o", &program.to_string_lossy(), "."]);
    place.run(build.current_dir(&host));
    program
}

#[test]
fn the_go_module_keeps_its_contract() {
    let place = Place::new("openase", scenarios());
    place.run(&mut in_go(&place, &["vet", "./..."]));
    // A bad alhena gets little time to end, the real one enough.
    let bad = &["test", "-count=1", "-skip=TestRealCLI", "./..."];
    place.run(in_go(&place, bad).env_remove("ALHENA_TEST_SCENARIOS"));
    let mut tests = in_go(&place, &["test", "-count=1", "-v", "-run=TestRealCLI", "./..."]);
    let old = RealCli::get(WITHOUT_STREAM).unwrap();
    let done = place.run(tests.env("ALHENA_TEST_OLD_GEMINI", old.bin));
    let said = done.stdout_text();
    assert!(!said.contains("SKIP"), "{said}");
    assert_eq!(said.matches("--- PASS: TestRealCLI").count(), 11, "{said}");
    // The prompt arrived whole, and the second turn of the talk knew the first.
    assert_eq!(place.requests("work")[0].prompt(), Some("- do\n- it"));
    let talk = place.requests("talk");
    let texts: Vec<&str> = talk.last().unwrap().texts().collect();
    assert!(texts.contains(&"My name is Tony") && texts.contains(&"Hello."), "{texts:?}");
    place.assert_nothing_left();
}

const HOST: &str = r#"
package main

import (
	"context"
	"os"

	"alhena.dev/hosts/openase"
)

func main() {
	options := openase.Options{Prompt: "Go", Dir: os.Args[1], Approval: "yolo", Gemini: os.Args[2]}
	turn, err := openase.Start(context.Background(), options)
	for err == nil {
		_, err = turn.Next()
	}
	panic(err)
}
"#;

/// A host that is killed while its agent runs a command leaves neither, whatever the release.
#[test]
fn a_go_host_that_is_killed_leaves_nothing() {
    let work = |mark: &Path| {
        let command = format!("touch {}; sleep 300", mark.display());
        let input = json!({"command": command, "description": "rest"});
        Scenario::new().turn(Turn::new().call("run_shell_command", input).always())
    };
    let marks = tempfile::tempdir().unwrap();
    for (name, version) in [("openase-killed", "0.61.0"), ("openase-killed-old", WITHOUT_STREAM)] {
        let mark = marks.path().join(version);
        let place = Place::new(name, [("work", work(&mark))]);
        let host = program(&place, HOST);
        let workspace = place.home.workspace();
        let gemini = RealCli::get(version).unwrap().bin;
        let arguments = [workspace.to_string_lossy(), gemini.to_string_lossy()];
        let mut command = place.command("openase", host, &[&arguments[0], &arguments[1]]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let begun = Deadline::after(Duration::from_secs(120)).wait_until(|| mark.exists());
        assert!(begun, "{version}: the command never began: {:?}", place.requests("work").len());
        child.kill().unwrap();
        child.wait().unwrap();
        place.assert_nothing_left();
    }
}

#[test]
fn the_go_sources_are_formatted() {
    let gofmt = tools::go().unwrap().with_file_name("gofmt");
    let place = Place::new("openase-format", []);
    let done = place.run(&mut place.command("openase", gofmt, &["-l", "."]));
    assert_eq!(done.stdout_text(), "");
}

#[test]
fn the_go_example_runs() {
    let answer = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "haiku.txt", "content": "rivers\n"})))
        .turn(Turn::say("Here it is."));
    let place = Place::new("openase-example", [("example", answer)]);
    let program = place.home.tmp().join("example");
    place.run(&mut in_go(&place, &["build", "-o", &program.to_string_lossy(), "./example"]));
    let mut command = place.command("openase", &program, &["Write it"]);
    let done = place.run(command.current_dir(place.home.workspace()));
    assert_eq!(done.stdout_text(), "[write_file]\n[created haiku.txt]\nHere it is.\n");
    assert!(Path::new(&place.home.workspace().join("haiku.txt")).is_file());
}
