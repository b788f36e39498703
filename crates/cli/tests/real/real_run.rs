//! Runs of the real CLI against the scripted API, on every version that the tests are given.

use std::time::Duration;

use crate::lab::{Build, Lab, shell, write_file};
use alhena_agent::{Approval, Resume, Run, Trust};
use alhena_model::Change;
use alhena_model::{EventKind, Failure, FailureKind, Outcome, Status};
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::{Deadline, versions};
use alhena_wire::release::{Feature, Version};
use serde_json::json;

fn on_each_version(name: &str, scenario: impl Fn() -> Scenario, test: impl Fn(&Lab)) {
    for version in versions() {
        let lab = Lab::real(&format!("{name} on {version}"), &version, scenario());
        test(&lab);
    }
}

fn has(lab: &Lab, feature: Feature) -> bool {
    lab.gemini.version.has(feature)
}

fn failure(outcome: &Outcome) -> &Failure {
    outcome.failure.as_ref().expect("a failure")
}

fn forever(turn: Turn) -> Scenario {
    Scenario::new().turn(turn).after(After::Repeat)
}

#[test]
fn real_cli_plain_text_is_a_success_with_text_usage_and_session() {
    let scenario = || Scenario::new().turn(Turn::new().text("Hello ").text("from the model 🌍."));
    on_each_version("plain", scenario, |lab| {
        // A prompt that looks like an option is a prompt.
        let (events, outcome) = lab.run_with_events(lab.request("--yolo is what I ask about"));
        assert_eq!((outcome.status, outcome.exit_code), (Status::Success, Some(0)), "{:?}", outcome.failure);
        assert_eq!(outcome.text.all(), "Hello from the model 🌍.");
        assert_eq!(outcome.models, ["gemini-2.5-flash"]);
        assert!(outcome.usage.all.prompt > 0);
        let kinds: Vec<&EventKind> = events.iter().map(|event| &event.kind).collect();
        let prompt = EventKind::Prompt { text: "--yolo is what I ask about".into() };
        assert!(kinds.contains(&&prompt), "{kinds:?}");
        assert!(matches!(kinds.last(), Some(EventKind::Finished { .. })));
        // The session is in the user's store.
        let id = outcome.session_id.as_deref().unwrap();
        assert!(session_file(lab, id).is_some(), "{id}");
    });
}

/// The session file with this id in the user's store.
fn session_file(lab: &Lab, id: &str) -> Option<std::path::PathBuf> {
    let short: String = id.chars().take(8).collect();
    let mut dirs = vec![lab.home.gemini().join("tmp")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.file_name()?.to_string_lossy().contains(&short) {
                return Some(path);
            }
        }
    }
    None
}

fn tools() -> Scenario {
    Scenario::new()
        .turn(Turn::new().text("Reading. ").call("read_file", json!({"file_path": "a.txt"})))
        .turn(
            Turn::new()
                .text("Writing. ")
                .call("write_file", json!({"file_path": "new.txt", "content": "1\n2\n"})),
        )
        .turn(shell("echo made > shell.txt; echo out"))
        .turn(Turn::new().text("Final answer."))
}

