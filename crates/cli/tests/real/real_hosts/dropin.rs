//! The drop-in: each host's own command line, as its document or its source writes it, in a folder that nobody trusts. The
//! bare CLI 0.61.0 refuses most of them.

use std::process::{Command, Stdio};
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, Finished, run_bounded};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::place::{ALHENA, Place};

const LIMIT: Duration = Duration::from_secs(120);
const MODEL: [&str; 2] = ["-m", "gemini-2.5-flash"];

fn place(name: &str, scenario: Scenario) -> Place {
    Place::new(name, [("dropin", scenario)])
}

fn hello() -> Scenario {
    Scenario::new().turn(Turn::say("Hello there."))
}

/// A file is written and a command runs, if the mode allows it.
fn work() -> Scenario {
    Scenario::new()
        .turn(
            Turn::new()
                .text("Working. ")
                .call("write_file", json!({"file_path": "made.txt", "content": "made\n"}))
                .call("run_shell_command", json!({"command": "echo ran", "description": "run"})),
        )
        .turn(Turn::say("Finished."))
}

/// `alhena gemini ARGS...` in the workspace.
fn gemini(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command("aiwf", ALHENA, &[]);
    command.arg("gemini").args(arguments).current_dir(place.home.workspace());
    command
}

fn run(place: &Place, arguments: &[&str]) -> Finished {
    run_bounded(&mut gemini(place, arguments), LIMIT).unwrap()
}

fn lines(done: &Finished) -> Vec<Value> {
    done.stdout_text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
}

fn asked(place: &Place) -> Option<String> {
    place.requests("dropin").first().and_then(|request| request.prompt().map(str::to_owned))
}

#[test]
fn aiwf_writes_files_in_an_untrusted_folder() {
    let place = place("dropin-aiwf", work());
    let include = place.home.tmp().to_string_lossy().into_owned();
    let arguments = [
        &["-o", "stream-json", "-y"][..],
        &MODEL,
        &["--include-directories", &include, "--allowed-tools", "read_file"],
        &["-p", "Process the prompt in prompt.md"],
    ]
    .concat();
    let done = run(&place, &arguments);
    let lines = lines(&done);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr_text());
    assert_eq!(
        kinds(&lines),
        [
            "init",
            "message",
            "message",
            "tool_use",
            "tool_use",
            "tool_result",
            "tool_result",
            "message",
            "result"
        ]
    );
    assert_eq!(lines.last().unwrap()["status"], "success");
    assert_eq!(asked(&place).as_deref(), Some("Process the prompt in prompt.md"));
    assert_eq!(std::fs::read_to_string(place.home.workspace().join("made.txt")).unwrap(), "made\n");
    place.assert_nothing_left();
}

#[test]
fn agent_cli_sdk_gives_the_prompt_as_a_word() {
    for (mode, wrote) in [
        (&["--approval-mode", "auto_edit"][..], true),
        (&["--yolo"], true),
        (&["--approval-mode", "default"], false),
    ] {
        let place = place("dropin-sdk", work());
        let arguments = [&["--output-format", "stream-json"], mode, &MODEL, &["Say hello"]].concat();
        let done = run(&place, &arguments);
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr_text());
        assert_eq!(lines(&done).last().unwrap()["status"], "success");
        assert_eq!(asked(&place).as_deref(), Some("Say hello"));
        assert_eq!(place.home.workspace().join("made.txt").is_file(), wrote, "{mode:?}");
    }
}

#[test]
fn openase_streams() {
    let place = place("dropin-openase", hello());
    let arguments = [
        &MODEL[..],
        &["--approval-mode=yolo", "-p", "You help.## User request\nFix it", "--output-format", "stream-json"],
    ]
    .concat();
    let done = run(&place, &arguments);
    let lines = lines(&done);
    assert_eq!(kinds(&lines), ["init", "message", "message", "result"], "{}", done.stderr_text());
    assert_eq!((&lines[2]["content"], done.status.code()), (&json!("Hello there."), Some(0)));
}

// E-06 to E-15: a command line of which the CLI rejects four parts
#[test]
fn promptfoos_plan_is_understood() {
    let place = place("dropin-promptfoo", work());
    let arguments = [
        &["-p", "-starts with a dash", "--output-format", "json"],
        &MODEL[..],
        &[
            "--approval-mode",
            "full_auto",
            "--yolo",
            "--sandbox",
            "none",
            "--disable-tool",
            "run_shell_command",
        ],
    ]
    .concat();
    let mut command = gemini(&place, &arguments);
    let done = run_bounded(command.env("ALHENA_EXPLAIN", "1"), LIMIT).unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr_text());
    let report: Value = serde_json::from_str(&done.stdout_text()).unwrap();
    assert_eq!(report["response"], "Finished.");
    let counts = |tool: &str| {
        let tool = &report["stats"]["tools"]["byName"][tool];
        ["count", "success", "fail"].map(|name| tool[name].as_u64())
    };
    assert_eq!(counts("write_file"), [Some(1), Some(1), Some(0)]);
    assert_eq!(counts("run_shell_command"), [Some(1), Some(0), Some(1)]);
    assert!(report["stats"]["models"]["gemini-2.5-flash"]["tokens"]["prompt"].as_u64().unwrap() > 0);
    assert_eq!(asked(&place).as_deref(), Some("-starts with a dash"));
    let explained = done.stderr_text();
    for part in
        ["full_auto", "--sandbox none", "--disable-tool run_shell_command", "starts with a dash", "together"]
    {
        assert!(explained.contains(part), "{part} is not explained: {explained}");
    }
}

