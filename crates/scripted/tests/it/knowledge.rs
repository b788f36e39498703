//! What the server knows: requests, state, gates, recordings.

use std::time::{Duration, SystemTime};

use crate::common::{COUNT, Client, GENERATE, LIMIT, STREAM, ask, prompt, serve};
use alhena_scripted::{Ending, Scenario, Turn};
use serde_json::{Value, json};

#[test]
fn requests_are_remembered_without_secrets() {
    let server = serve(Scenario::new());
    let mut client = Client::new(&server);
    let before = SystemTime::now();
    client.post(&format!("/s/x/r1{STREAM}&key=hidden&b=1"), &prompt("one"));
    client.post(&format!("/s/x/r1{STREAM}"), &prompt("two"));
    client.post(&format!("/s/x{GENERATE}"), &json!({"a": 1}));
    client.post(&format!("/s/x{COUNT}"), &json!({}));
    let requests = server.requests("x");
    let shown: Vec<_> = requests
        .iter()
        .map(|each| (each.run.as_str(), each.number, each.action.as_str(), each.body.clone()))
        .collect();
    assert_eq!(
        shown,
        [
            ("r1", 1, "streamGenerateContent", prompt("one")),
            ("r1", 2, "streamGenerateContent", prompt("two")),
            ("", 1, "generateContent", json!({"a": 1})),
            ("", 1, "countTokens", json!({})),
        ]
    );
    let first = &requests[0];
    assert_eq!((first.method.as_str(), first.model.as_str()), ("POST", "gemini-2.5-flash"));
    assert_eq!(first.path, format!("/s/x/r1{STREAM}&key=[secret]&b=1"));
    assert_eq!(first.headers["x-goog-api-key"], "[secret]");
    assert_eq!(first.headers["host"], "x");
    assert!(first.at >= before && first.at <= SystemTime::now());
    assert!(!format!("{requests:?}").contains("very-secret"));
    assert_eq!(server.requests("unknown").len(), 0);
}

#[test]
fn the_state_tells_who_is_being_answered_and_how_far() {
    let turn = Turn::new().thought("A", "b").text("c").gate("go").call("f", json!({}));
    let server = serve(Scenario::new().turn(turn));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x/busy{STREAM}"), &prompt("hi"));
    Client::new(&server).post(&format!("/s/x/idle{GENERATE}"), &prompt("hi"));
    let at_gate = |state: &alhena_scripted::ScenarioState| {
        let busy = state.runs.get("busy").and_then(|run| run.turns.first());
        busy.is_some_and(|turn| turn.steps.last().is_some_and(|step| step.kind == "gate"))
    };
    assert!(server.wait_until("x", LIMIT, at_gate));
    let state = server.state("x");
    let busy = &state.runs["busy"];
    assert_eq!((state.requests, busy.requests, busy.in_flight, busy.in_turn()), (2, 1, 1, true));
    let idle = &state.runs["idle"];
    assert_eq!((idle.requests, idle.in_flight, idle.in_turn(), idle.turns.len()), (1, 0, false, 0));
    let kinds =
        |turn: &alhena_scripted::TurnState| turn.steps.iter().map(|step| step.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&busy.turns[0]), ["thought", "text", "gate"]);
    assert_eq!((state.turns_in_flight(), state.turns_served()), (1, 0));

    server.release("x", "go");
    assert_eq!(client.response().calls(), [("f".to_owned(), json!({}))]);
    // Who has seen the end of an answer finds the run idle.
    let state = server.state("x");
    let turn = &state.runs["busy"].turns[0];
    assert_eq!(
        (kinds(turn), turn.model.as_str()),
        (vec!["thought", "text", "gate", "call"], "gemini-2.5-flash")
    );
    assert_eq!((state.runs["busy"].in_flight, state.runs["busy"].in_turn()), (0, false));
    let (ended, how) = turn.ended.unwrap();
    assert_eq!(how, Ending::Complete);
    let mut times: Vec<SystemTime> = vec![turn.started];
    times.extend(turn.steps.iter().map(|step| step.at));
    times.push(ended);
    assert!(times.is_sorted());
    assert_eq!((state.turns_in_flight(), state.turns_served()), (0, 1));
}

#[test]
fn a_wait_ends_when_its_time_is_over_or_nobody_can_fulfil_it() {
    let server = serve(Scenario::new());
    assert!(!server.wait_until("x", Duration::from_millis(1), |_| false));
    assert!(!server.wait_until("unknown", LIMIT, |_| true));
    server.release("unknown", "gate");
    assert_eq!(server.state("unknown"), alhena_scripted::ScenarioState::default());
}

#[test]
fn a_gate_that_is_open_stays_open() {
    let server = serve(Scenario::new().turn(Turn::new().gate("g").text("a").always()));
    server.release("x", "g");
    assert_eq!([ask(&server, &prompt("hi")).said(), ask(&server, &prompt("hi")).said()], ["a", "a"]);
}

#[test]
fn the_prompt_is_the_last_text_of_the_user() {
    let texts = |parts: &[&str]| {
        let parts: Vec<Value> = parts.iter().map(|text| json!({"text": text})).collect();
        json!({"role": "user", "parts": parts})
    };
    let result = json!({"role": "user", "parts": [
        {"functionResponse": {"name": "f", "response": {"output": "o"}}}, {"text": "not a prompt"},
    ]});
    let server = serve(Scenario::new());
    ask(
        &server,
        &json!({"contents": [
            texts(&["<session_context>\n...", "old"]), {"role": "model", "parts": [{"text": "m"}]},
            texts(&["<hook_context>h</hook_context>", "new", "\n--- Content from referenced files ---", "file"]),
            result, {"role": "model", "parts": [{"functionCall": {"name": "g"}}]}, result, texts(&["<hook_context>x"]),
        ]}),
    );
    let request = &server.requests("x")[0];
    assert_eq!(request.prompt(), Some("new"));
    let output = json!({"output": "o"});
    assert_eq!(request.results_since_prompt().collect::<Vec<_>>(), [("f", &output), ("f", &output)]);
    assert_eq!(request.responses().count(), 0);
}