#[test]
fn real_cli_tools_do_what_each_approval_mode_allows_and_missing_ones_are_warned_of() {
    for approval in [Approval::Default, Approval::AutoEdit, Approval::Yolo, Approval::Plan] {
        on_each_version("tools", tools, |lab| {
            std::fs::write(lab.workspace().join("a.txt"), "alpha\n").unwrap();
            let outcome = lab.run(lab.request("use tools").approval(approval));
            assert_eq!(outcome.status, Status::Success, "{approval:?} {:?}", outcome.failure);
            assert_eq!(outcome.text.last(), "Final answer.");
            assert_eq!(outcome.tool_calls, 3);
            let edits = matches!(approval, Approval::AutoEdit | Approval::Yolo);
            let shell = approval == Approval::Yolo;
            assert_eq!(lab.workspace().join("new.txt").exists(), edits, "{approval:?}");
            assert_eq!(lab.workspace().join("shell.txt").exists(), shell, "{approval:?}");
            let warned = |tool: &str| outcome.warnings.iter().any(|warning| warning.contains(tool));
            assert_eq!(warned("run_shell_command"), !shell, "{approval:?} {:?}", outcome.warnings);
            assert_eq!(warned("write_file"), !edits, "{approval:?} {:?}", outcome.warnings);
            let claimed: Vec<_> = outcome.files.iter().filter(|file| file.claimed).collect();
            assert_eq!(claimed.len(), usize::from(edits));
            if edits {
                assert!(claimed[0].path.ends_with("new.txt") && claimed[0].verified);
                assert_eq!(claimed[0].change, Change::Created);
            }
            if shell {
                // The CLI does not say that a command wrote a file; the disk does.
                let found = outcome.files.iter().find(|file| file.path == "shell.txt").unwrap();
                assert_eq!((found.claimed, found.verified, found.change), (false, true, Change::Created));
                assert!(outcome.commands[0].output.as_deref().unwrap().contains("out"));
            }
        });
    }
}

#[test]
fn real_cli_api_failures_have_their_kind_status_and_hint() {
    let error = |code: u16, status: &str| {
        Turn::error(code, json!({"code": code, "message": "It said no.", "status": status}))
    };
    // The others are recordings of crates/model.
    let cases = [
        (forever(error(401, "UNAUTHENTICATED")), FailureKind::Auth, Some(401)),
        (forever(error(500, "INTERNAL")), FailureKind::Api, Some(500)),
        (forever(Turn::new().text("half an ans").drop_connection()), FailureKind::Api, None),
        (forever(Turn::new().malformed()), FailureKind::InvalidResponse, None),
    ];
    for (scenario, kind, status) in cases {
        let lab = Lab::real("api", "0.61.0", scenario);
        let mut request = lab.request("hello");
        request.max_attempts = Some(1);
        let outcome = lab.run(request);
        let failure = failure(&outcome);
        assert_eq!((outcome.status, failure.kind), (Status::Failed, kind), "{failure:?}");
        assert_eq!(failure.http_status, status, "{failure:?}");
        assert!(!failure.hint.is_empty() && !failure.message.is_empty());
        // A server error fails fast, and not after four minutes.
        let asked = lab.server.requests("lab");
        let asked = asked.iter().filter(|request| request.action == "streamGenerateContent").count();
        assert!(status != Some(500) || asked == 1, "{asked} requests");
    }
}

#[test]
fn real_cli_no_sign_in_is_told_with_a_cure() {
    let mut lab = Lab::real("auth", "0.61.0", Scenario::new());
    lab.env.remove("GEMINI_API_KEY");
    let outcome = lab.run(lab.request("hello"));
    assert_eq!((failure(&outcome).kind, outcome.exit_code), (FailureKind::Auth, Some(41)), "{outcome:?}");
    assert!(failure(&outcome).hint.contains("GEMINI_API_KEY"));
    assert_eq!(outcome.exit_status(), 4);
}

#[test]
fn real_cli_an_untrusted_folder_is_a_failure_that_names_the_option_which_then_works() {
    let scenario = || Scenario::new().turn(Turn::say("done")).after(After::Repeat);
    let lab = Lab::untrusted("trust", "0.61.0", scenario());
    let refused = lab.run(lab.request("hello"));
    assert_eq!(
        (failure(&refused).kind, refused.exit_code),
        (FailureKind::Untrusted, Some(55)),
        "{refused:?}"
    );
    assert!(failure(&refused).hint.contains("`trust`"));
    for trust in [Trust::Run, Trust::WithSettings] {
        let outcome = lab.run(lab.request("hello").trust(trust));
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    }
}

#[test]
fn real_cli_broken_settings_are_told_before_anything_starts() {
    let lab = Lab::real("settings", "0.61.0", Scenario::new());
    std::fs::write(lab.home.gemini().join("settings.json"), "{ \"a\": ").unwrap();
    let Err(error) = lab.gemini.start(lab.request("hello"), &lab.env).map(Run::outcome_blocking) else {
        panic!("ran")
    };
    assert_eq!(error.into_failure().kind, FailureKind::Config);
    assert_eq!(lab.calls(), 0);
}

