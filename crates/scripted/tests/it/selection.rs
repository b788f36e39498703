//! Which turn answers which request.

use crate::common::{COUNT, Client, GENERATE, STREAM, ask, prompt, scenario, serve};
use alhena_scripted::{RecordedRequest, Scenario, Server, Turn, When};
use serde_json::{Value, json};

fn said(server: &Server, path: &str, body: &Value) -> String {
    Client::new(server).post(path, body).said()
}

#[test]
fn turns_come_in_order_and_then_the_model_stops() {
    let server = serve(Scenario::new().turn(Turn::say("one")).turn(Turn::say("two")));
    let all: Vec<String> = (0..4).map(|_| ask(&server, &prompt("hi")).said()).collect();
    assert_eq!(all, ["one", "two", "done.", "done."]);
}

#[test]
fn an_unexpected_request_can_be_an_error() {
    let server = serve(scenario(r#"{"turns": [{"steps": []}], "after": "error"}"#));
    assert_eq!(ask(&server, &prompt("hi")).status, 200);
    let response = ask(&server, &prompt("hi"));
    let message = "The scenario `x` has no turn for request 2.";
    assert_eq!(
        (response.status, response.json()),
        (400, json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}))
    );
}

#[test]
fn a_turn_that_does_not_match_waits_for_its_request() {
    let server = serve(
        Scenario::new()
            .turn(Turn::say("after the tool").when(When::new().response_of("write_file")))
            .turn(Turn::say("first")),
    );
    let result = json!({"contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "write_file", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "write_file", "response": {"output": "ok"}}}]},
    ]});
    assert_eq!(ask(&server, &prompt("hi")).said(), "first");
    assert_eq!(ask(&server, &result).said(), "after the tool");
}

#[test]
fn turns_can_be_used_several_times_or_always() {
    let server = serve(
        Scenario::new()
            .turn(Turn::say("rule").when(When::new().prompt("rule")).always())
            .turn(Turn::say("twice").times(2))
            .turn(Turn::say("once")),
    );
    let all: Vec<String> = ["a", "rule", "b", "c", "rule", "rule"]
        .iter()
        .map(|text| ask(&server, &prompt(text)).said())
        .collect();
    assert_eq!(all, ["twice", "rule", "twice", "once", "rule", "rule"]);
}

#[test]
fn a_repeated_turn_that_names_its_request_goes_before_one_that_does_not() {
    let server = serve(scenario(include_str!("../data/16_auto_model_quota_fallback.json")));
    let status = |model: &str| {
        let path = format!("/s/x/v1beta/models/{model}:streamGenerateContent?alt=sse");
        Client::new(&server).post(&path, &prompt("hi")).status
    };
    let all: Vec<u16> =
        ["gemini-3.8-flash", "gemini-2.5-flash", "gemini-3-pro", "gemini-2.5-flash", "gemini-3.8-flash"]
            .iter()
            .map(|model| status(model))
            .collect();
    assert_eq!(all, [429, 200, 429, 200, 429]);
}

#[test]
fn each_condition_looks_at_its_own_part_of_the_request() {
    let body = json!({
        "contents": [
            {"role": "user", "parts": [{"text": "<session_context>\ncontext"}]},
            {"role": "user", "parts": [{"text": "earlier"}]},
            {"role": "model", "parts": [{"text": "answered"}, {"functionCall": {"name": "glob", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "glob", "response": {}}}]},
            {"role": "user", "parts": [
                {"text": "the prompt"}, {"text": "\n--- Content from referenced files ---"}, {"text": "file text"},
            ]},
        ],
        "tools": [{"functionDeclarations": [{"name": "read_file"}]}, {"googleSearch": {}}],
    });
    let matches = |when: When| {
        let server = serve(Scenario::new().turn(Turn::say("yes").when(when)).turn(Turn::say("no")));
        ask(&server, &body).said() == "yes"
    };
    let holds = [
        When::new(),
        When::new().model("2.5"),
        When::new().model("pro|flash"),
        When::new().prompt("the prompt"),
        When::new().text("file text").text("answered"),
        When::new().offers("read_file"),
        When::new().request(1),
        When::new().body("googleSearch"),
        When::new().model("flash").prompt("prompt").request(1),
    ];
    assert_eq!(holds.map(matches), [true; 9]);
    let fails = [
        When::new().model("pro"),
        When::new().prompt("earlier"),
        When::new().prompt("file text"),
        When::new().text("nowhere"),
        When::new().offers("glob"),
        When::new().response_of("glob"),
        When::new().request(2),
        When::new().body("nowhere"),
        When::new().model("flash").prompt("earlier"),
    ];
    assert_eq!(fails.map(matches), [false; 9]);
}

