//! Programs that decide while the real CLI works.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lab::{Build, Lab};
use alhena_agent::hooks::{Hooks, Moment, Verdict};
use alhena_agent::{Approval, Trust};
use alhena_model::Status;
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::{Map, json};

fn writes() -> Scenario {
    let write = json!({"file_path": "n.txt", "content": "the model's\n"});
    Scenario::new().turn(Turn::new().call("write_file", write)).turn(Turn::new().text("Done."))
}

fn lab(name: &str) -> Lab {
    Lab::real(name, "0.61.0", writes())
}

fn request(lab: &Lab, hooks: Hooks) -> alhena_agent::ResolvedRequest {
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
    let error = lab.gemini.start(request(&lab, hooks), &lab.env).unwrap_err();
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
        if n.is_multiple_of(2) { Verdict::GO_ON } else { Verdict::Deny("odd".to_owned()) }
    });
    let outcome = lab.run(request(&lab, hooks));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    for n in 0..100 {
        assert_eq!(lab.workspace().join(format!("{n}.txt")).exists(), n % 2 == 0, "{n}");
    }
}

#[test]
fn real_cli_a_command_that_crashes_or_decides_too_late_has_denied() {
    // The start of a keeper and a shell counts: only what does not end by itself has a short limit.
    for (hook, limit, told) in [
        ("before-tool=kill -9 $$", "60s", "failed (signal: 9"),
        ("before-tool=sleep 600", "5s", "did not decide within"),
    ] {
        let lab = lab("crash");
        let args = ["--trust", "--approval", "yolo", "-m", "gemini-2.5-flash", "--hook-timeout", limit];
        let args = [&args[..], &["--hook", hook, "write"]].concat();
        let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
        assert!(done.succeeded(), "{}", done.stderr_text());
        assert!(!lab.workspace().join("n.txt").exists(), "{hook}");
        assert!(last_request(&lab).contains(told), "{hook}: {}", last_request(&lab));
    }
}

fn before_model(context: &'static str) -> Hooks {
    Hooks::new([Moment::BeforeModel], move |_| Verdict::Allow {
        input: None,
        context: Some(context.to_owned()),
    })
}

#[test]
fn real_cli_what_a_hook_adds_before_a_model_call_reaches_the_model_and_takes_nothing_away() {
    let lab = lab("before model");
    let outcome = lab.run(request(&lab, before_model("It is Monday.")).max_calls(5));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(lab.workspace().join("n.txt").exists());
    for request in lab.server.requests("lab") {
        assert_eq!(request.raw_body.matches("It is Monday.").count(), 1);
    }
    // The prompt, the call and its result are still there.
    let last = last_request(&lab);
    for kept in
        ["</session_context>write\"", "\"functionCall\"", "\"functionResponse\"", "Successfully created"]
    {
        assert!(last.contains(kept), "{kept}");
    }
}

#[test]
fn real_cli_a_command_adds_context_before_a_model_call() {
    let lab = lab("command context");
    let hook = r#"before-model=echo '{"decision":"allow","context":"It is Tuesday."}'"#;
    let args = [
        "--trust",
        "--approval",
        "yolo",
        "-m",
        "gemini-2.5-flash",
        "--as",
        "outcome",
        "--hook",
        hook,
        "write",
    ];
    let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
    assert!(done.succeeded(), "{}", done.stderr_text());
    assert!(last_request(&lab).contains("It is Tuesday."));
}

#[test]
fn real_cli_a_release_that_would_lose_calls_is_not_told_and_the_run_says_why() {
    let lab = Lab::real("old context", "0.38.2", writes());
    let outcome = lab.run(request(&lab, before_model("It is Monday.")));
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!(failure.kind, alhena_model::FailureKind::Config, "{failure:?}");
    assert!(failure.message.contains("0.42.0 can"), "{failure:?}");
    assert_eq!(lab.server.requests("lab").len(), 0);
}

#[test]
fn real_cli_a_broken_hook_is_told_as_what_it_is_and_what_it_should_have_decided_is_denied() {
    // Limits as above.
    for (hook, limit, why) in [
        ("false", 60, "the hook \"false\" failed (exit status: 1)"),
        ("echo garbage", 60, "the hook \"echo garbage\" did not print"),
        ("kill -9 $$", 60, "the hook \"kill -9 $$\" failed (signal: 9"),
        ("no-such-program", 60, "the hook \"no-such-program\" failed (exit status: 127)"),
        ("sleep 600", 5, "the hook \"sleep 600\" did not decide within 5 s"),
    ] {
        let lab = lab("broken");
        let commands = vec![(Moment::BeforeTool, hook.to_owned())];
        let outcome = lab.run(request(&lab, Hooks::of_commands(commands, Duration::from_secs(limit))));
        assert!(!lab.workspace().join("n.txt").exists(), "{hook}");
        let told = outcome.warnings.iter().find(|warning| warning.contains(why));
        let told = told.unwrap_or_else(|| panic!("{hook}: {:?}", outcome.warnings));
        assert!(told.starts_with("A call of write_file was denied, because nobody decided: "), "{told}");
        assert!(
            !outcome.warnings.iter().any(|warning| warning.contains("by policy")),
            "{:?}",
            outcome.warnings
        );
    }
}

