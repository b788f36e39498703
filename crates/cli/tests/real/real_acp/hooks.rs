//! Programs that decide while a warm agent works.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alhena_agent::hooks::{Hooks, Moment, Verdict};
use alhena_agent::{Approval, ResolvedRequest, Transport};
use alhena_model::{Outcome, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::{Map, Value, json};

use super::{converse, follow, lab, nobody};
use crate::lab::{Build, Lab};

fn writes(content: &str) -> Turn {
    Turn::new().call("write_file", json!({"file_path": "n.txt", "content": content}))
}

fn one_write() -> Scenario {
    Scenario::new().turn(writes("the model's\n")).turn(Turn::say("Done."))
}

fn request(lab: &Lab, hooks: Hooks) -> ResolvedRequest {
    lab.request("write").transport(Transport::Acp).approval(Approval::Yolo).hooks(hooks)
}

fn written(lab: &Lab) -> Option<String> {
    std::fs::read_to_string(lab.workspace().join("n.txt")).ok()
}

/// What the API got last.
fn last_request(lab: &Lab) -> String {
    lab.server.requests("lab").last().unwrap().raw_body.clone()
}

fn succeeded(outcome: &Outcome) {
    assert_eq!(outcome.status, Status::Success, "{:?} {:?}", outcome.failure, outcome.warnings);
}

/// Remembers all that it was asked.
type Seen = Arc<Mutex<Vec<(Moment, String, Value)>>>;

fn watching(moments: &[Moment], seen: &Seen) -> Hooks {
    let seen = Arc::clone(seen);
    Hooks::new(moments.iter().copied(), move |asked| {
        seen.lock().unwrap().push((asked.moment, asked.tool().to_owned(), asked.input().clone()));
        Verdict::GO_ON
    })
}

#[test]
fn real_cli_a_denied_tool_never_runs_over_acp_and_the_model_is_told_why() {
    let lab = lab("deny", one_write());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let hooks = Hooks::new([Moment::BeforeTool], move |asked| {
        seen.lock().unwrap().push((
            asked.tool().to_owned(),
            asked.input().clone(),
            asked.told["cwd"].clone(),
        ));
        Verdict::Deny("not on a Monday".to_owned())
    });
    let outcome = lab.run(request(&lab, hooks));
    succeeded(&outcome);
    assert_eq!(written(&lab), None);
    // The arguments are whole, as the model gave them.
    let input = json!({"file_path": "n.txt", "content": "the model's\n"});
    let dir = json!(lab.workspace().canonicalize().unwrap());
    assert_eq!(*asked.lock().unwrap(), [("write_file".to_owned(), input, dir)]);
    assert!(last_request(&lab).contains("not on a Monday"));
}

#[test]
fn real_cli_other_arguments_are_told_to_the_model_and_its_own_never_count() {
    let scenario =
        Scenario::new().turn(writes("the model's\n")).turn(writes("ours\n")).turn(Turn::say("Done."));
    let lab = lab("change", scenario);
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    // What it says of its own arguments it would say again: it is not asked about those that it gave.
    let hooks = Hooks::new([Moment::BeforeTool], move |asked| {
        *count.lock().unwrap() += 1;
        let mut input: Map<_, _> = asked.input().as_object().cloned().unwrap_or_default();
        let others = if input["content"] == "ours\n" { "others\n" } else { "ours\n" };
        input.insert("content".to_owned(), json!(others));
        Verdict::Allow { input: Some(input), context: None }
    });
    let outcome = lab.run(request(&lab, hooks));
    succeeded(&outcome);
    assert_eq!((written(&lab).as_deref(), *asked.lock().unwrap()), (Some("ours\n"), 1));
    let told = lab.server.requests("lab")[1].raw_body.clone();
    assert!(told.contains("Call write_file again with exactly these"), "{told}");
}

#[test]
fn real_cli_whoever_decides_too_late_or_fails_has_denied_over_acp() {
    for (name, late) in [("late", true), ("fails", false)] {
        let lab = lab(name, one_write());
        let hooks = Hooks::new([Moment::BeforeTool], move |_| match late {
            true => {
                std::thread::sleep(Duration::from_secs(30));
                Verdict::GO_ON
            }
            false => panic!("a bug of whoever decides"),
        });
        let outcome = lab.run(request(&lab, hooks.time_limit(Duration::from_millis(100))));
        succeeded(&outcome);
        assert_eq!(written(&lab), None, "{name}");
    }
}

#[test]
fn real_cli_what_is_added_after_a_tool_reaches_the_model_over_acp_until_the_turn_ends() {
    let scenario = Scenario::new()
        .turn(writes("the model's\n"))
        .turn(Turn::new().call("read_file", json!({"file_path": "n.txt"})))
        .turn(Turn::say("Done."))
        .turn(Turn::say("Again."));
    let lab = lab("after", scenario);
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let hooks = Hooks::new([Moment::AfterTool], move |asked| {
        let result = asked.told["tool_response"]["llmContent"].clone();
        kept.lock().unwrap().push((asked.moment, asked.tool().to_owned(), result));
        let context = (asked.tool() == "write_file").then(|| "The file is watched.".to_owned());
        Verdict::Allow { input: None, context }
    });
    let mut talk = converse(&lab, request(&lab, hooks));
    let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
    succeeded(&outcome);
    let (_, outcome) = follow(talk.prompt("more").unwrap(), nobody);
    succeeded(&outcome);
    let told: Vec<bool> = lab
        .server
        .requests("lab")
        .iter()
        .map(|request| request.raw_body.contains("The file is watched."))
        .collect();
    assert_eq!(told, [false, true, true, false]);
    let seen = seen.lock().unwrap();
    let tools: Vec<&str> = seen.iter().map(|(_, tool, _)| tool.as_str()).collect();
    assert_eq!(tools, ["write_file", "read_file"]);
    assert!(seen[1].2.as_str().unwrap().contains("the model's"), "{seen:?}");
}

#[test]
fn real_cli_a_turn_that_a_hook_ends_is_no_success_and_the_next_one_can_be() {
    for moment in Moment::ALL {
        let scenario = match moment {
            Moment::BeforeModel => Scenario::new().turn(Turn::say("Done.")),
            _ => one_write(),
        };
        let lab = lab(moment.name(), scenario);
        let first = Arc::new(Mutex::new(true));
        let hooks = Hooks::new([moment], move |_| match std::mem::take(&mut *first.lock().unwrap()) {
            true => Verdict::Stop("enough for today".to_owned()),
            false => Verdict::GO_ON,
        });
        let mut talk = converse(&lab, request(&lab, hooks));
        let (_, outcome) = follow(talk.prompt("go").unwrap(), nobody);
        let failure = outcome.failure.as_ref().unwrap();
        assert_eq!(
            (outcome.status, failure.message.as_str()),
            (Status::Cancelled, "A hook ended the run: enough for today"),
            "{moment:?}"
        );
        assert_eq!(written(&lab).is_some(), moment == Moment::AfterTool);
        assert_eq!(lab.server.requests("lab").len(), usize::from(moment != Moment::BeforeModel));
        let (_, outcome) = follow(talk.prompt("more").unwrap(), nobody);
        succeeded(&outcome);
    }
}

#[test]
fn real_cli_hooks_decide_first_then_rules_then_the_mode_then_a_person() {
    let shell = |command: &str| Turn::new().call("run_shell_command", json!({ "command": command }));
    let scenario = Scenario::new()
        .turn(Turn::new().call("read_file", json!({"file_path": "a.txt"})))
        .turn(shell("cat a.txt"))
        .turn(shell("touch ruled"))
        .turn(shell("touch asked"))
        .turn(Turn::say("Done."));
    let lab = lab("order", scenario);
    std::fs::write(lab.workspace().join("a.txt"), "ALPHA").unwrap();
    let seen = Seen::default();
    let mut request = request(&lab, watching(&[Moment::BeforeTool], &seen)).approval(Approval::Default);
    request.rules.add(alhena_agent::rules::Decision::Deny, "shell(touch ruled)").unwrap();
    request.rules.add(alhena_agent::rules::Decision::Allow, "shell(cat *)").unwrap();
    let mut talk = converse(&lab, request);
    let mut asked = Vec::new();
    let (_, outcome) = follow(talk.prompt("go").unwrap(), |permission| {
        asked.push(permission.question().title.clone());
        permission.allow_once();
    });
    succeeded(&outcome);
    assert_eq!(asked, ["touch asked"]);
    let inputs: Vec<Value> = seen.lock().unwrap().iter().map(|(_, _, input)| input.clone()).collect();
    assert_eq!(
        inputs,
        [json!({"file_path": "a.txt"}), json!({"command": "cat a.txt"}), json!({"command": "touch asked"})]
    );
    assert!(lab.workspace().join("asked").exists() && !lab.workspace().join("ruled").exists());
    assert!(talk.set_mode(Approval::Plan).is_err());
}

#[test]
fn real_cli_a_hundred_tools_have_a_hook_each_and_each_sees_its_own_arguments() {
    let turns = (0..25).map(|turn| {
        let calls = (0..4).map(move |call| {
            let n = turn * 4 + call;
            ("write_file", json!({"file_path": format!("{n}.txt"), "content": format!("{n}\n")}))
        });
        Turn::new().calls(calls)
    });
    let lab = lab("hundred", turns.fold(Scenario::new(), Scenario::turn).turn(Turn::say("Done.")));
    let hooks = Hooks::new([Moment::BeforeTool], |asked| {
        let n: u32 = asked.input()["content"].as_str().unwrap().trim().parse().unwrap();
        if n.is_multiple_of(2) { Verdict::GO_ON } else { Verdict::Deny("odd".to_owned()) }
    });
    let outcome = lab.run(request(&lab, hooks));
    succeeded(&outcome);
    for n in 0..100 {
        assert_eq!(lab.workspace().join(format!("{n}.txt")).exists(), n % 2 == 0, "{n}");
    }
}

/// What else could let a tool run unasked, and was not thought of.
#[test]
fn real_cli_a_tool_that_begins_without_a_question_ends_the_turn_and_is_ended_with_it() {
    let run = json!({"command": "sleep 20; touch made"});
    let lab = lab("unasked", Scenario::new().turn(Turn::new().call("run_shell_command", run)));
    let policy = lab.home.path().join("admin.toml");
    let allow = "[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"allow\"\npriority = 5\n";
    std::fs::write(&policy, allow).unwrap();
    let request = request(&lab, watching(&[Moment::BeforeTool], &Seen::default()));
    let outcome = lab.run(request.extra_arg(format!("--admin-policy={}", policy.display())));
    assert_eq!(outcome.status, Status::Cancelled, "{outcome:?}");
    let message = &outcome.failure.as_ref().unwrap().message;
    assert!(message.contains("began run_shell_command without asking"), "{message}");
    assert!(!lab.workspace().join("made").exists());
}

#[test]
fn real_cli_the_users_own_hooks_go_on_working_over_acp() {
    let lab = lab("both", one_write());
    let path = lab.home.gemini().join("settings.json");
    let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let theirs = format!("touch {}; echo '{{}}'", lab.workspace().join("theirs").display());
    settings["hooks"] = json!({"BeforeModel": [{"hooks": [{"type": "command", "command": theirs}]}]});
    std::fs::write(path, settings.to_string()).unwrap();
    let outcome = lab.run(request(&lab, watching(&Moment::ALL, &Seen::default())));
    succeeded(&outcome);
    assert!(lab.workspace().join("theirs").exists() && written(&lab).is_some());
}

#[test]
fn real_cli_commands_decide_over_acp_and_what_cannot_be_kept_is_refused_before_the_start() {
    let lab = lab("commands", one_write());
    let run = |args: &[&str]| {
        let model = ["-m", "gemini-2.5-flash", "--transport", "acp", "--approval", "yolo"];
        let args = [&model[..], args, &["--as", "outcome", "write"]].concat();
        run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap()
    };
    let crash = run(&["--hook", "before-tool=kill -9 $$"]);
    assert!(crash.succeeded(), "{}", crash.stderr_text());
    assert_eq!(written(&lab), None);
    assert!(last_request(&lab).contains("failed (signal: 9"), "{}", last_request(&lab));
    let hook = ["--hook", r#"before-tool=echo '{"decision": "allow"}'"#];
    let refused = |args: &[&str], why: &str| {
        let done = run(&[&hook[..], args].concat());
        assert_eq!(done.status.code(), Some(2), "{}", done.stderr_text());
        assert!(done.stderr_text().contains(why), "{}", done.stderr_text());
    };
    let policies = lab.home.gemini().join("policies");
    std::fs::create_dir_all(&policies).unwrap();
    let policy = policies.join("mine.toml");
    std::fs::write(&policy, "[[rule]]\ntoolName = \"glob\"\ndecision = \"deny\"\npriority = 5\n").unwrap();
    refused(&[], "mine.toml denies something");
    std::fs::remove_file(policy).unwrap();
    let old = Lab::real("old", "0.38.2", Scenario::new());
    let hooks = Hooks::new([Moment::BeforeTool], |_| Verdict::GO_ON);
    let error = old.gemini.start(request(&old, hooks.clone()), &old.env).unwrap_err();
    assert!(error.to_string().contains("0.38.2"), "{error}");
    let plan = request(&lab, hooks).approval(Approval::Plan);
    let error = lab.gemini.start(plan, &lab.env).unwrap_err();
    assert!(error.to_string().contains("plan mode"), "{error}");
}

#[test]
fn real_cli_a_sub_agent_does_nothing_past_a_hook() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Do it"})))
        .turn(Turn::new().call("run_shell_command", json!({"command": "touch by-another"})))
        .turn(Turn::say("Done."))
        .turn(Turn::say("Done."));
    let lab = lab("sub-agent", scenario);
    let hooks = Hooks::new([Moment::BeforeTool], |asked| match asked.tool() {
        "run_shell_command" => Verdict::Deny("no shell".to_owned()),
        _ => Verdict::GO_ON,
    });
    let outcome = lab.run(request(&lab, hooks));
    succeeded(&outcome);
    assert!(!lab.workspace().join("by-another").exists());
    assert!(last_request(&lab).contains("denied by policy"), "{}", last_request(&lab));
}