#[test]
fn scenarios_and_runs_have_turns_of_their_own() {
    let server = Server::start().unwrap();
    let one = server.add("one", Scenario::new().turn(Turn::say("1a")).turn(Turn::say("1b")));
    let two = server.add("two words/ü", Scenario::new().turn(Turn::say("2a")));
    assert_eq!(one, format!("http://{}/s/one", server.address()));
    assert_eq!(two, format!("http://{}/s/two%20words%2F%C3%BC", server.address()));
    let paths = [
        "/s/one",
        "/s/one/r1",
        "/s/one/r2",
        "/s/two%20words%2F%C3%BC",
        "/s/one/r1",
        "/s/one",
        "/s/one/r2/deep",
    ];
    let all: Vec<String> =
        paths.iter().map(|path| said(&server, &format!("{path}{STREAM}"), &prompt("hi"))).collect();
    assert_eq!(all, ["1a", "1a", "1a", "2a", "1b", "1b", "1a"]);
    let runs: Vec<String> = server.state("one").runs.keys().cloned().collect();
    assert_eq!(runs, ["", "r1", "r2", "r2/deep"]);
    assert_eq!(server.requests("two words/ü").len(), 1);
}

#[test]
fn adding_a_scenario_again_starts_it_anew() {
    let server = serve(Scenario::new().turn(Turn::say("old")));
    assert_eq!(ask(&server, &prompt("hi")).said(), "old");
    server.add("x", Scenario::new().turn(Turn::say("new")));
    assert_eq!(ask(&server, &prompt("hi")).said(), "new");
    assert_eq!(server.requests("x").len(), 1);
}

#[test]
fn a_responder_sees_the_request_and_makes_up_the_answer() {
    let server = serve(Scenario::dynamic(|request: &RecordedRequest| {
        Turn::say(format!("{} {} {:?}", request.number, request.model, request.prompt()))
    }));
    assert_eq!(ask(&server, &prompt("hi")).said(), "1 gemini-2.5-flash Some(\"hi\")");
    assert_eq!(ask(&server, &json!({})).said(), "2 gemini-2.5-flash None");
}

#[test]
fn a_responder_that_panics_costs_only_its_connection() {
    let server = serve(Scenario::dynamic(|request: &RecordedRequest| match request.number {
        1 => panic!("on purpose"),
        _ => Turn::say("alive"),
    }));
    let mut client = Client::new(&server);
    client.send_post(&format!("/s/x{STREAM}"), &prompt("hi"));
    assert!(client.try_response().is_err());
    assert_eq!(ask(&server, &prompt("hi")).said(), "alive");
    assert_eq!(server.state("x").turns_in_flight(), 0);
}

