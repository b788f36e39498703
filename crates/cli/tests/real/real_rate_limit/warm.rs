//! Warm agents: the same session gets another prompt.

use alhena_agent::OnRateLimit;
use alhena_agent::{AcpAgent, Transport};
use alhena_agent::{Approval, Pool, PoolOptions, TurnItem};
use alhena_scripted::{Scenario, Turn};

use super::{
    MODEL, OTHER, asked, check_events, counted, counts_and_then, has_warning, is_success, lab,
    last_request_says, minute, other_model, request, wait,
};
use crate::lab::Build;

#[test]
fn real_cli_over_acp_another_model_goes_on_and_tools_do_not_run_again() {
    let lab = lab("acp", counts_and_then([Turn::daily_quota(), Turn::say("Done.")]));
    let (events, outcome) = lab.run_with_events(request(&lab, other_model()).transport(Transport::Acp));
    is_success(&outcome);
    assert_eq!(asked(&lab), [MODEL, MODEL, OTHER]);
    assert_eq!((counted(&lab), outcome.tool_calls, outcome.text.last()), (1, 1, "Done."));
    assert!(has_warning(&outcome, &["going on with", OTHER]), "{:?}", outcome.warnings);
    check_events(&events, &outcome);
    assert_eq!(last_request_says(&lab, "Please continue."), 1);
    assert_eq!(outcome.usage.models.len(), 2, "{:?}", outcome.usage);
}

#[test]
fn real_cli_over_acp_a_wait_is_waited_for_and_the_prompt_asked_again() {
    let lab = lab("acp waits", Scenario::new().turn(minute(1)).turn(Turn::say("Done.")));
    let waits = request(&lab, wait(60)).max_attempts(1).transport(Transport::Acp);
    let (events, outcome) = lab.run_with_events(waits);
    is_success(&outcome);
    assert!(has_warning(&outcome, &["waiting 1 s, then going on"]), "{:?}", outcome.warnings);
    assert_eq!(last_request_says(&lab, "count"), 1);
    check_events(&events, &outcome);
}

#[test]
fn real_cli_a_conversation_stays_with_the_model_that_went_on() {
    let turns = [Turn::daily_quota(), Turn::say("One."), Turn::say("Two.")];
    let lab = lab("conversation", turns.into_iter().fold(Scenario::new(), Scenario::turn));
    let mut talk = lab.gemini.start_conversation(request(&lab, other_model()), &lab.env).unwrap();
    for expected in ["One.", "Two."] {
        let mut turn = talk.prompt("count").unwrap();
        while let Some(item) = turn.next_blocking() {
            assert!(!matches!(item, TurnItem::Asked(_)));
        }
        let outcome = turn.outcome_blocking();
        is_success(&outcome);
        assert_eq!(outcome.text.all(), expected);
    }
    assert_eq!(asked(&lab), [MODEL, OTHER, OTHER]);
}

#[test]
fn real_cli_a_conversation_that_is_cancelled_while_it_waits_goes_on_with_the_next_prompt() {
    let turns = [minute(250), Turn::say("Two.")];
    let lab = lab("cancelled", turns.into_iter().fold(Scenario::new(), Scenario::turn));
    let patient = request(&lab, wait(280)).max_attempts(1);
    let mut talk = lab.gemini.start_conversation(patient, &lab.env).unwrap();
    let mut turn = talk.prompt("first").unwrap();
    while let Some(item) = turn.next_blocking() {
        if let TurnItem::Event(event) = item
            && format!("{:?}", event.kind).contains("then going on")
        {
            turn.cancel();
        }
    }
    assert_eq!(turn.outcome_blocking().status, alhena_model::Status::Cancelled);
    let outcome = talk.prompt("second").unwrap().outcome_blocking();
    is_success(&outcome);
    assert_eq!((outcome.text.all(), last_request_says(&lab, "first")), ("Two.", 0));
}

#[test]
fn real_cli_in_a_pool_the_model_of_one_prompt_is_not_that_of_the_next() {
    let turns = [Turn::daily_quota(), Turn::say("One."), Turn::say("Two.")];
    let lab = lab("pool", turns.into_iter().fold(Scenario::new(), Scenario::turn));
    let pool = Pool::new(PoolOptions::default().processes(1)).unwrap();
    for expected in ["One.", "Two."] {
        let run = pool.start(&lab.gemini, request(&lab, other_model()).approval(Approval::Default), &lab.env);
        let outcome = run.unwrap().outcome_blocking();
        is_success(&outcome);
        assert_eq!(outcome.text.all(), expected);
    }
    assert_eq!(asked(&lab), [MODEL, OTHER, MODEL]);
}

#[test]
fn real_cli_another_agent_is_not_waited_for() {
    let lab = lab("other", Scenario::new());
    let agent = AcpAgent::new("/bin/cat").unwrap();
    let error =
        agent.start(crate::lab::request("x").on_rate_limit(OnRateLimit::Wait(super::seconds(1))), &lab.env);
    assert!(error.unwrap_err().to_string().contains("`on_rate_limit`"));
}