#[test]
fn real_cli_a_broken_hook_before_a_model_call_fails_the_run_and_behind_a_tool_keeps_its_result() {
    let broken = |moment| Hooks::of_commands(vec![(moment, "false".to_owned())], Duration::from_secs(20));
    let lab = lab("broken model");
    let outcome = lab.run(request(&lab, broken(Moment::BeforeModel)));
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((failure.kind, outcome.exit_status()), (alhena_model::FailureKind::Config, 1), "{failure:?}");
    assert!(failure.message.contains("the hook \"false\" failed") && failure.hint.contains("Mend the hook"));
    assert_eq!(lab.server.requests("lab").len(), 0);

    let lab = self::lab("broken behind");
    let outcome = lab.run(request(&lab, broken(Moment::AfterTool)));
    let told =
        "What write_file gave was kept from the model, because nobody decided: the hook \"false\" failed";
    assert!(outcome.warnings.iter().any(|warning| warning.starts_with(told)), "{:?}", outcome.warnings);
}

#[test]
fn real_cli_who_denies_on_purpose_is_told_as_a_hook_and_not_as_a_policy() {
    let lab = lab("on purpose");
    let hooks = Hooks::new([Moment::BeforeTool], |_| Verdict::Deny("not on a Monday".to_owned()));
    let outcome = lab.run(request(&lab, hooks));
    let told = "A hook denied a call of write_file: not on a Monday".to_owned();
    assert!(outcome.warnings.contains(&told), "{:?}", outcome.warnings);
}

/// Puts a `bash` before the real one that is killed when it gets a hook's command with this word, and this in its question.
fn kill_hooks(lab: &mut Lab, word: &str, question: &str) {
    use std::os::unix::fs::PermissionsExt;
    let dir = lab.home.path().join("shim");
    std::fs::create_dir(&dir).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'/hooks\" {word} '*) asked=$(cat); case \"$asked\" in *'{question}'*) kill -9 $$;; \
         esac; printf %s \"$asked\" | /bin/bash \"$@\"; exit $?;; esac\nexec /bin/bash \"$@\"\n"
    );
    std::fs::write(dir.join("bash"), script).unwrap();
    std::fs::set_permissions(dir.join("bash"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = lab.env.get("PATH").unwrap().to_string_lossy().into_owned();
    lab.env.set("PATH", format!("{}:{path}", dir.display()));
}

/// Kills the processes of a hook that is being asked: its shell first, if that is wanted, and what asks.
fn kill_asking(home: &std::path::Path, word: &str, shells: bool, signal: rustix::process::Signal) {
    let ours = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(home.to_str().unwrap())
    };
    let command = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    let asking: Vec<u32> =
        alhena_testbed::processes_with_env("ALHENA_HOOK_SOCKET=").into_iter().filter(ours).collect();
    let hooks = asking.into_iter().filter(|pid| command(pid).contains(&format!(" {word}")));
    let (shells_of, relays): (Vec<u32>, Vec<u32>) = hooks.partition(|pid| command(pid).contains("exit 2"));
    assert!(!relays.is_empty() && !shells_of.is_empty(), "{shells_of:?} {relays:?}");
    for pid in shells_of.into_iter().filter(|_| shells).chain(relays) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _gone = rustix::process::kill_process(pid, signal);
    }
}

#[test]
fn real_cli_what_runs_without_a_decision_because_its_hook_was_killed_stops_the_run() {
    for (moment, did) in [
        (Moment::BeforeTool, "Gemini CLI ran write_file without a decision of the hook"),
        (
            Moment::AfterTool,
            "Gemini CLI gave the result of write_file to the model without a decision of the hook",
        ),
        (Moment::BeforeModel, "Gemini CLI called a model without a decision of the hook"),
    ] {
        let mut lab = lab(moment.name());
        kill_hooks(&mut lab, moment.name(), "");
        let outcome = lab.run(request(&lab, Hooks::new([moment], |_| Verdict::Deny("no".to_owned()))));
        let failure = outcome.failure.as_ref().expect("a failure");
        assert_eq!(
            (outcome.status, failure.kind),
            (Status::Failed, alhena_model::FailureKind::Protocol),
            "{failure:?}"
        );
        assert!(failure.message.contains(did), "{failure:?}");
    }
}