#[test]
fn side_questions_take_no_turn_and_get_the_answer_that_changes_nothing() {
    // The schemas of Gemini CLI 0.61.0.
    let schemas = [
        json!({"type": "OBJECT", "properties": {"reasoning": {"type": "STRING"}, "model_choice": {"type": "STRING",
            "enum": ["flash", "pro"]}}, "required": ["reasoning", "model_choice"]}),
        json!({"type": "OBJECT", "properties": {"complexity_reasoning": {"type": "STRING"}, "complexity_score":
            {"type": "INTEGER"}}, "required": ["complexity_reasoning", "complexity_score"]}),
        json!({"type": "object", "properties": {"reasoning": {"type": "string"}, "next_speaker": {"type": "string",
            "enum": ["user", "model"]}}, "required": ["reasoning", "next_speaker"]}),
        json!({"type": "object", "properties": {"unproductive_state_analysis": {"type": "string"},
            "unproductive_state_confidence": {"type": "number"}}, "required": ["unproductive_state_analysis",
            "unproductive_state_confidence"]}),
        json!({"type": "object", "properties": {"corrected_string_escaping": {"type": "string"}},
            "required": ["corrected_string_escaping"]}),
        json!({"type": "OBJECT", "properties": {"explanation": {"type": "STRING"}, "search": {"type": "STRING"},
            "replace": {"type": "STRING"}, "noChangesRequired": {"type": "BOOLEAN"}},
            "required": ["search", "replace", "explanation"]}),
        json!({"properties": {"list": {"type": "array", "minItems": 2, "items": {"enum": ["a", "b"]}},
            "one": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string"}]}, "flag": {"type": ["boolean",
            "null"]}, "inner": {"type": "object", "properties": {"n": {"type": "number"}}}, "left": {"const": 7}}}),
    ];
    let server = serve(Scenario::new().turn(Turn::say("the turn")));
    let answers: Vec<Value> = schemas
        .iter()
        .map(|schema| {
            let mut body = prompt("hi");
            body["generationConfig"] =
                json!({"responseJsonSchema": schema, "responseMimeType": "application/json"});
            let response = Client::new(&server).post(&format!("/s/x{GENERATE}"), &body).json();
            assert_eq!(response["usageMetadata"]["candidatesTokenCount"], 10);
            let text = response["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap().to_owned();
            serde_json::from_str(&text).unwrap()
        })
        .collect();
    assert_eq!(
        answers,
        [
            json!({"reasoning": "scripted", "model_choice": "flash"}),
            json!({"complexity_reasoning": "scripted", "complexity_score": 10}),
            json!({"reasoning": "scripted", "next_speaker": "user"}),
            json!({"unproductive_state_analysis": "scripted", "unproductive_state_confidence": 0.0}),
            json!({"corrected_string_escaping": ""}),
            json!({"explanation": "scripted", "search": "", "replace": ""}),
            json!({"list": ["a", "a"], "one": 3, "flag": false, "inner": {"n": 0}, "left": 7}),
        ]
    );
    let summary = Client::new(&server).post(&format!("/s/x{GENERATE}"), &prompt("hi")).json();
    assert_eq!(summary["candidates"][0]["content"]["parts"], json!([{"text": "Scripted summary."}]));
    assert_eq!(ask(&server, &prompt("hi")).said(), "the turn");
}

#[test]
fn a_schema_that_is_endless_or_odd_still_gets_an_answer() {
    let mut deep = json!({"type": "string"});
    for _ in 0..60 {
        deep = json!({"properties": {"next": deep}});
    }
    let server = serve(Scenario::new());
    for schema in [deep, json!({"type": 7, "enum": [], "properties": []}), json!({"anyOf": []})] {
        let body = json!({"generationConfig": {"responseSchema": schema}});
        assert_eq!(Client::new(&server).post(&format!("/s/x{GENERATE}"), &body).status, 200);
    }
}

#[test]
fn rules_answer_side_questions_every_time() {
    let server = serve(scenario(include_str!("../data/02_alltools_plan.json")));
    let mut body = prompt("hi");
    body["tools"] = json!([{"googleSearch": {}}]);
    for _ in 0..2 {
        let response = Client::new(&server).post(&format!("/s/x{GENERATE}"), &body).json();
        assert_eq!(response["candidates"][0]["content"]["parts"][0]["text"], "Rust SDK results.");
    }
    let other = Client::new(&server).post(&format!("/s/x{GENERATE}"), &prompt("hi")).json();
    assert_eq!(other["candidates"][0]["content"]["parts"][0]["text"], "Scripted summary.");
}

#[test]
fn tokens_are_counted_by_the_length_of_the_text() {
    let server = serve(Scenario::new());
    let count = |text: &str| Client::new(&server).post(&format!("/s/x{COUNT}"), &prompt(text)).json();
    assert_eq!(count(&"x".repeat(400)), json!({"totalTokens": 100}));
    assert_eq!(count(""), json!({"totalTokens": 1}));
}
