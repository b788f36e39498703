//! What the CLI's stream drops, and a run of Alhena has all the same.

use std::sync::Arc;
use std::time::Duration;

use crate::lab::{Build, Lab};
use alhena_agent::{Approval, Resume, Transport};
use alhena_model::{Change, EventKind, FailureKind, FileChange, Source, Status, Usage};
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::versions;
use serde_json::json;

fn rich() -> Scenario {
    Scenario::new()
        .turn(
            Turn::new()
                .thought("Plan", "Look first.")
                .text("Looking. ")
                .call("read_file", json!({"file_path": "a.txt"})),
        )
        .turn(Turn::new().call(
            "replace",
            json!({"file_path": "a.txt", "instruction": "i", "old_string": "old", "new_string": "new"}),
        ))
        .turn(
            Turn::new()
                .thought("Run", "Now a command.")
                .call("run_shell_command", json!({"command": "echo out; sleep 2; exit 3"})),
        )
        .turn(Turn::say("All done."))
}

#[test]
fn real_cli_thoughts_diffs_contents_and_exit_codes_are_recovered() {
    for version in versions() {
        let lab = Lab::real("lossless", &version, rich());
        std::fs::write(lab.workspace().join("a.txt"), "old line\n").unwrap();
        let (events, outcome) = lab.run_with_events(lab.request("go").approval(Approval::Yolo));
        assert_eq!(outcome.status, Status::Success, "{version} {:?}", outcome.failure);
        let results: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolResult { name, ok, output, exit_code, .. } => {
                    Some((name.as_str(), *ok, output.clone().unwrap_or_default(), *exit_code))
                }
                _ => None,
            })
            .collect();
        assert_eq!(results.len(), 3, "{version}");
        assert!(results[0].2.contains("old line"), "{version} {results:?}");
        assert_eq!(
            (results[2].0, results[2].1, results[2].3),
            ("run_shell_command", false, Some(3)),
            "{version}"
        );
        assert_eq!(outcome.commands[0].exit_code, Some(3));
        let change = events.iter().find_map(|event| match &event.kind {
            EventKind::FileChange(change) => Some(change.clone()),
            _ => None,
        });
        let FileChange { change, diff, verified, .. } = change.unwrap();
        assert_eq!((change, verified), (Change::Modified, true));
        assert!(diff.unwrap().contains("+new line"), "{version}");
        let thoughts: Vec<&str> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Thinking { subject, .. } => Some(subject.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(thoughts, ["Plan", "Run"], "{version}");
        assert!(outcome.usage.all.thoughts > 0);
        let per_message = events
            .iter()
            .filter(|event| event.source == Source::Session && matches!(event.kind, EventKind::Usage(_)));
        assert_eq!(per_message.count(), 4, "{version}");
    }
}

#[test]
fn real_cli_a_thought_is_out_before_the_tool_that_follows_it_has_finished() {
    let lab = Lab::real("live", "0.61.0", rich());
    std::fs::write(lab.workspace().join("a.txt"), "old line\n").unwrap();
    let (events, _) = lab.run_with_events(lab.request("go").approval(Approval::Yolo));
    let position =
        |wanted: &dyn Fn(&EventKind) -> bool| events.iter().position(|event| wanted(&event.kind)).unwrap();
    let thought = position(&|kind| matches!(kind, EventKind::Thinking { subject, .. } if subject == "Run"));
    let result =
        position(&|kind| matches!(kind, EventKind::ToolResult { name, .. } if name == "run_shell_command"));
    assert!(thought < result);
}

#[test]
fn real_cli_an_answer_that_was_cut_off_is_a_failure_with_its_reason_and_its_text() {
    for reason in ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"] {
        let lab = Lab::real(
            "cut off",
            "0.61.0",
            Scenario::new().turn(Turn::new().text("Once upon a ti").finish(reason)),
        );
        let outcome = lab.run(lab.request("tell"));
        let failure = outcome.failure.as_ref().expect(reason);
        assert_eq!((outcome.status, failure.kind), (Status::Failed, FailureKind::InvalidResponse));
        assert_eq!((outcome.finish_reason.as_deref(), outcome.exit_code), (Some(reason), Some(0)));
        assert_eq!(outcome.text.all(), "Once upon a ti");
        assert!(failure.message.contains(reason) && outcome.warnings.is_empty(), "{outcome:?}");
    }
}

