//! What `alhena sessions repair` mends, the real CLI takes: a repaired session is resumed, and the model is sent its history.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use alhena_agent::{Approval, Resume};
use alhena_model::Status;
use alhena_scripted::{After, Scenario, Turn};
use serde_json::{Value, json};

use super::printed;
use crate::lab::{Build, Lab};

fn lab() -> Lab {
    let first = Turn::new().thought("Plan", "Read it.").call("read_file", json!({"file_path": "secret.txt"}));
    let scenario = Scenario::new()
        .turn(first)
        .turn(Turn::say("The word is xyzzy."))
        .turn(Turn::say("As I said."))
        .after(After::Repeat);
    let lab = Lab::real("repaired", "0.61.0", scenario);
    fs::write(lab.workspace().join("secret.txt"), "xyzzy\n").unwrap();
    lab
}

/// The session of a run, and its file, long after the CLI has ended.
fn recorded(lab: &Lab) -> (String, PathBuf) {
    let outcome = lab.run(lab.request("What is the word?").approval(Approval::Yolo));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    let id = outcome.session_id.clone().unwrap();
    let listed: Value = serde_json::from_str(&printed(lab, &["sessions", "list", "--json"])).unwrap();
    assert_eq!(listed[0]["id"], json!(id));
    (id, PathBuf::from(listed[0]["file"].as_str().unwrap()))
}

fn damage(path: &PathBuf, change: impl FnOnce(String) -> String) {
    let text = change(fs::read_to_string(path).unwrap());
    let mut file = File::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
}

/// Everything that the last request told the model.
fn history(lab: &Lab) -> String {
    let requests = lab.server.requests("lab");
    let last = requests.iter().rfind(|request| request.action == "streamGenerateContent");
    last.unwrap().body["contents"].to_string()
}

fn assert_resumes(lab: &Lab, id: &str) {
    let request = lab.request("Say it again").approval(Approval::Yolo).resume(Resume::Id(id.to_owned()));
    let outcome = lab.run(request);
    assert_eq!(
        (outcome.status, outcome.session_id.as_deref()),
        (Status::Success, Some(id)),
        "{:?}",
        outcome.failure
    );
    let told = history(lab);
    for said in ["What is the word?", "read_file", "xyzzy", "The word is xyzzy.", "Say it again"] {
        assert!(told.contains(said), "{said} is not in {told}");
    }
}

#[test]
fn real_cli_a_session_without_its_header_is_repaired_and_resumed() {
    let lab = lab();
    let (id, path) = recorded(&lab);
    // As it is when a CLI that started meanwhile has deleted a young session (observed with 0.61.0).
    damage(&path, |text| text.split_inclusive('\n').skip(1).collect());
    let listed =
        || -> Value { serde_json::from_str(&printed(&lab, &["sessions", "list", "--json"])).unwrap() };
    assert_eq!(listed()[0]["state"], json!("headless"));
    printed(&lab, &["sessions", "repair", "--apply"]);
    let mended = &listed()[0];
    assert_eq!(mended["state"], json!("answered"));
    // Only the beginning of its id is left, in the name of the file.
    let mended = mended["id"].as_str().unwrap();
    assert!(mended.starts_with(&id[..8]), "{mended} {id}");
    assert_resumes(&lab, mended);
}

#[test]
fn real_cli_messages_that_were_dropped_come_back_to_the_model() {
    let lab = lab();
    let (id, path) = recorded(&lab);
    // As a cancelled run does it: a checkpoint with nothing but the context.
    damage(&path, |text| {
        let context = text.lines().find(|line| line.contains("\"$set\":{\"messages\"")).unwrap().to_owned();
        text + &context + "\n"
    });
    let listed: Value = serde_json::from_str(&printed(&lab, &["sessions", "list", "--json"])).unwrap();
    assert_eq!(listed[0]["state"], json!("lost"));
    printed(&lab, &["sessions", "repair", "--apply"]);
    assert_resumes(&lab, &id);
}

#[test]
fn real_cli_goes_on_with_what_a_list_prints_with_or_without_an_equals_sign() {
    let lab = lab();
    let (id, _) = recorded(&lab);
    let short = &id[..8];
    let equals = format!("--resume={short}");
    for args in [
        vec!["--resume", short, "Say it again"],
        vec![&equals, "Say it again"],
        vec!["--resume", "Say it again"],
    ] {
        let mut all = vec!["--model", "gemini-2.5-flash", "--as", "outcome"];
        all.extend(&args);
        let done = alhena_testbed::run_bounded(&mut lab.command(&all), Duration::from_secs(120)).unwrap();
        let outcome: Value = serde_json::from_str(&done.stdout_text()).unwrap();
        assert_eq!(outcome["session_id"], json!(id), "{args:?}: {outcome:#}");
        assert!(history(&lab).contains("The word is xyzzy."), "{args:?}");
    }
}

#[test]
fn real_cli_that_goes_on_with_one_session_several_times_at_once_keeps_all_and_says_so() {
    let lab = lab();
    let (id, _) = recorded(&lab);
    let request = || lab.request("Say it again").approval(Approval::Yolo).resume(Resume::Id(id.clone()));
    let runs: Vec<_> = (0..3).map(|_| lab.start(request())).collect();
    let outcomes: Vec<_> = runs.into_iter().map(alhena_agent::Run::outcome_blocking).collect();
    let mut kept: Vec<String> = Vec::new();
    for outcome in &outcomes {
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        kept.extend(outcome.warnings.iter().filter(|text| text.contains("both versions are kept")).cloned());
    }
    // The first to end takes the session's place; each of the others says where its version is.
    assert_eq!(kept.len(), 2, "{outcomes:#?}");
    for warning in &kept {
        let ours = warning.rsplit(" and ").next().unwrap();
        assert!(fs::read_to_string(ours).unwrap().contains("Say it again"), "{warning}");
    }
}
