//! Answers that have to fit a schema, from the real CLI.

use std::time::Duration;

use crate::lab::{ALHENA, Build, Lab, warnings};
use alhena_agent::{Approval, ResolvedRequest};
use alhena_model::{EventKind, FailureKind, Outcome, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::{Map, Value, json};

const TOOL: &str = "mcp_answer_submit_result";

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    })
}

fn submits(answer: Value) -> Turn {
    Turn::new().call(TOOL, json!({"result": answer}))
}

fn lab(name: &str, turns: impl IntoIterator<Item = Turn>) -> Lab {
    let scenario = turns.into_iter().fold(Scenario::new(), Scenario::turn);
    Lab::real(name, "0.61.0", scenario)
}

fn request(lab: &Lab) -> ResolvedRequest {
    lab.request("How many?").schema(schema())
}

/// How often the model was asked.
fn calls(lab: &Lab) -> usize {
    lab.server.requests("lab").len()
}

fn last_request(lab: &Lab) -> String {
    lab.server.requests("lab").last().unwrap().raw_body.clone()
}

/// What the API was told of the tool.
fn declared(lab: &Lab) -> Value {
    let body = lab.server.requests("lab").first().unwrap().body.clone();
    let tools = body["tools"].as_array().unwrap().clone();
    let all = tools.iter().flat_map(|tool| tool["functionDeclarations"].as_array().unwrap().clone());
    all.into_iter().find(|tool| tool["name"] == TOOL).unwrap()
}

fn succeeded(outcome: &Outcome, data: &Value) {
    assert_eq!(outcome.status, Status::Success, "{:?} {:?}", outcome.failure, outcome.warnings);
    assert_eq!(outcome.data.as_ref(), Some(data));
}

#[test]
fn real_cli_a_valid_answer_ends_the_run_without_another_word_of_the_model() {
    let lab = lab("at-once", [submits(json!({"n": 3})), Turn::say("never asked for")]);
    let recording = lab.home.path().join("recording");
    let (events, outcome) = lab.run_with_events(request(&lab).record(&recording));
    succeeded(&outcome, &json!({"n": 3}));
    assert_eq!(calls(&lab), 1);
    assert_eq!(warnings(&outcome), [""; 0]);
    let ok: Vec<bool> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResult { ok, .. } => Some(*ok),
            _ => None,
        })
        .collect();
    assert_eq!(ok, [true]);
    // The model was told of the tool, and what it takes.
    let wrapped = &declared(&lab)["parametersJsonSchema"]["properties"]["result"];
    assert_eq!(*wrapped, schema());
    assert!(last_request(&lab).contains("by calling the tool `mcp_answer_submit_result`"));
    // A recording has it all.
    let mut parse = std::process::Command::new(ALHENA);
    parse.args(["parse", "--as", "outcome"]).arg(&recording);
    let done = run_bounded(&mut parse, Duration::from_secs(30)).unwrap();
    let played: Outcome = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((played.data.as_ref(), played.status), (outcome.data.as_ref(), Status::Success));
}

#[test]
fn real_cli_what_is_wrong_goes_back_into_the_session_until_it_is_mended() {
    let turns = [
        submits(json!({"n": "three"})),
        Turn::say("It is {\"n\": true}, I think."),
        submits(json!({"n": 3})),
        Turn::say("never asked for"),
    ];
    let lab = lab("repair", turns);
    let (events, outcome) = lab.run_with_events(request(&lab));
    succeeded(&outcome, &json!({"n": 3}));
    assert_eq!(calls(&lab), 3);
    let told = last_request(&lab);
    for wrong in [r#"/n: \\\"three\\\" is not of type"#, r#"/n: true is not of type"#] {
        assert!(told.contains(wrong), "{wrong}\n{told}");
    }
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.iter().filter(|event| matches!(event.kind, EventKind::Finished { .. })).count(), 1);
    // All tries are paid for.
    assert_eq!(outcome.usage.all.prompt, 300);
}

