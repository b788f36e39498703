//! Runs that go on.

use alhena_agent::OnRateLimit;
use alhena_model::EventKind;
use alhena_scripted::{Scenario, Turn, Usage};
use serde_json::json;

use super::{
    MODEL, OTHER, asked, check_events, counted, counts_and_then, has_warning, is_success, lab,
    last_request_says, minute, other_model, request, wait,
};
use crate::lab::Build;

#[test]
fn real_cli_a_wait_that_the_cli_bears_itself_is_told_and_nothing_is_begun_again() {
    let lab = lab("bears", Scenario::new().turn(minute(1)).turn(Turn::say("Done.")));
    let (events, outcome) = lab.run_with_events(request(&lab, wait(60)));
    is_success(&outcome);
    assert_eq!(outcome.text.all(), "Done.");
    assert!(
        has_warning(&outcome, &["limits its requests", "waiting", "then asking again"]),
        "{:?}",
        outcome.warnings
    );
    check_events(&events, &outcome);
    let prompts = events.iter().filter(|event| matches!(event.kind, EventKind::Prompt { .. })).count();
    assert_eq!((prompts, asked(&lab).len()), (1, 2));
}

#[test]
fn real_cli_what_the_cli_gives_up_on_is_waited_for_and_asked_again_in_the_same_session() {
    let lab = lab("gives up", Scenario::new().turn(minute(1)).turn(Turn::say("Done.")));
    let (events, outcome) = lab.run_with_events(request(&lab, wait(60)).max_attempts(1));
    is_success(&outcome);
    assert_eq!(outcome.text.all(), "Done.");
    assert!(has_warning(&outcome, &["waiting 1 s, then going on"]), "{:?}", outcome.warnings);
    check_events(&events, &outcome);
    // Nothing was answered, so it is the prompt itself that is asked again, once.
    assert_eq!(last_request_says(&lab, "count"), 1);
    let session = outcome.session_id.clone().unwrap();
    let stored = alhena_sessions(&lab);
    assert_eq!(stored, 1, "{session}");
}

/// How many sessions are in the store of the lab's user.
fn alhena_sessions(lab: &super::Lab) -> usize {
    let mut command = std::process::Command::new(crate::lab::ALHENA);
    command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    let out = command.args(["sessions", "list", "--json"]).output().unwrap();
    serde_json::Deserializer::from_slice(&out.stdout)
        .into_iter::<serde_json::Value>()
        .map(|value| value.unwrap())
        .map(|value| value.as_array().map_or(1, Vec::len))
        .sum()
}

#[test]
fn real_cli_another_model_goes_on_after_a_daily_quota_and_the_tools_that_ran_do_not_run_again() {
    let usage = |prompt| Usage {
        prompt_token_count: Some(prompt),
        candidates_token_count: Some(5),
        ..Usage::default()
    };
    let call = json!({"command": "echo x >> count.txt"});
    let scenario = Scenario::new()
        .turn(Turn::new().text("Counting. ").call("run_shell_command", call).usage(usage(1000)))
        .turn(Turn::daily_quota())
        .turn(Turn::say("Done.").usage(usage(2000)));
    let lab = lab("daily", scenario);
    let (events, outcome) = lab.run_with_events(request(&lab, other_model()));
    is_success(&outcome);
    assert_eq!(asked(&lab), [MODEL, MODEL, OTHER]);
    assert_eq!((counted(&lab), outcome.tool_calls, outcome.commands.len()), (1, 1, 1));
    assert_eq!((outcome.text.all(), outcome.text.last()), ("Counting. Done.", "Done."));
    assert!(
        has_warning(&outcome, &["daily quota is used up: going on with", OTHER]),
        "{:?}",
        outcome.warnings
    );
    check_events(&events, &outcome);
    // The model knows what it has done, and both models are counted.
    assert_eq!((last_request_says(&lab, "count"), last_request_says(&lab, "Please continue.")), (1, 1));
    assert_eq!((outcome.usage.all.prompt, outcome.usage.all.output), (3000, 10));
    assert_eq!(outcome.usage.models.keys().collect::<Vec<_>>(), [MODEL, OTHER]);
    assert_eq!(outcome.usage.models[OTHER].prompt, 2000);
    assert!(outcome.cost_usd.is_some_and(|cost| cost > 0.0));
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::Started { session_id, .. } => Some(session_id.clone()),
        _ => None,
    });
    assert_eq!(started, outcome.session_id);
    assert_eq!(alhena_sessions(&lab), 1);
}