#[test]
fn real_cli_the_turn_limit_is_its_own_failure() {
    let looping = || {
        Scenario::new()
            .turn(Turn::new().call("list_directory", json!({"dir_path": "."})))
            .turn(Turn::new().call("glob", json!({"pattern": "*.a"})))
            .turn(Turn::new().call("glob", json!({"pattern": "*.b"})))
            .turn(Turn::say("end"))
    };
    on_each_version("turns", looping, |lab| {
        let mut request = lab.request("loop");
        request.max_turns = Some(2);
        let outcome = lab.run(request);
        assert_eq!(
            (failure(&outcome).kind, outcome.exit_code),
            (FailureKind::TurnLimit, Some(53)),
            "{outcome:?}"
        );
        assert_eq!(outcome.exit_status(), 7);
    });
}

#[test]
fn real_cli_a_loop_is_a_warning() {
    let lab =
        Lab::real("loop", "0.61.0", forever(Turn::new().call("list_directory", json!({"dir_path": "."}))));
    let outcome = lab.run(lab.request("loop"));
    assert!(outcome.warnings.iter().any(|warning| warning.contains("Loop detected")), "{outcome:?}");
}

#[test]
fn real_cli_prompts_of_every_size_arrive_whole_and_a_late_reader_loses_nothing() {
    for size in [10_000, 3_000_000] {
        let answer = Turn::new().text("The ").text("end.");
        let lab = Lab::real("sizes", "0.61.0", Scenario::new().turn(answer));
        let prompt = "ä lot of wörds. ".repeat(size / 18);
        let run = lab.start(lab.request(&prompt));
        let requests = || lab.server.requests("lab");
        assert!(Deadline::after(Duration::from_secs(120)).wait_until(|| !requests().is_empty()));
        std::thread::sleep(Duration::from_secs(2));
        let outcome = run.outcome_blocking();
        assert_eq!(outcome.status, Status::Success, "{size}: {:?}", outcome.failure);
        assert_eq!(outcome.text.all(), "The end.");
        let requests = requests();
        let sent = requests
            .iter()
            .filter_map(|request| request.prompt())
            .map(str::trim)
            .find(|text| text.len() > 1000);
        assert_eq!(sent.map(str::len), Some(prompt.trim().len()), "{size}");
    }
}

#[test]
fn a_prompt_that_the_cli_would_not_send_is_refused_before_the_start() {
    let lab = Lab::real("too large", "0.61.0", Scenario::new());
    for prompt in ["x".repeat(4_100_000), "日".repeat(3_000_000), "  \n ".to_owned(), String::new()] {
        let refused = lab.gemini.start(lab.request(&prompt), &lab.env).err().map(|error| error.exit_status());
        assert_eq!(refused, Some(2));
    }
    assert_eq!(lab.calls(), 0);
}

#[test]
fn real_cli_an_unknown_session_is_refused_clearly() {
    let lab = Lab::real("no session", "0.61.0", Scenario::new());
    let request = lab.request("hello").resume(Resume::Id("00000000-0000-4000-8000-000000000000".into()));
    let error = lab.gemini.start(request, &lab.env).err().unwrap();
    assert!(error.to_string().contains("00000000"), "{error}");
}

#[test]
fn options_that_a_release_does_not_have_are_refused_before_the_start() {
    let lab = Lab::real("old", "0.38.2", Scenario::new());
    let mut request = lab.request("hello");
    request.session_id = Some("11111111-2222-4333-8444-555555555555".into());
    let error = lab.gemini.start(request, &lab.env).err().unwrap();
    assert!(error.to_string().contains("0.41"), "{error}");
    assert_eq!(error.exit_status(), 2);
}