#[test]
fn real_cli_a_hook_that_is_killed_while_it_asks_has_denied() {
    use rustix::process::Signal;
    for (shells, signal) in [(true, Signal::KILL), (false, Signal::KILL), (false, Signal::INT)] {
        let lab = lab("killed");
        let home = lab.home.path().to_owned();
        let hooks = Hooks::new([Moment::BeforeTool], move |_| {
            kill_asking(&home, "before-tool", shells, signal);
            Verdict::Deny("no".to_owned())
        });
        let outcome = lab.run(request(&lab, hooks));
        assert!(!lab.workspace().join("n.txt").exists(), "{shells} {signal:?} {:?}", outcome.failure);
        let told =
            "A call of write_file was denied, because nobody decided: the hook was ended before it decided";
        assert!(outcome.warnings.iter().any(|warning| warning.starts_with(told)), "{:?}", outcome.warnings);
    }
    let lab = lab("killed model");
    let (home, asked) = (lab.home.path().to_owned(), Mutex::new(0));
    let hooks = Hooks::new([Moment::BeforeModel], move |_| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        if *asked == 2 {
            kill_asking(&home, "before-model", false, Signal::INT);
        }
        Verdict::GO_ON
    });
    let outcome = lab.run(request(&lab, hooks));
    let failure = outcome.failure.as_ref().expect("a failure");
    assert!(
        failure.message.contains("nobody decided: the hook before a model call was ended"),
        "{failure:?}"
    );
    assert_eq!(lab.server.requests("lab").len(), 1);
}

#[test]
fn real_cli_a_tool_of_a_sub_agent_that_runs_without_a_decision_stops_the_run() {
    let asks = Turn::new().call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Write it"}));
    let write = json!({"file_path": "n.txt", "content": "x\n"});
    let done = Turn::new().call("complete_task", json!({"result": {"response": "Written"}}));
    let scenario = || {
        Scenario::new()
            .turn(asks.clone())
            .turn(Turn::new().call("write_file", write.clone()))
            .turn(done.clone())
            .turn(Turn::say("Done.").always())
    };
    let allow = || Hooks::new(Moment::ALL, |_| Verdict::GO_ON);
    let before_model = || Hooks::new([Moment::BeforeModel], |_| Verdict::GO_ON);
    for (transport, hooks) in
        [(alhena_agent::Transport::Headless, allow()), (alhena_agent::Transport::Acp, before_model())]
    {
        let lab = Lab::real("sub-agent", "0.61.0", scenario());
        let outcome = lab.run(request(&lab, hooks).transport(transport));
        assert_eq!(outcome.status, Status::Success, "{transport:?} {:?}", outcome.failure);
    }
    let mut lab = Lab::real("sub-agent killed", "0.61.0", scenario());
    kill_hooks(&mut lab, "before-tool", "\"tool_name\":\"write_file\"");
    let outcome = lab.run(request(&lab, allow()));
    let failure = outcome.failure.as_ref().expect("a failure");
    assert!(failure.message.contains("ran write_file without a decision"), "{failure:?}");
}

/// Each call is found again among the decisions: the hook and the stream have the same arguments.
#[test]
fn real_cli_every_tool_that_was_allowed_is_found_among_the_decisions() {
    let calls = [
        ("list_directory", json!({"dir_path": "."})),
        ("glob", json!({"pattern": "*.txt", "wait_for_previous": false})),
        ("grep_search", json!({"pattern": "x"})),
        ("read_file", json!({"file_path": "n.txt", "start_line": 1, "end_line": 2})),
        ("run_shell_command", json!({"command": "false", "description": "Fails"})),
        ("run_shell_command", json!({"command": "true"})),
        ("write_todos", json!({"todos": [{"description": "x", "status": "pending"}]})),
        (
            "replace",
            json!({"file_path": "n.txt", "old_string": "x", "new_string": "y", "instruction": "change"}),
        ),
        ("no_such_tool", json!({})),
        ("write_file", json!({"file_path": 7})),
    ];
    let server =
        json!({"echo": {"command": "node", "args": ["-e", crate::lab::SHOUTING_SERVER], "trust": true}});
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "n.txt", "content": "x\n"})))
        .turn(Turn::new().calls(calls))
        .turn(Turn::new().call("mcp_echo_shout", json!({"word": "hi", "wait_for_previous": true})))
        .turn(Turn::say("Done."));
    for version in ["0.61.0", "0.45.2", "0.38.2"] {
        let lab = Lab::real("found", version, scenario.clone());
        add_settings(&lab, json!({"mcpServers": server}));
        let outcome = lab.run(request(&lab, Hooks::new(Moment::ALL, |_| Verdict::GO_ON)));
        assert_eq!(outcome.status, Status::Success, "{version} {:?}", outcome.failure);
    }
}