#[test]
fn real_cli_another_model_goes_on_at_once_when_a_minute_would_have_to_be_waited_for() {
    for (name, begins) in [("first call", false), ("after a tool", true)] {
        let turns = [minute(50), Turn::say("Done.")];
        let scenario = match begins {
            true => counts_and_then(turns),
            false => turns.into_iter().fold(Scenario::new(), Scenario::turn),
        };
        let lab = lab(name, scenario);
        let (events, outcome) = lab.run_with_events(request(&lab, other_model()));
        is_success(&outcome);
        assert_eq!(asked(&lab).last().map(String::as_str), Some(OTHER), "{name}");
        assert_eq!((counted(&lab), outcome.text.last()), (usize::from(begins), "Done."), "{name}");
        assert_eq!(last_request_says(&lab, "count"), 1, "{name}");
        check_events(&events, &outcome);
        assert!(
            outcome.warnings.iter().any(|warning| warning.contains("going on with")),
            "{:?}",
            outcome.warnings
        );
        assert!(
            !outcome.warnings.iter().any(|warning| warning.contains("session file")),
            "{:?}",
            outcome.warnings
        );
        assert_eq!(alhena_sessions(&lab), 1, "{name}");
    }
}

#[test]
fn real_cli_a_run_that_goes_on_twice_and_was_a_resumed_one_has_one_session() {
    let first = Scenario::new().turn(Turn::say("Hello."));
    let turns = [minute(1), minute(1), Turn::say("Done.")];
    let lab = lab("resumed", turns.into_iter().fold(first, Scenario::turn));
    let before = lab.run(lab.request("remember me").trust(alhena_agent::Trust::Run));
    let id = before.session_id.clone().unwrap();
    let resumed = request(&lab, wait(60)).max_attempts(1).resume(alhena_agent::Resume::Id(id.clone()));
    let (events, outcome) = lab.run_with_events(resumed);
    is_success(&outcome);
    assert_eq!((outcome.session_id.clone(), outcome.text.all()), (Some(id), "Done."));
    assert_eq!((last_request_says(&lab, "remember me"), last_request_says(&lab, "count")), (1, 1));
    assert!(events.iter().enumerate().all(|(index, event)| event.seq == index as u64));
    assert_eq!(alhena_sessions(&lab), 1);
}

#[test]
fn real_cli_a_recording_of_several_attempts_plays_the_same() {
    let lab = lab("recorded", counts_and_then([Turn::daily_quota(), Turn::say("Done.")]));
    let dir = lab.home.path().join("recording");
    let (events, outcome) = lab.run_with_events(request(&lab, other_model()).record(&dir));
    is_success(&outcome);
    let mut played = Vec::new();
    let again = alhena_agent::recording::play(&dir, |item| {
        if let alhena_agent::Item::Event(event) = item {
            played.push(event);
        }
    });
    assert_eq!(again.unwrap(), outcome);
    assert_eq!(played, events);
}

#[test]
fn what_makes_no_sense_is_refused_before_the_start() {
    let lab = lab("refused", Scenario::new());
    for (model, why) in [(MODEL, "which is the model that is limited"), (" ", "names no model")] {
        let what = OnRateLimit::Model(model.to_owned());
        let error = lab.gemini.start(request(&lab, what), &lab.env).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    // A budget in dollars has to know the price of the other model, too.
    let what = OnRateLimit::Model("no-such-model".to_owned());
    let error = lab.gemini.start(request(&lab, what).max_cost(1.0), &lab.env).unwrap_err();
    assert!(error.to_string().contains("the price of \"no-such-model\" is not known"), "{error}");
    assert_eq!(asked(&lab).len(), 0);
}
