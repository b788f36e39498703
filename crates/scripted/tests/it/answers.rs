//! What a turn looks like to the client.

use std::time::Duration;

use crate::common::{Client, End, GENERATE, STREAM, ask, prompt, scenario, serve, steps};
use alhena_scripted::{Call, Scenario, Step, Tokens, Turn, Usage};
use serde_json::json;

fn chunk(parts: serde_json::Value) -> serde_json::Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": "gemini-2.5-flash",
    })
}

fn last(reason: &str, usage: serde_json::Value) -> serde_json::Value {
    json!({
        "candidates": [{"content": {"parts": [], "role": "model"}, "index": 0, "finishReason": reason}],
        "modelVersion": "gemini-2.5-flash",
        "usageMetadata": usage,
    })
}

#[test]
fn each_step_is_one_event_and_the_last_event_ends_the_turn() {
    let server = serve(steps(r#"[{"text": "First. "}, {"sleep": 0.001}, {"text": "Second."}]"#));
    let response = ask(&server, &prompt("hi"));
    assert_eq!((response.status, response.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(response.end, End::Complete);
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 3, "totalTokenCount": 103});
    assert_eq!(
        response.events(),
        [chunk(json!([{"text": "First. "}])), chunk(json!([{"text": "Second."}])), last("STOP", usage)]
    );
}

#[test]
fn a_text_in_chunks_is_cut_between_characters() {
    let server = serve(steps(r#"[{"chunks": {"text": "añ🌍 end", "size": 3, "pause_ms": 1}}]"#));
    let response = ask(&server, &prompt("hi"));
    assert_eq!(response.parts(), [json!({"text": "añ🌍"}), json!({"text": " en"}), json!({"text": "d"})]);
}

#[test]
fn thoughts_are_marked_and_counted() {
    let server = serve(Scenario::new().turn(Turn::new().thought("Plan", "I will read it.").text("ok")));
    let response = ask(&server, &prompt("hi"));
    assert_eq!(
        response.parts(),
        [json!({"text": "**Plan**\nI will read it.", "thought": true}), json!({"text": "ok"})]
    );
    assert_eq!(
        response.events()[2]["usageMetadata"],
        json!({"promptTokenCount": 100, "candidatesTokenCount": 1, "totalTokenCount": 107, "thoughtsTokenCount": 6})
    );
}

#[test]
fn calls_carry_an_id_only_where_one_is_given_and_parallel_ones_share_an_event() {
    let server = serve(
        Scenario::new().turn(
            Turn::new()
                .call("a", json!({"x": 1}))
                .step(Step::Calls(vec![Call { name: "b".into(), args: json!({}), id: Some("id-7".into()) }]))
                .calls([("c", json!({})), ("d", json!({"y": [2]}))]),
        ),
    );
    let response = ask(&server, &prompt("hi"));
    let events = response.events();
    assert_eq!(events[0], chunk(json!([{"functionCall": {"name": "a", "args": {"x": 1}}}])));
    assert_eq!(events[1], chunk(json!([{"functionCall": {"id": "id-7", "name": "b", "args": {}}}])));
    assert_eq!(
        events[2],
        chunk(
            json!([{"functionCall": {"name": "c", "args": {}}}, {"functionCall": {"name": "d", "args": {"y": [2]}}}])
        )
    );
    assert_eq!(events[3]["usageMetadata"]["candidatesTokenCount"], 20);
}

#[test]
fn the_default_usage_is_that_of_the_recordings() {
    // 06_new_with_id: 20 tokens of output, 12 of thoughts, 432 in all.
    let server = serve(scenario(include_str!("../data/06_new_with_id.json")));
    let usage: Vec<_> = (0..4)
        .map(|_| ask(&server, &prompt("hi")).events().last().unwrap()["usageMetadata"].clone())
        .collect();
    assert_eq!(
        usage,
        [
            json!({"promptTokenCount": 100, "candidatesTokenCount": 7, "totalTokenCount": 114, "thoughtsTokenCount": 7,
                   "cachedContentTokenCount": 30, "toolUsePromptTokenCount": 3}),
            json!({"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}),
            json!({"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}),
            json!({"promptTokenCount": 100, "candidatesTokenCount": 3, "totalTokenCount": 108, "thoughtsTokenCount": 5}),
        ]
    );
}

#[test]
fn every_count_can_be_given_or_none_sent() {
    let all = Usage {
        prompt_token_count: Some(1),
        candidates_token_count: Some(2),
        thoughts_token_count: Some(0),
        cached_content_token_count: Some(4),
        tool_use_prompt_token_count: Some(5),
        total_token_count: Some(60),
    };
    let server = serve(
        Scenario::new()
            .turn(Turn::say("a").usage(all.clone()))
            .turn(Turn { usage: Tokens::Missing, ..Turn::say("b") })
            .turn(Turn::say("c").without_finish().usage(all)),
    );
    assert_eq!(
        ask(&server, &prompt("hi")).events()[1]["usageMetadata"],
        json!({"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 60, "thoughtsTokenCount": 0,
               "cachedContentTokenCount": 4, "toolUsePromptTokenCount": 5})
    );
    assert_eq!(ask(&server, &prompt("hi")).events()[1].get("usageMetadata"), None);
    let unfinished = ask(&server, &prompt("hi")).events()[1].clone();
    assert_eq!(unfinished["usageMetadata"]["promptTokenCount"], 1);
    assert_eq!(unfinished["candidates"][0].get("finishReason"), None);
    let read = scenario(r#"{"turns": [{"steps": [{"text": "b"}], "usage": null}]}"#);
    assert_eq!(read.turns, [Turn { usage: Tokens::Missing, ..Turn::say("b") }]);
}

#[test]
fn a_turn_ends_with_the_reason_given_or_with_none() {
    let server = serve(scenario(
        r#"{"turns": [{"steps": [{"text": "cut"}], "finish": "MAX_TOKENS"}, {"finish": "SAFETY"},
                      {"steps": [{"text": "gone"}], "finish": null}, {"finish": null}]}"#,
    ));
    let reason =
        |event: &serde_json::Value| event["candidates"][0]["finishReason"].as_str().map(str::to_owned);
    let reasons: Vec<Vec<_>> =
        (0..4).map(|_| ask(&server, &prompt("hi")).events().iter().map(reason).collect()).collect();
    let (max, safety) = (Some("MAX_TOKENS".to_owned()), Some("SAFETY".to_owned()));
    assert_eq!(reasons, [vec![None, max], vec![safety], vec![None], vec![]]);
}

#[test]
fn raw_bytes_and_whole_chunks_are_sent_as_they_are() {
    let server = serve(
        Scenario::new().turn(
            Turn::new()
                .raw(&b"data: \xff\xfe\n\n"[..])
                .malformed()
                .step(Step::Chunk(json!({"promptFeedback": {"blockReason": "SAFETY"}})))
                .without_finish(),
        ),
    );
    let response = ask(&server, &prompt("hi"));
    let mut wanted = b"data: \xff\xfe\n\ndata: {\"candidates\": [{\"content\":\r\n\r\n".to_vec();
    wanted.extend_from_slice(b"data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\r\n\r\n");
    assert_eq!(response.body, wanted);
    assert_eq!(response.end, End::Complete);
}

#[test]
fn the_number_of_the_turn_can_be_said() {
    let server =
        serve(scenario(include_str!("../data/05_at_file.json")).after(alhena_scripted::After::Repeat));
    let said: Vec<String> = (0..2).map(|_| ask(&server, &prompt("hi")).said()).collect();
    assert_eq!(said, ["ok 1", "ok 2"]);
}

#[test]
fn a_whole_response_can_be_given() {
    let raw = json!({"candidates": [], "note": 1});
    let turn = Turn::response(raw.clone());
    let server = serve(Scenario::new().turn(turn.clone()).generate(turn));
    assert_eq!(ask(&server, &prompt("hi")).events(), std::slice::from_ref(&raw));
    assert_eq!(Client::new(&server).post(&format!("/s/x{GENERATE}"), &prompt("hi")).json(), raw);
}

#[test]
fn generate_content_gives_the_steps_of_a_rule_in_one_object() {
    let rule = Turn::new()
        .thought("S", "t")
        .text("a")
        .sleep(Duration::from_millis(1))
        .text("b")
        .call("f", json!({}));
    let server = serve(Scenario::new().generate(rule));
    let response = Client::new(&server).post(&format!("/s/x{GENERATE}"), &prompt("hi"));
    assert_eq!(
        response.json()["candidates"][0]["content"]["parts"],
        json!([
            {"text": "**S**\nt", "thought": true},
            {"text": "ab"},
            {"functionCall": {"name": "f", "args": {}}},
        ])
    );
    assert_eq!(response.json()["candidates"][0]["finishReason"], "STOP");
}

#[test]
fn a_connection_is_kept_for_the_next_request() {
    let server = serve(Scenario::new().turn(Turn::say("one")).turn(Turn::status(503)).turn(Turn::say("two")));
    let mut client = Client::new(&server);
    let path = format!("/s/x{STREAM}");
    assert_eq!(client.post(&path, &prompt("a")).said(), "one");
    assert_eq!(client.post(&path, &prompt("b")).status, 503);
    assert_eq!(client.post(&path, &prompt("c")).said(), "two");
}

#[test]
fn steps_read_from_a_file_are_those_of_the_builder() {
    let read = steps(
        r#"[{"text": "a"}, {"thought": "**S**\nt"}, {"sleep": 0.25}, {"sleep_ms": 5}, {"gate": "g"}, {"hang": true},
            {"drop": true}, {"reset": true}, {"raw": "r"}, {"hex": "00 fF"}, {"chunk": {"k": 1}},
            {"calls": [{"name": "a"}, {"name": "b", "args": {"x": 1}, "id": "i"}]},
            {"chunks": {"text": "abc", "size": 2}}]"#,
    );
    let built = Turn::new()
        .text("a")
        .thought("S", "t")
        .sleep(Duration::from_millis(250))
        .sleep(Duration::from_millis(5))
        .gate("g")
        .hang()
        .drop_connection()
        .reset()
        .raw("r")
        .raw([0, 255])
        .step(Step::Chunk(json!({"k": 1})))
        .step(Step::Calls(vec![
            Call { name: "a".to_owned(), args: json!({}), id: None },
            Call { name: "b".to_owned(), args: json!({"x": 1}), id: Some("i".to_owned()) },
        ]))
        .chunks("abc", 2, Duration::ZERO);
    assert_eq!(read.turns, [built]);
}
