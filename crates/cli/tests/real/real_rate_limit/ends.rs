//! Runs that do not go on, or are ended.

use alhena_agent::OnRateLimit;
use alhena_model::{EventKind, FailureKind, Outcome, Status};
use alhena_scripted::{Scenario, Turn};

use super::{
    OTHER, asked, check_events, counted, counts_and_then, has_warning, lab, minute, other_model, request,
    seconds, wait,
};
use crate::lab::Build;

fn is_limited(outcome: &Outcome) -> &alhena_model::Failure {
    let failure = outcome.failure.as_ref().expect("a failure");
    assert_eq!((failure.kind, outcome.exit_status()), (FailureKind::RateLimited, 6), "{failure:?}");
    failure
}

#[test]
fn real_cli_a_wait_that_is_longer_than_the_limit_ends_the_run_at_once() {
    for attempts in [1, 3] {
        let lab = lab("too long", Scenario::new().turn(minute(100)).turn(Turn::say("Never.")));
        let (events, outcome) = lab.run_with_events(request(&lab, wait(30)).max_attempts(attempts));
        assert_eq!(is_limited(&outcome).retry_after_ms, Some(100_000), "{attempts}");
        assert!(has_warning(&outcome, &["asks to wait 100 s", "waits for 30 s"]), "{:?}", outcome.warnings);
        check_events(&events, &outcome);
        assert_eq!(asked(&lab).len(), 1);
    }
}

#[test]
fn real_cli_a_daily_quota_is_not_waited_for() {
    let lab = lab("daily", Scenario::new().turn(Turn::daily_quota()).turn(Turn::say("Never.")));
    let (events, outcome) = lab.run_with_events(request(&lab, wait(30)));
    assert!(is_limited(&outcome).daily_quota);
    assert!(has_warning(&outcome, &["daily quota", "not waited for"]), "{:?}", outcome.warnings);
    check_events(&events, &outcome);
    let errors = events.iter().filter(|event| matches!(event.kind, EventKind::Error { .. })).count();
    assert_eq!((errors, asked(&lab).len()), (1, 1));
}

#[test]
fn real_cli_who_fails_fast_fails_as_ever_and_who_has_no_other_model_left_fails_too() {
    let lab = lab("both", Scenario::new().turn(Turn::daily_quota().always()));
    let outcome = lab.run(request(&lab, OnRateLimit::Fail));
    assert!(is_limited(&outcome).daily_quota);
    assert_eq!(asked(&lab).len(), 1);
    let outcome = lab.run(request(&lab, other_model()));
    assert!(is_limited(&outcome).daily_quota);
    assert!(has_warning(&outcome, &[OTHER, "is limited as well"]), "{:?}", outcome.warnings);
    assert_eq!(asked(&lab).len(), 3);
}

#[test]
fn real_cli_a_stop_while_it_waits_ends_the_run_at_once_and_what_was_done_is_told() {
    let lab = lab("stopped", counts_and_then([minute(250), Turn::say("Never.")]));
    let mut run = lab.start(request(&lab, wait(280)).max_attempts(1));
    let mut waits = false;
    while let Some(event) = run.next_blocking() {
        if matches!(&event.kind, EventKind::Warning { message } if message.contains("then going on")) {
            waits = true;
            run.stop();
        }
    }
    let outcome = run.outcome_blocking();
    assert!(waits);
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((outcome.status, failure.kind), (Status::Cancelled, FailureKind::Cancelled), "{failure:?}");
    assert!(failure.hint.contains("`resume`="), "{failure:?}");
    assert_eq!((counted(&lab), outcome.tool_calls, asked(&lab).len()), (1, 1, 2));
}

#[test]
fn real_cli_the_time_limit_counts_what_is_waited_for_and_the_limit_of_silence_does_not() {
    let lab = lab("timeout", Scenario::new().turn(minute(250)).turn(Turn::say("Never.")));
    let limited = request(&lab, wait(280)).max_attempts(1).timeout(seconds(20));
    let outcome = lab.run(limited);
    assert_eq!(outcome.status, Status::Timeout, "{:?}", outcome.failure);
    let lab = super::lab("silence", Scenario::new().turn(minute(15)).turn(Turn::say("Done.")));
    // The CLI itself waits for these 15 s.
    let outcome = lab.run(request(&lab, wait(60)).stall_timeout(seconds(12)));
    super::is_success(&outcome);
}

#[test]
fn real_cli_a_budget_holds_across_attempts() {
    let turns = [
        Turn::daily_quota(),
        Turn::new().call("glob", serde_json::json!({"pattern": "a"})),
        Turn::say("Never."),
    ];
    let lab = lab("budget", counts_and_then(turns));
    let outcome = lab.run(request(&lab, other_model()).max_calls(3));
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((failure.kind, outcome.exit_status()), (FailureKind::Budget, 9), "{failure:?}");
    assert_eq!((asked(&lab).len(), counted(&lab)), (3, 1));
}