#[test]
fn real_cli_only_the_last_answer_decides_whether_it_was_cut_off() {
    let call = || Turn::new().text("Look. ").call("list_directory", json!({"dir_path": "."}));
    let cut = || call().finish("MAX_TOKENS");
    let lab = Lab::real("cut before", "0.61.0", Scenario::new().turn(cut()).turn(Turn::say("All of it.")));
    let outcome = lab.run(lab.request("tell"));
    assert_eq!((outcome.status, outcome.finish_reason.as_deref()), (Status::Success, Some("STOP")));
    assert_eq!(outcome.warnings, ["An answer was cut off at the limit of output tokens (MAX_TOKENS)"]);
    // After a tool result the CLI takes a stream that broke off for an answer.
    let broken = Turn::new().text("Half of i").without_finish();
    let lab = Lab::real("broken off", "0.61.0", Scenario::new().turn(call()).turn(broken));
    let outcome = lab.run(lab.request("tell"));
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::InvalidResponse, "{failure:?}");
    assert_eq!((outcome.finish_reason.as_deref(), outcome.text.last()), (None, "Half of i"));
}

#[test]
fn real_cli_usage_events_add_up_to_the_outcome_with_a_router_and_a_sub_agent() {
    let scenario = Scenario::dynamic(|request: &alhena_scripted::RecordedRequest| {
        let results = request.results_since_prompt().count();
        match request.prompt() {
            Some("go") if results == 0 => {
                Turn::new().call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Find main"}))
            }
            Some("go") => Turn::say("Done."),
            _ => Turn::new().call("complete_task", json!({"result": {"response": "found"}})),
        }
    });
    for transport in [Transport::Headless, Transport::Acp] {
        let lab = Lab::real("adds up", "0.61.0", scenario.clone());
        let request = lab.request("go").model("auto").approval(Approval::Yolo).transport(transport);
        let (events, outcome) = lab.run_with_events(request);
        let told: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Usage(told) => Some(told),
                _ => None,
            })
            .collect();
        let mut sum = Usage::default();
        for (number, told) in (1..).zip(&told) {
            assert_eq!(told.call, Some(number), "{transport:?} {told:?}");
            told.usage.models.iter().for_each(|(model, tokens)| sum.add(model, tokens));
        }
        assert!(told.len() > 2, "{transport:?} {told:?}");
        assert_eq!(told.len() as u64, outcome.model_calls, "{transport:?}");
        assert_eq!(sum.all, outcome.usage.all, "{transport:?}");
    }
}

#[test]
fn real_cli_text_is_not_repeated_after_a_retry_in_mid_stream() {
    let scenario = Scenario::new()
        .turn(Turn::new().text("Half an ans").without_finish())
        .turn(Turn::say("Half an answer, whole."));
    let lab = Lab::real("retry", "0.61.0", scenario);
    let outcome = lab.run(lab.request("tell"));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(outcome.text.all(), "Half an answer, whole.");
}

