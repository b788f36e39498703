//! How a prompt gets to the real CLI.

use std::io::{Seek, Write};

use crate::lab::{Lab, warnings};
use alhena_agent::{Prompt, PromptBy, ResolvedRequest};
use alhena_model::{Outcome, Status};
use alhena_scripted::{After, RecordedRequest, Scenario, Turn};
use alhena_testbed::versions;
use serde_json::json;

/// The prompts that reached the model, without the CLI's own first message.
fn sent(lab: &Lab) -> Vec<String> {
    let requests = lab.server.requests("lab");
    requests.iter().filter_map(|request| request.prompt()).map(str::to_owned).collect()
}

fn succeeded(outcome: &Outcome) {
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(warnings(outcome), [""; 0]);
}

#[test]
fn real_cli_a_positional_prompt_arrives_whole_whatever_flags_stand_beside_it() {
    for version in versions() {
        let lab = Lab::real("positional", &version, Scenario::new().turn(Turn::say("Hi")));
        let beside = tempfile::tempdir().unwrap();
        let mut request = lab.request("Say \"hi\"\nto me, mcp");
        request.prompt_by = PromptBy::Positional;
        // A flag that takes several values would swallow what comes after it.
        request.include_dirs = vec![beside.path().to_owned()];
        succeeded(&lab.run(request));
        assert_eq!(sent(&lab), ["Say \"hi\"\nto me, mcp"], "{version}");
    }
}

/// Elsewhere that warning is left out, because a slow machine gives it: it is not to be given always.
#[test]
fn real_cli_that_has_ended_is_noticed_at_once() {
    let lab = Lab::real("exits", "0.61.0", Scenario::new().turn(Turn::say("Hi")).after(After::Repeat));
    let mut told = Vec::new();
    let is_noticed = (0..5).any(|_| {
        told = lab.run(lab.request("Hello")).warnings.clone();
        told.is_empty()
    });
    assert!(is_noticed, "{told:?}");
}

#[test]
fn a_positional_prompt_that_the_cli_would_take_for_something_else_is_refused() {
    let lab = Lab::real("not positional", "0.61.0", Scenario::new());
    for prompt in ["-x", "--yolo", "mcp", "1.0", "0x10", "1e3"] {
        let mut request = lab.request(prompt);
        request.prompt_by = PromptBy::Positional;
        let refused = lab.gemini.start(request, &lab.env).err().map(|error| error.exit_status());
        assert_eq!(refused, Some(2), "{prompt}");
    }
}

/// A model that does what a prompt in a file needs: it reads the file that the prompt names.
fn reads_the_prompt_file() -> Scenario {
    Scenario::dynamic(|request: &RecordedRequest| {
        let read = request.responses().next().is_some();
        let named = request.prompt().and_then(|prompt| prompt.strip_prefix("Process the prompt in "));
        match named.filter(|_| !read) {
            Some(path) => Turn::new().call("read_file", json!({"file_path": path})),
            None => Turn::say("Read."),
        }
    })
}

fn by_file(lab: &Lab, path: &std::path::Path) -> ResolvedRequest {
    let mut request = lab.request("");
    request.prompt = Some(Prompt::File(path.to_owned()));
    request.prompt_by = PromptBy::File;
    request
}

/// What the model got to read.
fn read_by_model(lab: &Lab) -> String {
    let requests = lab.server.requests("lab");
    requests.last().unwrap().responses().map(|(_, response)| response.to_string()).collect()
}

#[test]
fn real_cli_a_prompt_file_outside_of_the_workspace_can_be_read_and_its_neighbours_cannot() {
    for version in versions() {
        let lab = Lab::real("prompt file", &version, reads_the_prompt_file());
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("p.md");
        std::fs::write(&path, "Say the word xylophone.").unwrap();
        succeeded(&lab.run(by_file(&lab, &path)));
        assert!(read_by_model(&lab).contains("xylophone"), "{version}: {}", read_by_model(&lab));
        let named = sent(&lab).concat();
        assert!(!named.contains(elsewhere.path().to_str().unwrap()), "{named}");
    }
}

#[test]
fn real_cli_a_prompt_file_that_the_cli_denies_is_a_warning() {
    let lab = Lab::real("denied", "0.61.0", reads_the_prompt_file());
    std::fs::write(lab.workspace().join(".geminiignore"), "*.md\n").unwrap();
    let path = lab.workspace().join("p.md");
    std::fs::write(&path, "Say the word xylophone.").unwrap();
    let outcome = lab.run(by_file(&lab, &path));
    assert!(!read_by_model(&lab).contains("xylophone"));
    let start = format!("The model could not read the prompt in {}: ", path.display());
    assert!(outcome.warnings.iter().any(|warning| warning.starts_with(&start)), "{:?}", outcome.warnings);
}

#[test]
fn real_cli_what_is_piped_in_and_instructions_in_a_file_reach_the_model() {
    let lab = Lab::real("piped", "0.61.0", Scenario::new().turn(Turn::say("Fine.")));
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(b"- old\n+ new").unwrap();
    input.rewind().unwrap();
    std::fs::write(lab.workspace().join("pirate.md"), "Always speak like a PIRATE-7731.").unwrap();
    let arguments = ["--model", "gemini-2.5-flash", "--system-prompt-file", "pirate.md", "Review this"];
    let mut command = lab.command(&arguments);
    let done = command.stdin(input).output().unwrap();
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stdout).trim()), (Some(0), "Fine."));
    assert_eq!(sent(&lab), ["- old\n+ new\n\nReview this"]);
    assert!(lab.server.requests("lab")[0].raw_body.contains("PIRATE-7731"));
}

#[test]
fn real_cli_settings_that_keep_it_from_asking_are_named_by_key() {
    let lab = Lab::real("wrong settings", "0.61.0", Scenario::new().turn(Turn::say("Fine.")));
    let path = lab.home.gemini().join("settings.json");
    let mut settings: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    settings["general"] = json!({"maxAttempts": "many"});
    std::fs::write(&path, settings.to_string()).unwrap();
    let outcome = lab.run(lab.request("hello"));
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!(failure.kind, alhena_model::FailureKind::Config, "{failure:?}");
    assert!(
        failure.message.contains("general.maxAttempts (Expected number, received string)"),
        "{failure:?}"
    );
}
