#![allow(clippy::unwrap_used)]

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
    let policy = Policy::new(Some(&root)).unwrap();
    Place { dir, policy }
}

fn admit(policy: &Policy, options: Value) -> Result<Options, String> {
    let Value::Object(options) = options else { return Err("no object".to_owned()) };
    policy
        .admit(&options, Beginning::Run, &|_| true)
        .map_err(|problem| serde_json::to_string(&problem).unwrap())
}

#[test]
fn folders_and_files_are_below_the_root_whatever_they_are_called() {
    let Place { dir, policy } = &place();
    let root = policy.root.clone().unwrap();
    let admitted = admit(policy, json!({"prompt": "p", "dir": "app", "prompt_file": "prompt.txt"})).unwrap();
    assert_eq!(admitted["dir"], json!(root.join("app")));
    assert_eq!(admitted["prompt_file"], json!(root.join("prompt.txt")));
    assert_eq!(admit(policy, json!({})).unwrap()["dir"], json!(root));
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
        let refused = admit(policy, trick.clone()).unwrap_err();
        assert!(refused.contains("\"status\":403"), "{trick}: {refused}");
    }
    assert!(admit(policy, json!({"cassette": "new.json"})).is_ok());
    for wrong in [json!({"dir": "prompt.txt"}), json!({"dir": 5}), json!({"dir": "a\u{0}b"})] {
        assert!(admit(policy, wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_schema_that_is_given_as_it_is_stays_json() {
    let Place { policy, .. } = &place();
    let schema = json!({"type": "object"});
    assert_eq!(admit(policy, json!({"schema": schema})).unwrap()["schema"], schema);
    assert_eq!(admit(policy, json!({"schema": " {\"type\": \"object\"}"})).unwrap()["schema"], schema);
    assert!(admit(policy, json!({"schema": "{no json"})).is_err());
}

#[test]
fn no_mode_is_above_the_limit_and_nothing_else_gives_more() {
    let policy = Policy { max_approval: Approval::AutoEdit, ..place().policy };
    assert_eq!(policy.modes().collect::<Vec<_>>(), ["plan", "default", "auto-edit"]);
    assert!(admit(&policy, json!({"approval": "acceptEdits"})).is_ok());
    for more in [
        json!({"approval": "yolo"}),
        json!({"approval": "bypassPermissions"}),
        json!({"allow_tool": "run_shell_command"}),
        json!({"allow": ["shell(*)"]}),
        json!({"policy": "prompt.txt"}),
        json!({"rules": "prompt.txt"}),
    ] {
        let refused = admit(&policy, more.clone()).unwrap_err();
        assert!(refused.contains("\"status\":403"), "{more}: {refused}");
    }
    // The scripted model does all that it may.
    assert_eq!(admit(&policy, json!({"offline": true})).unwrap()["approval"], "auto-edit");
    let mut request = ResolvedRequest {
        dir: Some(policy.base.clone()),
        approval: Approval::AutoEdit,
        ..ResolvedRequest::default()
    };
    assert!(policy.check(&request).is_ok());
    request.approval = Approval::Yolo;
    assert!(policy.check(&request).is_err(), "the defaults of a file count too");
    request.approval = Approval::Plan;
    request.dir = Some("/".into());
    assert!(policy.check(&request).is_err());
}

#[test]
fn programs_and_variables_are_the_servers_choice() {
    let Place { policy, .. } = place();
    for program in [
        json!({"gemini": "/bin/sh"}),
        json!({"agent_command": "sh -c id"}),
        json!({"hook": ["before-tool=id"]}),
        json!({"mcp_server": "x=sh -c id"}),
        json!({"args": ["--approval-mode=yolo"]}),
        json!({"trust": "settings"}),
        json!({"sandbox": false}),
        json!({"sandbox": "off"}),
        json!({"env": {"PATH": "/tmp"}}),
        json!({"env": ["LD_PRELOAD=/tmp/x.so"]}),
        json!({"env": "NODE_OPTIONS=--require /tmp/x.js"}),
        json!({"record": "app"}),
        json!({"an_option_that_run_gets_one_day": "x"}),
    ] {
        assert!(admit(&policy, program.clone()).is_err(), "{program}");
    }
    let free = Policy { allow_programs: true, allow_env: vec!["LANG".to_owned()], ..policy };
    assert!(admit(&free, json!({"agent_command": "sh", "trust": "settings", "sandbox": false})).is_ok());
    assert!(admit(&free, json!({"env": {"LANG": "C"}})).is_ok());
    assert!(admit(&free, json!({"env": ["LANG=C", "PATH=/tmp"]})).is_err());
}

#[test]
fn a_conversation_has_no_prompt_of_its_own() {
    let policy = place().policy;
    let options = |value: Value| value.as_object().cloned().unwrap();
    for wrong in [json!({"prompt": "p"}), json!({"schema": {}}), json!({"transport": "headless"})] {
        assert!(policy.admit(&options(wrong), Beginning::Conversation, &|_| true).is_err());
    }
    let offline =
        policy.admit(&options(json!({"offline": true})), Beginning::Conversation, &|_| true).unwrap();
    assert_eq!(offline["approval"], "default", "it is the questions that one wants to see");
}

#[test]
fn a_cassette_is_written_only_where_edits_may_be_made() {
    let place = place();
    let root = place.policy.root.clone().unwrap();
    std::fs::write(root.join("talk.json"), "{}").unwrap();
    for max_approval in [Approval::Plan, Approval::Default] {
        let policy = Policy { max_approval, ..place.policy.clone() };
        for writes in [
            json!({"cassette": "prompt.txt", "cassette_mode": "record"}),
            json!({"cassette": "new.json", "cassette_mode": "auto"}),
            json!({"cassette": "new.json"}),
            json!({"cassette": "new.json", "cassette_mode": ["replay"]}),
            json!({"cassette": "talk.json", "cassette_mode": null}),
        ] {
            let refused = admit(&policy, writes.clone()).unwrap_err();
            assert!(refused.contains("\"status\":403"), "{writes}: {refused}");
        }
        let played = json!({"cassette": "talk.json", "cassette_mode": "replay"});
        assert_eq!(admit(&policy, played).unwrap()["cassette"], json!(root.join("talk.json")));
    }
    let policy = Policy { max_approval: Approval::AutoEdit, ..place.policy.clone() };
    assert!(admit(&policy, json!({"cassette": "new.json", "cassette_mode": "record"})).is_ok());
}

#[test]
fn whoever_names_no_mode_gets_one_below_the_limit() {
    let policy = Policy { max_approval: Approval::Plan, ..place().policy };
    for what in [Beginning::Run, Beginning::Conversation] {
        let admitted = policy.admit(&Options::new(), what, &|_| true).unwrap();
        assert_eq!(admitted["approval"], "plan");
    }
    // What a file says counts for no more than the limit, unless somebody asked for it.
    let policy = Policy { max_approval: Approval::Default, ..place().policy };
    let mut request = ResolvedRequest {
        dir: Some(policy.base.clone()),
        approval: Approval::Yolo,
        ..ResolvedRequest::default()
    };
    policy.lower(&mut request, &Options::new());
    assert_eq!(request.approval, Approval::Default);
    request.approval = Approval::Plan;
    policy.lower(&mut request, &Options::new());
    assert_eq!(request.approval, Approval::Plan);
}

#[test]
fn what_only_looks_like_a_text_or_a_schema_is_refused() {
    let policy = place().policy;
    for wrong in [
        json!({"schema": 5}),
        json!({"schema": [1]}),
        json!({"schema": true}),
        json!({"prompt": 5}),
        json!({"prompt": ["a"]}),
    ] {
        let refused = admit(&policy, wrong.clone()).unwrap_err();
        assert!(refused.contains("\"status\":400"), "{wrong}: {refused}");
    }
}

#[test]
fn to_allow_always_takes_a_limit_that_would_not_ask() {
    let policy = place().policy;
    let may = |max_approval| {
        let policy = Policy { max_approval, ..policy.clone() };
        (policy.may_allow_always(true).is_ok(), policy.may_allow_always(false).is_ok())
    };
    assert_eq!(MODES.map(may), [(false, false), (false, false), (true, false), (true, true)]);
}

#[test]
fn a_root_is_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(Policy::new(Some(&dir.path().join("file"))).is_err());
}
