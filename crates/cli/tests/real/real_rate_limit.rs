//! What a run does when the API limits its requests, on the real CLI.

mod ends;
mod goes_on;
mod views;
mod warm;

use std::time::Duration;

use crate::lab::{Build, Lab};
use alhena_agent::{Approval, OnRateLimit, ResolvedRequest, Trust};
use alhena_model::{Event, EventKind, Outcome, Status};
use alhena_scripted::{Scenario, Turn};
use serde_json::json;

/// The model of the requests, and the one that goes on.
const MODEL: &str = "gemini-2.5-flash";
const OTHER: &str = "gemini-2.5-flash-lite";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn minute(delay: u64) -> Turn {
    Turn::rate_limited(seconds(delay))
}

/// The model runs a command, and then the API does this.
fn counts_and_then(turns: impl IntoIterator<Item = Turn>) -> Scenario {
    let command = json!({"command": "echo x >> count.txt"});
    let scenario = Scenario::new().turn(Turn::new().text("Counting. ").call("run_shell_command", command));
    turns.into_iter().fold(scenario, Scenario::turn)
}

fn lab(name: &str, scenario: Scenario) -> Lab {
    Lab::real(name, "0.61.0", scenario)
}

fn request(lab: &Lab, what: OnRateLimit) -> ResolvedRequest {
    lab.request("count").approval(Approval::Yolo).trust(Trust::Run).on_rate_limit(what)
}

fn wait(limit: u64) -> OnRateLimit {
    OnRateLimit::Wait(seconds(limit))
}

fn other_model() -> OnRateLimit {
    OnRateLimit::Model(OTHER.to_owned())
}

fn is_success(outcome: &Outcome) {
    assert_eq!(outcome.status, Status::Success, "{:?} {:?}", outcome.failure, outcome.warnings);
}

/// The models that were asked, in order.
fn asked(lab: &Lab) -> Vec<String> {
    lab.server.requests("lab").into_iter().map(|request| request.model.clone()).collect()
}

/// How often the command ran.
fn counted(lab: &Lab) -> usize {
    std::fs::read_to_string(lab.workspace().join("count.txt")).map_or(0, |text| text.lines().count())
}

/// How often this is said in the last request.
fn last_request_says(lab: &Lab, text: &str) -> usize {
    lab.server.requests("lab").last().unwrap().texts().filter(|said| *said == text).count()
}

fn has_warning(outcome: &Outcome, words: &[&str]) -> bool {
    outcome.warnings.iter().any(|warning| words.iter().all(|word| warning.contains(word)))
}

/// Numbered without a gap, one beginning, one end, and no error in what has succeeded.
fn check_events(events: &[Event], outcome: &Outcome) {
    assert!(events.iter().enumerate().all(|(index, event)| event.seq == index as u64), "{events:#?}");
    let count = |is: fn(&EventKind) -> bool| events.iter().filter(|event| is(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Started { .. })), 1, "{events:#?}");
    assert_eq!(count(|kind| matches!(kind, EventKind::Finished { .. })), 1);
    if outcome.is_success() {
        assert_eq!(count(|kind| matches!(kind, EventKind::Error { .. })), 0, "{events:#?}");
    }
}
