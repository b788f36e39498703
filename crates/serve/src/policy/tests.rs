#![allow(clippy::unwrap_used)]

use alhena_model::policy::MODES;
use serde_json::json;

use super::*;

struct Place {
    dir: tempfile::TempDir,
    policy: Policy,
}

/// A root with a folder and a file in it, and a file and a folder outside.
fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("app")).unwrap();
    std::fs::create_dir(dir.path().join("outside")).unwrap();
    std::fs::write(dir.path().join("secret"), "s").unwrap();
    std::fs::write(root.join("prompt.txt"), "p").unwrap();
    alhena_sys::files::symlink(dir.path().join("outside"), root.join("link")).unwrap();
    alhena_sys::files::symlink(dir.path().join("secret"), root.join("linked-file")).unwrap();
    let policy = below(Some(&root)).unwrap();
    Place { dir, policy }
}

fn admit_as(kind: TaskKind, policy: &Policy, given: Value) -> Result<(Option<Prompt>, RunOptions), String> {
    let admitted = read(given.as_object().unwrap()).and_then(|(mut prompt, mut options)| {
        admit(policy, kind, &mut prompt, &mut options)?;
        Ok((prompt, options))
    });
    admitted.map_err(|problem| serde_json::to_string(&problem).unwrap())
}

fn run(policy: &Policy, given: Value) -> Result<RunOptions, String> {
    admit_as(TaskKind::Run, policy, given).map(|(_, options)| options)
}

#[test]
fn folders_and_files_are_below_the_root_whatever_they_are_called() {
    let Place { dir, policy } = &place();
    let root = policy.root.clone().unwrap();
    let (prompt, options) =
        admit_as(TaskKind::Run, policy, json!({"dir": "app", "prompt_file": "prompt.txt"})).unwrap();
    assert_eq!(options.dir, Some(root.join("app")));
    assert_eq!(prompt, Some(Prompt::File(root.join("prompt.txt"))));
    assert_eq!(run(policy, json!({})).unwrap().dir, Some(root));
    let secret = dir.path().join("secret");
    let tricks = [
        json!({"dir": ".."}),
        json!({"dir": "app/../.."}),
        json!({"dir": "/"}),
        json!({"dir": "link"}),
        json!({"dir": "link/../root/../outside"}),
        json!({"dir": dir.path().join("rootless")}),
        json!({"include_dir": ["app", "link"]}),
        json!({"include_dir": "../outside"}),
        json!({"prompt_file": secret}),
        json!({"prompt_file": "linked-file"}),
        json!({"prompt_file": "../nothing-there"}),
        json!({"system_prompt_file": "linked-file"}),
        json!({"schema": "linked-file"}),
        json!({"prices": secret}),
        json!({"policy": [secret]}),
        json!({"rules": secret}),
        json!({"offline": secret}),
        json!({"cassette": "linked-file"}),
        json!({"cassette": "link/new.json"}),
        json!({"cassette": "../new.json"}),
    ];
    for trick in tricks {
        let refused = run(policy, trick.clone()).unwrap_err();
        assert!(refused.contains("\"status\":403"), "{trick}: {refused}");
    }
    assert!(run(policy, json!({"cassette": "new.json"})).is_ok());
    for wrong in [json!({"dir": "prompt.txt"}), json!({"dir": 5}), json!({"dir": "a\u{0}b"})] {
        assert!(run(policy, wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn what_a_request_may_not_is_forbidden_and_what_makes_no_sense_is_wrong() {
    let policy = Policy { max_approval: Approval::Default, ..place().policy };
    for (given, status) in [
        (json!({"approval": "yolo"}), 403),
        (json!({"allow": "shell(*)"}), 403),
        (json!({"gemini": "/bin/sh"}), 403),
        (json!({"env": {"PATH": "/tmp"}}), 403),
        (json!({"cassette": "prompt.txt", "cassette_mode": "record"}), 403),
        (json!({"record": "app"}), 400),
        (json!({"schema": "{no json"}), 400),
        (json!({"schema": 5}), 400),
        (json!({"schema": [1]}), 400),
        (json!({"schema": true}), 400),
        (json!({"prompt": 5}), 400),
        (json!({"prompt": ["a"]}), 400),
        (json!({"copy": true}), 400),
        (json!({"an_option_that_run_gets_one_day": "x"}), 400),
    ] {
        let refused = run(&policy, given.clone()).unwrap_err();
        assert!(refused.contains(&format!("\"status\":{status}")), "{given}: {refused}");
    }
}

#[test]
fn a_conversation_has_no_prompt_of_its_own() {
    let policy = place().policy;
    for wrong in [json!({"prompt": "p"}), json!({"schema": {}}), json!({"transport": "headless"})] {
        let refused = admit_as(TaskKind::Conversation, &policy, wrong.clone()).unwrap_err();
        assert!(refused.contains("cannot be given for a conversation"), "{wrong}: {refused}");
    }
}

#[test]
fn whoever_names_no_mode_gets_one_below_the_limit() {
    let place = place();
    let mode = |max_approval, kind, given| {
        let policy = Policy { max_approval, ..place.policy.clone() };
        admit_as(kind, &policy, given).unwrap().1.approval
    };
    for kind in TaskKind::ALL {
        assert_eq!(mode(Approval::Plan, kind, json!({})), Some(Approval::Plan));
        assert_eq!(mode(Approval::Default, kind, json!({})), None, "files may say it");
    }
    // The scripted model does all that it may, but in a conversation it is the questions that one wants to see.
    let offline = |kind| mode(Approval::AutoEdit, kind, json!({"offline": true}));
    assert_eq!(TaskKind::ALL.map(offline), [Some(Approval::AutoEdit), Some(Approval::Default)]);
}

#[test]
fn the_defaults_of_files_count_no_more_than_a_request() {
    let policy = Policy { max_approval: Approval::AutoEdit, ..place().policy };
    let request =
        |approval| ResolvedRequest { dir: Some(policy.base.clone()), approval, ..ResolvedRequest::default() };
    let limited = |given: &RunOptions, mut request| {
        limit(&policy, given, &mut request).map(|()| request.approval).map_err(|failure| failure.kind)
    };
    let none = RunOptions::default();
    assert_eq!(limited(&none, request(Approval::Yolo)), Ok(Approval::AutoEdit));
    assert_eq!(limited(&none, request(Approval::Plan)), Ok(Approval::Plan));
    let given = RunOptions { approval: Some(Approval::AutoEdit), ..RunOptions::default() };
    assert_eq!(limited(&given, request(Approval::AutoEdit)), Ok(Approval::AutoEdit));
    assert_eq!(limited(&given, request(Approval::Yolo)), Err(FailureKind::Input));
    let elsewhere = ResolvedRequest { dir: Some("/".into()), ..request(Approval::Plan) };
    assert_eq!(limited(&none, elsewhere), Err(FailureKind::Input));
}

#[test]
fn to_allow_always_takes_a_limit_that_would_not_ask() {
    let policy = place().policy;
    let may = |max_approval| {
        let policy = Policy { max_approval, ..policy.clone() };
        (may_allow_always(&policy, true).is_ok(), may_allow_always(&policy, false).is_ok())
    };
    assert_eq!(MODES.map(may), [(false, false), (false, false), (true, false), (true, true)]);
}

#[test]
fn a_root_is_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(below(Some(&dir.path().join("file"))).is_err());
}