#[test]
fn real_cli_20_runs_at_8_at_a_time_in_one_directory_are_complete_and_resumable() {
    let scenario = Scenario::new()
        .turn(Turn::new().thought("Plan", "think").text("Working. ").calls([
            ("write_file", json!({"file_path": "shared.txt", "content": "x\n"})),
            ("run_shell_command", json!({"command": "exit 7"})),
        ]))
        .turn(Turn::say("Done."))
        .after(After::Repeat);
    let lab = Arc::new(Lab::real("parallel", "0.61.0", scenario));
    let url = lab.env.get("GOOGLE_GEMINI_BASE_URL").unwrap().to_string_lossy().into_owned();
    let numbers = Arc::new(std::sync::Mutex::new(0..20));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (lab, numbers, url) = (lab.clone(), numbers.clone(), url.clone());
            std::thread::spawn(move || {
                let mut ids = Vec::new();
                loop {
                    let Some(number) = numbers.lock().unwrap().next() else { return ids };
                    // Each run has its own turns.
                    let mut request = lab.request(&format!("run {number}")).approval(Approval::Yolo);
                    request = request.env("GOOGLE_GEMINI_BASE_URL", format!("{url}/run-{number}"));
                    request.first_event_timeout = Some(Duration::from_secs(180));
                    let (events, outcome) = lab.run_with_events(request);
                    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
                    assert!(outcome.text.all().ends_with("Done."));
                    assert_eq!(
                        outcome.commands[0].exit_code,
                        Some(7),
                        "run {number}: {:?}",
                        outcome.warnings
                    );
                    assert!(
                        outcome.files.iter().any(|file| file.claimed && file.diff.is_some()),
                        "run {number}"
                    );
                    assert!(
                        events.iter().any(|event| matches!(event.kind, EventKind::Thinking { .. })),
                        "run {number}"
                    );
                    ids.push(outcome.session_id.clone().unwrap());
                }
            })
        })
        .collect();
    let ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(ids.len(), 20);
    for id in ids.iter().step_by(7) {
        let outcome = lab.run(lab.request("again").approval(Approval::Yolo).resume(Resume::Id(id.clone())));
        assert_eq!(
            (outcome.status, outcome.session_id.as_ref()),
            (Status::Success, Some(id)),
            "{:?}",
            outcome.failure
        );
    }
    let chats: Vec<_> = std::fs::read_dir(lab.home.gemini().join("tmp"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path().join("chats"))
        .collect();
    let names: Vec<String> = chats
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect();
    for id in &ids {
        let short: String = id.chars().take(8).collect();
        assert!(names.iter().any(|name| name.contains(&short)), "{id} is not in {names:?}");
    }
}

#[test]
fn real_cli_without_a_session_file_the_stream_alone_still_works() {
    let scenario = Scenario::new()
        .turn(Turn::new().call(
            "run_shell_command",
            json!({"command": "rm -rf \"$GEMINI_CLI_HOME\"/.gemini/tmp/*/chats; echo gone"}),
        ))
        .turn(Turn::say("Still here."));
    let lab = Lab::real("deleted", "0.61.0", scenario);
    let outcome = lab.run(lab.request("go").approval(Approval::Yolo));
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(outcome.text.last(), "Still here.");
}

#[test]
fn real_cli_a_sub_agents_thoughts_are_not_its_masters_and_both_sessions_are_kept() {
    let scenario = Scenario::new()
        .turn(
            Turn::new()
                .thought("Plan", "Let another look.")
                .text("Delegating. ")
                .call("invoke_agent", json!({"agent_name": "generalist", "prompt": "Find main"})),
        )
        .turn(
            Turn::new()
                .thought("Sub", "I am another.")
                .call("complete_task", json!({"result": {"response": "It is in main.py"}})),
        )
        .turn(Turn::say("The agent found it."));
    let lab = Lab::real("subagent", "0.61.0", scenario);
    let mut run = lab.start(lab.request("go").approval(Approval::Yolo));
    let events = crate::lab::all(&mut run);
    let sessions = run.session_files();
    let outcome = run.outcome_blocking();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(outcome.text.last(), "The agent found it.");
    let thoughts: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Thinking { subject, .. } => Some(subject.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thoughts, ["Plan"]);
    let results: Vec<(&str, bool)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResult { name, ok, output, .. } => {
                assert!(
                    output.as_deref().is_some_and(|output| output.contains("It is in main.py")),
                    "{output:?}"
                );
                Some((name.as_str(), *ok))
            }
            _ => None,
        })
        .collect();
    assert_eq!(results, [("invoke_agent", true)]);
    let id = outcome.session_id.as_deref().unwrap();
    let [session] = &sessions[..] else { panic!("{sessions:?}") };
    assert!(std::fs::read_to_string(session).unwrap().contains("Delegating."));
    let below: Vec<String> = std::fs::read_dir(session.with_file_name(id))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(below.len() == 1 && below[0].contains("I am another."), "{below:?}");
}
