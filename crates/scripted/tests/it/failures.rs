//! Everything that can go wrong with an API, on demand.

use std::time::Duration;

use crate::common::{Client, End, LIMIT, STREAM, ask, prompt, scenario, serve};
use alhena_scripted::{Ending, Scenario, Server, Turn};
use serde_json::json;

/// Waits until the first turn of `x` has begun a step of this kind.
fn wait_for_step(server: &Server, kind: &str) {
    let reached = server.wait_until("x", LIMIT, |state| {
        let turns = state.runs.values().flat_map(|run| &run.turns);
        turns.flat_map(|turn| &turn.steps).any(|step| step.kind == kind)
    });
    assert!(reached, "no step {kind}");
}

/// Waits until the first turn of `x` has ended, and says how.
fn ending(server: &Server) -> Ending {
    let mut ending = None;
    assert!(server.wait_until("x", LIMIT, |state| {
        ending = state.runs.get("").and_then(|run| run.turns.first()?.ended);
        ending.is_some()
    }));
    ending.unwrap().1
}

#[test]
fn a_status_alone_gives_the_words_of_the_api() {
    let names = [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (429, "RESOURCE_EXHAUSTED"),
        (499, "CANCELLED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
        (418, "UNKNOWN"),
    ];
    let turns = names.iter().map(|(status, _)| Turn::status(*status));
    let server = serve(turns.fold(Scenario::new(), Scenario::turn));
    for (status, name) in names {
        let response = ask(&server, &prompt("hi"));
        let error = json!({"code": status, "message": format!("Scripted error {status}."), "status": name});
        assert_eq!((response.status, response.json()), (status, json!({ "error": error })));
    }
    assert_eq!(server.state("x").turns_served(), names.len());
}

#[test]
fn an_error_keeps_its_details() {
    let server = serve(scenario(include_str!("../data/03_quota_daily_streamjson.json")));
    let response = ask(&server, &prompt("hi"));
    assert_eq!(response.status, 429);
    assert_eq!(response.header("content-type"), Some("application/json; charset=UTF-8"));
    assert_eq!(
        response.json(),
        json!({"error": {
            "code": 429,
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                    "quotaValue": "50",
                }]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"},
            ],
        }})
    );
    let built = serve(Scenario::new().turn(Turn::daily_quota()));
    assert_eq!(ask(&built, &prompt("hi")).json(), response.json());
}

#[test]
fn a_rate_limit_says_when_to_try_again() {
    let turn =
        Turn::rate_limited(Duration::from_millis(1500)).retry_after(2).header("x-extra", "1\r\nx-evil: 2");
    let server = serve(Scenario::new().turn(turn));
    let response = ask(&server, &prompt("hi"));
    assert_eq!((response.status, response.header("retry-after")), (429, Some("2")));
    assert_eq!((response.header("x-extra"), response.header("x-evil")), (Some("1  x-evil: 2"), None));
    let details = response.json()["error"]["details"].clone();
    assert_eq!(
        details[0]["violations"][0]["quotaId"],
        "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
    );
    assert_eq!(details[1]["retryDelay"], "1.5s");
}

#[test]
fn a_hang_before_the_headers_sends_nothing_and_ends_when_the_client_leaves() {
    let server = serve(scenario(include_str!("../data/03_hang_headers_streamjson.json")));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    wait_for_step(&server, "hang");
    client.stream.set_nonblocking(true).unwrap();
    assert_eq!(client.stream.peek(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert!(server.state("x").runs[""].in_turn());
    client.close();
    assert_eq!(ending(&server), Ending::ClientGone);
    assert!(server.wait_until("x", LIMIT, |state| state.runs[""].in_flight == 0));
}

#[test]
fn a_hang_in_mid_stream_comes_after_what_was_sent() {
    let server = serve(scenario(include_str!("../data/03_hang_midstream_streamjson.json")));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    assert!(client.read_until("partial "));
    wait_for_step(&server, "hang");
    let state = server.state("x");
    assert_eq!((state.turns_in_flight(), state.turns_served()), (1, 0));
    client.close();
    assert_eq!(ending(&server), Ending::ClientGone);
    assert_eq!(server.state("x").turns_served(), 0);
}

#[test]
fn a_dropped_connection_ends_in_the_middle_of_the_stream() {
    let server = serve(scenario(include_str!("../data/03_drop_midstream_json.json")));
    let response = ask(&server, &prompt("hi"));
    assert_eq!((response.said().as_str(), response.end), ("before drop ", End::Closed));
    assert_eq!(ending(&server), Ending::Cut);
}

#[test]
fn a_reset_is_a_reset() {
    let server = serve(Scenario::new().turn(Turn::say("before ").gate("read").reset()));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    assert!(client.read_until("before "));
    // A reset may overtake what was sent before it; by now it has arrived.
    server.release("x", "read");
    assert_eq!(client.response().end, End::Reset);
    assert_eq!(ending(&server), Ending::Cut);
}

#[test]
fn a_connection_can_be_cut_before_the_headers() {
    let server = serve(scenario(r#"{"turns": [{"drop": true}, {"reset": true}]}"#));
    let path = format!("/s/x{STREAM}");
    for wanted in [End::Closed, End::Reset] {
        let mut client = Client::new(&server);
        client.send_post(&path, &prompt("hi"));
        assert_eq!(client.try_response().unwrap_err(), wanted);
    }
}

#[test]
fn a_client_that_leaves_during_a_pause_is_noticed() {
    let server = serve(Scenario::new().turn(Turn::say("a").sleep(Duration::from_secs(3600)).text("b")));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    wait_for_step(&server, "sleep");
    drop(client);
    assert_eq!(ending(&server), Ending::ClientGone);
}

#[test]
fn a_delay_comes_before_the_headers() {
    let read = scenario(include_str!("../data/11_race_4.json"));
    assert_eq!(read.turns, [Turn::say("slow answer").delay(Duration::from_secs(2))]);
    let server = serve(Scenario::new().turn(Turn::say("slow").delay(Duration::from_secs(3600))));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    assert!(server.wait_until("x", LIMIT, |state| state.turns_in_flight() == 1));
    client.stream.set_nonblocking(true).unwrap();
    assert_eq!(client.stream.peek(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn dropping_the_server_ends_what_hangs() {
    let scenario = Scenario::new()
        .turn(Turn::new().hang_before_headers())
        .turn(Turn::say("a").hang())
        .turn(Turn::say("a").sleep(Duration::from_secs(3600)))
        .turn(Turn::say("a").gate("never"));
    let server = serve(scenario);
    let path = format!("/s/x{STREAM}");
    let mut clients: Vec<Client> = (0..4)
        .map(|_| {
            let mut client = Client::new(&server);
            client.send_post(&path, &prompt("hi"));
            client
        })
        .collect();
    clients.push(Client::new(&server));
    let waiting = |state: &alhena_scripted::ScenarioState| {
        let turns = state.runs.values().flat_map(|run| &run.turns);
        turns
            .flat_map(|turn| &turn.steps)
            .filter(|step| ["hang", "sleep", "gate"].contains(&step.kind))
            .count()
    };
    assert!(server.wait_until("x", LIMIT, |state| waiting(state) == 4));
    // Returns only when all threads have ended.
    drop(server);
    for client in &mut clients {
        assert!(!client.read_until("never sent"));
    }
}

#[test]
fn a_server_that_is_dropped_during_a_stream_that_nobody_reads_ends() {
    let server = serve(Scenario::new().turn(Turn::say("x".repeat(16 * 1024 * 1024))));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    assert!(client.read_until("HTTP/1.1 200"));
    drop(server);
}