#[test]
fn a_prompt_on_stdin_comes_before_the_one_in_the_arguments() {
    let place = place("dropin-stdin", hello());
    let input = place.home.tmp().join("input");
    std::fs::write(&input, "int main() {}").unwrap();
    let mut command = gemini(&place, &["-p", "Explain", "-m", "gemini-2.5-flash"]);
    let mut child =
        command.stdin(std::fs::File::open(&input).unwrap()).stdout(Stdio::piped()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(asked(&place).as_deref(), Some("int main() {}\n\nExplain"));
}

#[test]
fn text_is_what_the_cli_prints() {
    let place = place("dropin-text", work());
    let done = run(&place, &["--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", "Go"]);
    assert_eq!((done.stdout_text().as_str(), done.status.code()), ("Working. \nFinished.\n", Some(0)));
}

// The CLI exits 0 here.
#[test]
fn a_blocked_answer_is_no_success_in_any_format() {
    for format in ["stream-json", "json", "text"] {
        let place = place("dropin-blocked", Scenario::new().turn(Turn::new().finish("SAFETY").always()));
        let done = run(&place, &["-p", "Go", "-m", "gemini-2.5-flash", "-o", format]);
        let message = "The model response was blocked due to safety settings.";
        assert_eq!(done.status.code(), Some(1), "{format}: {}", done.stderr_text());
        match format {
            "stream-json" => assert_eq!(lines(&done).last().unwrap()["status"], "error"),
            "json" => {
                let report: Value = serde_json::from_str(&done.stdout_text()).unwrap();
                assert_eq!(report["error"], json!({"type": "INVALID_STREAM", "message": message, "code": 1}));
            }
            _ => assert!(done.stderr_text().contains(message), "{}", done.stderr_text()),
        }
    }
}

// The CLI leaves standard output empty in json mode.
#[test]
fn errors_of_the_api_are_where_the_host_looks() {
    let refused = json!({"code": 400, "message": "Bad argument.", "status": "INVALID_ARGUMENT"});
    for format in ["stream-json", "json"] {
        let place = place("dropin-400", Scenario::new().turn(Turn::error(400, refused.clone()).always()));
        let done = run(&place, &["-p", "Go", "-m", "gemini-2.5-flash", "-o", format]);
        assert_eq!(done.status.code(), Some(144), "{}", done.stderr_text());
        let error = match format {
            "json" => serde_json::from_str::<Value>(&done.stdout_text()).unwrap()["error"].clone(),
            _ => lines(&done).last().unwrap()["error"].clone(),
        };
        assert!(error["message"].as_str().unwrap().contains("Bad argument."), "{error}");
    }
}

#[test]
fn without_a_key_there_is_still_a_result() {
    let place = place("dropin-key", hello());
    let mut command = gemini(&place, &["-p", "Go", "-o", "stream-json"]);
    let done = run_bounded(command.env_remove("GEMINI_API_KEY"), LIMIT).unwrap();
    let lines = lines(&done);
    assert_eq!(done.status.code(), Some(41));
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["status"]), (&json!("result"), &json!("error")));
    assert!(last["error"]["message"].as_str().unwrap().contains("GEMINI_API_KEY"), "{last}");
}

// SIGTERM to the bare CLI's launcher does nothing at all.
#[test]
fn sigterm_during_a_shell_command_stops_everything_with_a_result() {
    for (sent, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let sleep =
            Turn::new().call("run_shell_command", json!({"command": "sleep 300", "description": "rest"}));
        let place = place("dropin-signal", Scenario::new().turn(sleep));
        let output = place.home.tmp().join("output");
        let mut command = gemini(&place, &["-y", "-m", "gemini-2.5-flash", "-p", "Go", "-o", "stream-json"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(std::fs::File::create(&output).unwrap()).spawn().unwrap();
        let text = || std::fs::read_to_string(&output).unwrap();
        assert!(Deadline::after(LIMIT).wait_until(|| text().contains("tool_use")), "{}", text());
        signal(child.id(), sent);
        let mut status = None;
        assert!(Deadline::after(LIMIT).wait_until(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        }));
        assert_eq!(status.unwrap().code(), Some(code));
        let last: Value = serde_json::from_str(text().lines().last().unwrap()).unwrap();
        assert_eq!((&last["type"], &last["status"]), (&json!("result"), &json!("error")), "{last}");
        place.assert_nothing_left();
    }
}

// D-31, D-35: commands, versions and everything for people goes to the real CLI as it is.
#[test]
fn commands_and_versions_are_the_real_clis() {
    let place = place("dropin-pass", hello());
    let version = run(&place, &["--version"]);
    assert_eq!((version.stdout_text().trim(), version.status.code()), ("0.61.0", Some(0)));
    let add = run(
        &place,
        &[
            "mcp",
            "add",
            "cao-mcp-server",
            "--scope",
            "user",
            "-e",
            "CAO_TERMINAL_ID=abc12345",
            "npx",
            "-y",
            "cao-mcp-server",
        ],
    );
    assert_eq!(add.status.code(), Some(0), "{}", add.stderr_text());
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(place.home.gemini().join("settings.json")).unwrap())
            .unwrap();
    assert_eq!(
        settings["mcpServers"]["cao-mcp-server"],
        json!({"command": "npx", "args": ["-y", "cao-mcp-server"], "env": {"CAO_TERMINAL_ID": "abc12345"}})
    );
}
