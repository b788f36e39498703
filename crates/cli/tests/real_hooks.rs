//! Programs that decide while the real CLI works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod lab;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alhena::agent::hooks::{Hooks, Moment, Verdict};
use alhena::scripted::{Scenario, Turn};
use alhena::{Approval, Status, Trust};
use alhena_testbed::run_bounded;
use lab::Lab;
use serde_json::{Map, json};

fn writes() -> Scenario {
    let write = json!({"file_path": "n.txt", "content": "the model's\n"});
    Scenario::new().turn(Turn::new().call("write_file", write)).turn(Turn::new().text("Done."))
}

fn lab(name: &str) -> Lab {
    Lab::real(name, "0.61.0", writes())
}

fn request(lab: &Lab, hooks: Hooks) -> alhena::Request {
    lab.request("write").approval(Approval::Yolo).trust(Trust::Run).hooks(hooks)
}

/// Puts more into the user's settings.
fn add_settings(lab: &Lab, more: serde_json::Value) {
    let path = lab.home.gemini().join("settings.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut settings: Map<_, _> = serde_json::from_str(&text).unwrap();
    settings.extend(more.as_object().cloned().unwrap());
    std::fs::write(path, json!(settings).to_string()).unwrap();
}

/// What the API got last.
fn last_request(lab: &Lab) -> String {
    lab.server.requests("lab").last().unwrap().raw_body.clone()
}

#[test]
fn real_cli_a_denied_tool_never_runs_and_the_model_is_told_why() {
    let lab = lab("deny");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let hooks = Hooks::new([Moment::BeforeTool], move |asked| {
        seen.lock().unwrap().push((asked.tool().to_owned(), asked.input().clone()));
        Verdict::Deny("not on a Monday".to_owned())
    });
    let outcome = lab.run(request(&lab, hooks));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(!lab.workspace().join("n.txt").exists());
    let expected = ("write_file".to_owned(), json!({"file_path": "n.txt", "content": "the model's\n"}));
    assert_eq!(*asked.lock().unwrap(), [expected]);
    assert!(last_request(&lab).contains("not on a Monday"));
}

#[test]
fn real_cli_a_hook_replaces_the_arguments_of_a_tool() {
    let lab = lab("change");
    let hooks = Hooks::new([Moment::BeforeTool], |asked| {
        let mut input: Map<_, _> = asked.input().as_object().cloned().unwrap_or_default();
        input.insert("content".to_owned(), json!("ours\n"));
        Verdict::Allow { input: Some(input), context: None }
    });
    let outcome = lab.run(request(&lab, hooks));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(std::fs::read_to_string(lab.workspace().join("n.txt")).unwrap(), "ours\n");
}

#[test]
fn real_cli_whoever_decides_too_late_or_fails_has_denied() {
    for (name, late) in [("late", true), ("fails", false)] {
        let lab = lab(name);
        let hooks = Hooks::new([Moment::BeforeTool], move |_| match late {
            true => {
                std::thread::sleep(Duration::from_secs(30));
                Verdict::GO_ON
            }
            false => panic!("a bug of whoever decides"),
        });
        let outcome = lab.run(request(&lab, hooks.time_limit(Duration::from_millis(100))));
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        assert!(!lab.workspace().join("n.txt").exists(), "{name}");
    }
}

#[test]
fn real_cli_what_a_hook_adds_after_a_tool_reaches_the_model() {
    let lab = lab("after");
    let hooks = Hooks::new([Moment::AfterTool], |_| Verdict::Allow {
        input: None,
        context: Some("The file is watched.".to_owned()),
    });
    let outcome = lab.run(request(&lab, hooks));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(lab.workspace().join("n.txt").exists());
    assert!(last_request(&lab).contains("The file is watched."));
}

#[test]
fn real_cli_the_users_own_hooks_go_on_working_beside_ours() {
    let lab = lab("both");
    let settings = json!({"hooks": {"BeforeTool": [{"hooks": [
        {"type": "command", "command": format!("touch {}; echo '{{}}'", lab.workspace().join("theirs").display())}
    ]}]}});
    add_settings(&lab, settings);
    let outcome = lab.run(request(&lab, Hooks::new([Moment::BeforeTool], |_| Verdict::GO_ON)));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(lab.workspace().join("theirs").exists() && lab.workspace().join("n.txt").exists());
}

#[test]
fn hooks_that_the_settings_switch_off_are_refused_before_the_start() {
    let lab = lab("off");
    let settings = json!({"hooksConfig": {"enabled": false}});
    add_settings(&lab, settings);
    let hooks = Hooks::new([Moment::BeforeTool], |_| Verdict::GO_ON);
    let error = lab.gemini.run_in(request(&lab, hooks), &lab.env).unwrap_err();
    assert!(error.to_string().contains("switched off"), "{error}");
}

#[test]
fn real_cli_a_command_decides_by_json() {
    let lab = lab("command");
    let deny = r#"before-tool=grep -q n.txt && echo '{"decision":"deny","reason":"no n"}'"#;
    let args = [
        "--trust",
        "--approval",
        "yolo",
        "-m",
        "gemini-2.5-flash",
        "--as",
        "outcome",
        "--hook",
        deny,
        "write",
    ];
    let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
    assert!(done.succeeded(), "{}", done.stderr_text());
    assert!(!lab.workspace().join("n.txt").exists());
    assert!(last_request(&lab).contains("no n"));
}

#[test]
fn hooks_that_are_none_are_refused_with_the_names_of_those_that_there_are() {
    let lab = lab("wrong");
    for (hook, why) in [
        ("at-noon=true", "before-tool, after-tool, before-model"),
        ("before-tool", "EVENT=COMMAND"),
        ("before-tool= ", "no command"),
    ] {
        let done = run_bounded(&mut lab.command(&["--hook", hook, "x"]), Duration::from_secs(30)).unwrap();
        assert_eq!(done.status.code(), Some(2), "{hook}");
        assert!(done.stderr_text().contains(why), "{}", done.stderr_text());
    }
}

#[test]
fn real_cli_a_run_that_a_hook_ends_is_no_success() {
    for moment in [Moment::BeforeTool, Moment::AfterTool, Moment::BeforeModel] {
        let lab = lab(moment.name());
        let hooks = Hooks::new([moment], |_| Verdict::Stop("enough for today".to_owned()));
        let outcome = lab.run(request(&lab, hooks));
        assert_eq!(outcome.status, Status::Cancelled, "{moment:?} {:?}", outcome.failure);
        let failure = outcome.failure.as_ref().unwrap();
        assert_eq!(failure.message, "A hook ended the run: enough for today");
        assert_eq!(lab.workspace().join("n.txt").exists(), moment == Moment::AfterTool);
        assert_eq!(lab.server.requests("lab").len(), usize::from(moment != Moment::BeforeModel));
    }
}

#[test]
fn real_cli_a_model_call_that_is_denied_later_is_no_success_either() {
    let lab = lab("denied later");
    let calls = Arc::new(Mutex::new(0));
    let hooks = Hooks::new([Moment::BeforeModel], move |_| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        if *calls == 1 { Verdict::GO_ON } else { Verdict::Deny("once is enough".to_owned()) }
    });
    let outcome = lab.run(request(&lab, hooks));
    let failure = outcome.failure.as_ref().map(|failure| failure.message.as_str());
    assert_eq!(
        (outcome.status, failure),
        (Status::Cancelled, Some("A hook ended the run: once is enough")),
        "{outcome:?}"
    );
    assert_eq!(lab.server.requests("lab").len(), 1);
}

