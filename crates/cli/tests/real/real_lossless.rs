//! What the CLI's stream drops, and a run of Alhena has all the same.

use crate::lab::{Build, Lab, shell};
use alhena_agent::Approval;
use alhena_agent::Transport;
use alhena_model::{Change, FileChange, Source, Usage};
use alhena_model::{EventKind, FailureKind, Status};
use alhena_scripted::{Scenario, Turn};
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
        if version == "0.61.0" {
            // A thought is out before the tool that follows it has finished.
            let position = |wanted: &dyn Fn(&EventKind) -> bool| {
                events.iter().position(|event| wanted(&event.kind)).unwrap()
            };
            let thought =
                position(&|kind| matches!(kind, EventKind::Thinking { subject, .. } if subject == "Run"));
            let result = position(
                &|kind| matches!(kind, EventKind::ToolResult { name, .. } if name == "run_shell_command"),
            );
            assert!(thought < result);
        }
        assert!(outcome.usage.all.thoughts > 0);
        let per_message = events
            .iter()
            .filter(|event| event.source == Source::Session && matches!(event.kind, EventKind::Usage(_)));
        assert_eq!(per_message.count(), 4, "{version}");
    }
}

#[test]
fn real_cli_an_answer_that_was_cut_off_is_a_failure_with_its_reason_and_its_text() {
    for reason in ["MAX_TOKENS", "OTHER"] {
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
fn real_cli_without_a_session_file_the_stream_alone_still_works() {
    let scenario = Scenario::new()
        .turn(shell("rm -rf \"$GEMINI_CLI_HOME\"/.gemini/tmp/*/chats; echo gone"))
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