#[test]
fn real_cli_allow_and_deny_lists_hold_together_with_the_approval_mode() {
    let scenario = || {
        Scenario::new()
            .turn(shell("git --version"))
            .turn(shell("touch forbidden"))
            .turn(write_file("w.txt", "w"))
            .turn(Turn::say("end"))
    };
    let lab = Lab::real("policy", "0.61.0", scenario());
    let mut request = lab.request("hello").approval(Approval::AutoEdit);
    request.allow_tools = vec!["run_shell_command(git)".into()];
    request.deny_tools = vec!["write_file".into()];
    let outcome = lab.run(request);
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert!(!lab.workspace().join("forbidden").exists());
    assert!(!lab.workspace().join("w.txt").exists());
    let ran = |command: &str| {
        outcome.commands.iter().any(|run| {
            run.command.contains(command)
                && run.output.as_deref().is_some_and(|out| out.contains("git version"))
        })
    };
    assert!(ran("git"), "{:?}", outcome.commands);
}

#[test]
fn real_cli_a_system_prompt_reaches_the_model() {
    on_each_version(
        "system",
        || Scenario::new().turn(Turn::say("aye")),
        |lab| {
            if !has(lab, Feature::CliHome) {
                return;
            }
            let mut request = lab.request("hello");
            request.system_prompt =
                Some(alhena_agent::SystemPrompt::Append("Always speak like a PIRATE-7731.".into()));
            assert_eq!(lab.run(request).status, Status::Success);
            let requests = lab.server.requests("lab");
            assert!(requests.iter().any(|request| request.raw_body.contains("PIRATE-7731")));
        },
    );
}

#[test]
fn real_cli_the_users_home_is_the_same_however_runs_end_except_for_sessions_and_registration() {
    let scenario = || {
        Scenario::new()
            .turn(Turn::new().text("Hm. ").call("write_file", json!({"file_path": "x.txt", "content": "x"})))
            .turn(Turn::say("done"))
            .after(After::Repeat)
    };
    let lab = Lab::real("home", "0.61.0", scenario());
    for (name, text) in
        [("GEMINI.md", "be brief\n"), ("policies/mine.toml", ""), ("commands/x.toml", "prompt = \"x\"\n")]
    {
        let path = lab.home.gemini().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    // What the first start makes for itself is no change by a run.
    assert_eq!(lab.run(lab.request("first")).status, Status::Success);
    let before = lab.home.snapshot().unwrap();
    let mut ids = Vec::new();
    for number in 0..6 {
        let request =
            lab.request("again").approval(if number % 2 == 0 { Approval::Yolo } else { Approval::Default });
        match number {
            0 | 1 => ids.extend(lab.run(request).session_id.clone()),
            2 | 3 => drop(lab.run(request.timeout(Duration::from_millis(900 * number - 900)))),
            _ => {
                let run = lab.start(request);
                std::thread::sleep(Duration::from_millis(1000 * number - 3200));
                run.stop();
                run.outcome_blocking();
            }
        }
    }
    let after = lab.home.snapshot().unwrap();
    let changes: Vec<String> =
        alhena_testbed::diff(&before, &after).iter().map(|change| format!("{change:?}")).collect();
    let unexpected: Vec<&String> = changes
        .iter()
        .filter(|change| {
            !change.contains("/chats") && !change.contains("alhena/") && !change.contains("workspace")
        })
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    assert!(ids.iter().all(|id| session_file(&lab, id).is_some()));
}

#[test]
fn a_newer_version_than_the_newest_known_is_used_with_a_warning() {
    let hostile = alhena_testbed::Hostile::new(alhena_testbed::Script::normal()).unwrap().version("0.99.0");
    let lab = crate::lab::Lab::real("newer", "0.61.0", Scenario::new());
    let mut env = lab.env.clone();
    for (name, value) in hostile.env() {
        env.set(name, value);
    }
    let gemini = alhena_agent::Finder::new().env(env.clone()).path(hostile.path()).find().unwrap();
    assert_eq!(gemini.version, "0.99.0".parse::<Version>().unwrap());
    let outcome =
        gemini.start(crate::lab::request("hi").dir(lab.workspace()), &env).unwrap().outcome_blocking();
    assert_eq!(outcome.status, Status::Success);
    assert!(
        outcome.warnings.iter().any(|warning| warning.contains("0.99.0 is newer")),
        "{:?}",
        outcome.warnings
    );
}
