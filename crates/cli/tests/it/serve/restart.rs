//! The end of the server, and its next beginning.

use rustix::process::Signal;
use serde_json::json;

use super::runs::nothing_but_the_server;
use super::{alhena, goes_on, says, serve};

#[test]
fn after_a_restart_runs_are_there_with_their_events_and_what_was_killed_is_told_as_such() {
    let place = goes_on("killed");
    let mut served = serve(&place, &[]);
    let key = [("Idempotency-Key", "once")];
    let begun = served.ask_with("POST", "/v1/runs", &key, "{\"prompt\": \"go\"}").json();
    let id = begun["id"].as_str().unwrap().to_owned();
    served.follow(&format!("/v1/runs/{id}/events"), &[]).kind("text");
    let token = served.token.clone();
    served.signal(Signal::KILL);
    served.ended();
    nothing_but_the_server(&place, 0);
    let served = serve(&place, &[]);
    assert_eq!(served.token, token, "a browser that was there before still is");
    let run = served.get(&format!("/v1/runs/{id}"));
    assert_eq!((run["state"].as_str(), run["status"].as_str()), (Some("finished"), Some("failed")));
    assert_eq!(run["failure"]["kind"], "crashed");
    assert_eq!(served.get("/v1/now")["items"], json!([]), "nothing is told as live that is not");
    let events = served.events(&id);
    assert!(events.iter().any(|(_, event)| event["type"] == "text"));
    let (number, last) = events.last().unwrap();
    assert_eq!((last["type"].as_str(), *number), (Some("finished"), events.len() as u64 - 1));
    // Its key is still its key.
    let again = served.ask_with("POST", "/v1/runs", &key, "{\"prompt\": \"go\"}");
    assert_eq!(again.json()["id"].as_str(), Some(id.as_str()));
}

#[test]
fn a_second_server_does_not_take_the_first_ones_files() {
    let place = says("second", "Hello");
    let served = serve(&place, &[]);
    let second = alhena(&place, &["serve", "--port", "0"]);
    let said = second.stderr_text();
    assert!(!second.succeeded() && said.contains("in use by another server"), "{said}");
    assert_eq!(served.get("/v1/me")["access"], "full");
}

#[test]
fn told_to_end_it_waits_for_runs_and_begins_nothing_new() {
    let place = goes_on("waits");
    let mut served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let mut events = served.follow(&format!("/v1/runs/{id}/events"), &[]);
    events.kind("text");
    served.signal(Signal::TERM);
    let deadline = alhena_testbed::Deadline::after(std::time::Duration::from_secs(30));
    // Before it is told, such a request makes no sense.
    assert!(deadline.wait_until(|| served.post("/v1/runs", &json!({})).status == 503));
    assert_eq!(served.post("/v1/runs", &json!({"prompt": "more"})).status, 503);
    assert_eq!(served.get(&format!("/v1/runs/{id}"))["state"], "running", "it is waited for");
    served.post(&format!("/v1/runs/{id}/cancel"), &json!({}));
    assert_eq!(events.kind("finished")["outcome"]["status"], "cancelled");
    assert_eq!(served.ended(), Some(0));
    nothing_but_the_server(&place, 0);
}

#[test]
fn told_to_end_it_stops_runs_where_that_was_asked_and_followers_hear_the_end() {
    let place = goes_on("stops");
    let mut served = serve(&place, &["--on-exit", "stop"]);
    let id = served.run(&json!({"prompt": "go"}));
    let mut events = served.follow(&format!("/v1/runs/{id}/events"), &[]);
    events.kind("text");
    served.signal(Signal::INT);
    assert_eq!(events.kind("finished")["outcome"]["status"], "cancelled");
    assert!(events.next().is_none());
    assert_eq!(served.ended(), Some(0));
    nothing_but_the_server(&place, 0);
}

#[test]
fn told_twice_it_ends_at_once_and_leaves_nothing() {
    let place = goes_on("twice");
    let mut served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    served.follow(&format!("/v1/runs/{id}/events"), &[]).kind("text");
    served.signal(Signal::TERM);
    served.signal(Signal::INT);
    assert_eq!(served.ended(), Some(0));
    nothing_but_the_server(&place, 0);
}

#[test]
fn old_runs_are_forgotten_by_number() {
    let place = says("forgotten", "Hello");
    let served = serve(&place, &["--keep", "2"]);
    let ids: Vec<String> = (0..4)
        .map(|_| {
            let id = served.run(&json!({"prompt": "go"}));
            served.events(&id);
            id
        })
        .collect();
    served.until("/v1/runs", |list| list["runs"].as_array().unwrap().len() == 2);
    assert_eq!(served.ask("GET", &format!("/v1/runs/{}", ids[0]), "").status, 404);
    assert_eq!(served.get(&format!("/v1/runs/{}", ids[3]))["state"], "finished");
    let dir = place.lab.home.path().join("alhena/state/serve/runs");
    let deadline = alhena_testbed::Deadline::after(std::time::Duration::from_secs(30));
    assert!(deadline.wait_until(|| std::fs::read_dir(&dir).unwrap().count() == 2), "their files go too");
}