#[test]
fn real_cli_without_a_valid_answer_the_run_fails_with_exit_code_8() {
    let turns = [submits(json!({"n": "1"})), submits(json!({"m": 1})), Turn::say("never asked for")];
    let lab = lab("never", turns);
    let given = schema().to_string();
    let args =
        ["-m", "gemini-2.5-flash", "--schema", &given, "--schema-attempts", "1", "--as", "outcome", "?"];
    let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
    assert_eq!(done.status.code(), Some(8), "{}", done.stderr_text());
    let outcome: Outcome = serde_json::from_slice(&done.stdout).unwrap();
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.kind, outcome.data), (FailureKind::Schema, None));
    assert!(failure.message.contains("in 2 tries"), "{}", failure.message);
    assert!(failure.errors.iter().any(|error| error.contains("\"n\" is a required property")), "{failure:?}");
    assert_eq!(failure.answer.as_deref(), Some(r#"{"result":{"m":1}}"#));
    assert_eq!(calls(&lab), 2);
}

#[test]
fn real_cli_an_answer_in_text_counts_and_is_all_that_is_printed() {
    let lab = lab("text", [Turn::say("Here you are:\n```json\n{\"n\": 7}\n```\nAnything else?")]);
    let given = lab.workspace().join("schema.json");
    std::fs::write(&given, schema().to_string()).unwrap();
    let args = ["-m", "gemini-2.5-flash", "--schema", "schema.json", "How many?"];
    let done = run_bounded(&mut lab.command(&args), Duration::from_secs(120)).unwrap();
    assert!(done.succeeded(), "{}", done.stderr_text());
    assert_eq!(String::from_utf8_lossy(&done.stdout), "{\n  \"n\": 7\n}\n");
    assert_eq!(calls(&lab), 1);
}

#[test]
fn real_cli_in_plan_mode_the_answer_is_text() {
    let lab = lab("plan", [Turn::say("Four."), Turn::say("{\"n\": 4}")]);
    let outcome = lab.run(request(&lab).approval(Approval::Plan));
    succeeded(&outcome, &json!({"n": 4}));
    assert_eq!(calls(&lab), 2);
    assert!(last_request(&lab).contains("there is no JSON in the answer"));
}

#[test]
fn real_cli_of_two_answers_at_once_the_first_that_is_valid_counts() {
    let both = |first: Value, second: Value| {
        Turn::new().calls([(TOOL, json!({"result": first})), (TOOL, json!({"result": second}))])
    };
    let first = lab("twice", [both(json!({"n": 1}), json!({"n": 2})), Turn::say("never asked for")]);
    succeeded(&first.run(request(&first)), &json!({"n": 1}));
    assert_eq!(calls(&first), 1);
    let second = lab("second", [both(json!({"n": "1"}), json!({"n": 2})), Turn::say("never asked for")]);
    succeeded(&second.run(request(&second)), &json!({"n": 2}));
    assert_eq!(calls(&second), 1);
}

/// Everything that schemas have, and much of it.
fn rich() -> Value {
    let mut properties: Map<String, Value> = (0..200)
        .map(|n| (format!("field{n}"), json!({"type": "integer", "description": "x".repeat(500)})))
        .collect();
    properties.insert("when".to_owned(), json!({"type": "string", "format": "date-time"}));
    properties.insert("tree".to_owned(), json!({"$ref": "#/$defs/tree"}));
    let circle = json!({"type": "object", "properties": {"r": {"type": "number"}}, "required": ["r"]});
    let square = json!({"type": "object", "properties": {"w": {"type": "number"}}, "required": ["w"]});
    properties.insert("shape".to_owned(), json!({"oneOf": [circle, square]}));
    json!({
        "$defs": {"tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "additionalProperties": false}},
        "type": "object",
        "properties": properties,
        "required": ["when", "tree", "shape"],
        "additionalProperties": false,
    })
}

#[test]
fn real_cli_rich_schemas_arrive_and_hostile_answers_do_no_harm() {
    let good = json!({"when": "2026-11-17T03:00:00Z", "tree": {"kids": [{"kids": []}]}, "shape": {"w": 1}, "field7": 7});
    let with = |key: &str, value: Value| {
        let mut answer = good.clone();
        answer[key] = value;
        submits(answer)
    };
    let deep = (0..110).fold(json!(1), |inner, _| json!([inner]));
    let turns = [
        with("when", json!("soon")),
        with("tree", json!({"kids": [{"kids": [{"leaf": 1}]}]})),
        with("shape", json!({"r": 1, "w": 1})),
        submits(deep),
        Turn::say("[{\"".repeat((10 << 20) / 3)),
        Turn::say(format!("{}{}", "[".repeat(10_000), "]".repeat(10_000))),
        submits(good.clone()),
        Turn::say("never asked for"),
    ];
    let lab = lab("rich", turns);
    let outcome = lab.run(lab.request("?").schema(rich()).schema_attempts(6));
    succeeded(&outcome, &good);
    assert_eq!(calls(&lab), 7);
    // Nothing of it was lost on its way to the API.
    let mut expected = rich();
    let definitions = expected.as_object_mut().unwrap().shift_remove("$defs").unwrap();
    let declared = &declared(&lab)["parametersJsonSchema"];
    assert_eq!((&declared["$defs"], &declared["properties"]["result"]), (&definitions, &expected));
    let told = last_request(&lab);
    for wrong in [
        "/when: ",
        "/tree/kids/0/kids/0: ",
        "/shape: ",
        "nested deeper than 100",
        "/: there is no JSON in the answer",
    ] {
        assert!(told.contains(wrong), "{wrong}");
    }
}

#[test]
fn what_cannot_be_kept_is_refused_before_anything_starts() {
    let lab = lab("refused", [Turn::say("never asked for")]);
    std::fs::write(lab.workspace().join("broken.json"), "{'type': 'object'}").unwrap();
    for (args, why) in [
        (&["--schema", "nowhere.json"][..], "nowhere.json"),
        (&["--schema", "broken.json"], "not JSON"),
        (&["--schema", "{\"type\": \"objekt\"}"], "objekt"),
        (&["--schema", "{\"$ref\": \"https://example.com/s.json\"}"], "https://example.com/s.json"),
        (&["--schema", "{}", "--sandbox=on"], "sandbox"),
        (&["--as", "data"], "--schema"),
        (&["--schema-attempts", "1"], "--schema"),
    ] {
        let done = run_bounded(&mut lab.command(&[args, &["?"]].concat()), Duration::from_secs(60)).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?} {}", done.stderr_text());
        assert!(done.stderr_text().contains(why), "{args:?} {}", done.stderr_text());
    }
    assert_eq!(calls(&lab), 0);
}

/// Somebody's proxy is not asked for what is on this machine, and somebody's list of servers does not keep ours out.
#[test]
fn real_cli_neither_a_proxy_nor_a_list_of_servers_is_in_the_way() {
    let mut lab = lab("proxy", [submits(json!({"n": 3})), Turn::say("never asked for")]);
    let api = lab.server.address().to_string();
    lab.env.set("HTTP_PROXY", format!("http://{api}"));
    let settings = lab.home.gemini().join("settings.json");
    let mut object: Map<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    object.insert("mcp".to_owned(), json!({"allowed": ["theirs"]}));
    object.insert("mcpServers".to_owned(), json!({"answer": {"command": "false"}}));
    std::fs::write(settings, json!(object).to_string()).unwrap();
    let outcome = lab.run(request(&lab));
    // Their server has our name, so the tool is called otherwise; the model of this test does not know, and nor does it matter:
    // it is told what there is.
    assert!(outcome.data.is_none());
    let tools = lab.server.requests("lab").first().unwrap().raw_body.clone();
    assert!(tools.contains("mcp_answer2_submit_result"), "{:?}", outcome.warnings);
}

#[test]
fn real_cli_a_loop_that_keeps_the_model_from_an_answer_is_told_as_the_reason() {
    for transport in [alhena_agent::Transport::Headless, alhena_agent::Transport::Acp] {
        let looping = Turn::new().call("glob", json!({"pattern": "same.txt"})).always();
        let lab = lab(&format!("loop {transport:?}"), [looping]);
        let outcome = lab.run(request(&lab).transport(transport));
        let failure = outcome.failure.as_ref().unwrap();
        assert_eq!((failure.kind, outcome.exit_status()), (FailureKind::Schema, 8), "{failure:?}");
        assert!(failure.message.contains("went in a loop"), "{transport:?}: {failure:?}");
        assert!(outcome.data.is_none());
    }
}