#[test]
fn real_cli_a_hundred_tools_have_a_hook_each_and_only_those_run_that_are_allowed() {
    let turns = (0..25).map(|turn| {
        let calls = (0..4).map(move |call| {
            let n = turn * 4 + call;
            ("write_file", json!({"file_path": format!("{n}.txt"), "content": format!("{n}\n")}))
        });
        Turn::new().calls(calls)
    });
    let scenario = turns.fold(Scenario::new(), Scenario::turn).turn(Turn::say("Done."));
    let lab = Lab::real("hundred", "0.61.0", scenario);
    let hooks = Hooks::new([Moment::BeforeTool], |asked| {
        let n: u32 = asked.input()["content"].as_str().unwrap().trim().parse().unwrap();
        if n % 2 == 0 { Verdict::GO_ON } else { Verdict::Deny("odd".to_owned()) }
    });
    let outcome = lab.run(request(&lab, hooks));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    for n in 0..100 {
        assert_eq!(lab.workspace().join(format!("{n}.txt")).exists(), n % 2 == 0, "{n}");
    }
}

#[test]
fn real_cli_a_command_that_crashes_or_decides_too_late_has_denied() {
    for (hook, told) in
        [("before-tool=kill -9 $$", "failed (signal: 9"), ("before-tool=sleep 60", "did not decide within")]
    {
        let lab = lab("crash");
        let args = ["--trust", "--approval", "yolo", "-m", "gemini-2.5-flash", "--hook-timeout", "500ms"];
        let args = [&args[..], &["--hook", hook, "write"]].concat();
        let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
        assert!(done.succeeded(), "{}", done.stderr_text());
        assert!(!lab.workspace().join("n.txt").exists(), "{hook}");
        assert!(last_request(&lab).contains(told), "{hook}: {}", last_request(&lab));
    }
}
