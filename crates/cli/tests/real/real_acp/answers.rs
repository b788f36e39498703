//! Answers that have to fit a schema: the same headless and over ACP, and turn by turn.

use std::time::Duration;

use alhena_agent::{Approval, ResolvedRequest, Transport};
use alhena_model::{FailureKind, Outcome, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::{Value, json};

use super::{converse, follow, lab, nobody};
use crate::lab::{Build, Lab, warnings};

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

fn scenario(turns: &[Turn]) -> Scenario {
    turns.iter().cloned().fold(Scenario::new(), Scenario::turn)
}

/// How often the model was asked.
fn calls(lab: &Lab) -> usize {
    lab.server.requests("lab").len()
}

/// What has to be equal.
#[derive(Debug, PartialEq)]
struct Learned {
    status: Status,
    data: Option<Value>,
    failure: Option<(FailureKind, String, Vec<String>, Option<String>)>,
    text: String,
    usage: Value,
    warnings: Vec<String>,
    tool_calls: u64,
    calls: usize,
}

fn learned(lab: &Lab, outcome: &Outcome) -> Learned {
    Learned {
        status: outcome.status,
        data: outcome.data.clone(),
        failure: outcome.failure.as_ref().map(|failure| {
            (failure.kind, failure.message.clone(), failure.errors.clone(), failure.answer.clone())
        }),
        text: outcome.text.all().to_owned(),
        usage: serde_json::to_value(outcome.usage.all).unwrap(),
        warnings: warnings(outcome),
        tool_calls: outcome.tool_calls,
        calls: calls(lab),
    }
}

fn equal(name: &str, turns: &[Turn], request: impl Fn(ResolvedRequest) -> ResolvedRequest) -> Learned {
    let learn = |transport: Transport| {
        let lab = lab(&format!("{name} {transport:?}"), scenario(turns));
        let outcome = lab.run(request(lab.request("How many?").schema(schema())).transport(transport));
        learned(&lab, &outcome)
    };
    let (headless, acp) = (learn(Transport::Headless), learn(Transport::Acp));
    assert_eq!(headless, acp, "{name}: headless first, then over ACP");
    acp
}

#[test]
fn real_cli_a_good_answer_is_the_same_over_acp_at_once_and_after_a_repair() {
    let never = || Turn::say("never asked for");
    let at_once = equal("at once", &[submits(json!({"n": 3})), never()], |request| request);
    assert_eq!((at_once.data, at_once.calls), (Some(json!({"n": 3})), 1));
    let repaired = [submits(json!({"n": "3"})), Turn::say("It is {\"n\": true}."), submits(json!({"n": 3}))];
    let repaired = equal("repaired", &[&repaired[..], &[never()]].concat(), |request| request);
    assert_eq!((repaired.data, repaired.calls), (Some(json!({"n": 3})), 3));
    let both = [(TOOL, json!({"result": {"n": 1}})), (TOOL, json!({"result": {"n": 2}}))];
    let twice = equal("twice", &[Turn::new().calls(both), never()], |request| request);
    assert_eq!((twice.data, twice.calls), (Some(json!({"n": 1})), 1));
}

#[test]
fn real_cli_an_answer_in_text_and_none_at_all_are_the_same_over_acp() {
    let text = equal("text", &[Turn::say("Here: ```json\n{\"n\": 7}\n```\nMore?")], |request| request);
    assert_eq!((text.data, text.calls), (Some(json!({"n": 7})), 1));
    let turns = [Turn::say("Four."), Turn::say("{\"n\": 4}")];
    let plan = equal("plan", &turns, |request| request.approval(Approval::Plan));
    assert_eq!((plan.data, plan.calls), (Some(json!({"n": 4})), 2));
    let turns = [submits(json!({"n": "1"})), submits(json!({"m": 1})), Turn::say("never asked for")];
    let none = equal("never", &turns, |request| request.schema_attempts(1));
    assert_eq!((none.failure.unwrap().0, none.calls), (FailureKind::Schema, 2));
}

#[test]
fn real_cli_every_turn_of_a_conversation_has_an_answer_of_its_own() {
    let turns = [
        submits(json!({"n": 1})),
        Turn::say("I will not."),
        Turn::say("No."),
        submits(json!({"n": "three"})),
        submits(json!({"n": 3})),
    ];
    let lab = lab("turns", scenario(&turns));
    let request = crate::lab::request("").dir(lab.workspace()).model("gemini-2.5-flash");
    let mut talk = converse(&lab, request.schema(schema()).schema_attempts(1));
    let (_, first) = follow(talk.prompt("one").unwrap(), nobody);
    assert_eq!((first.status, &first.data), (Status::Success, &Some(json!({"n": 1}))), "{first:?}");
    let (_, second) = follow(talk.prompt("two").unwrap(), nobody);
    let failure = second.failure.as_ref().unwrap();
    assert_eq!((failure.kind, &second.data), (FailureKind::Schema, &None));
    assert!(failure.message.contains("in 2 tries"), "{}", failure.message);
    let (_, third) = follow(talk.prompt("three").unwrap(), nobody);
    assert_eq!((third.status, &third.data), (Status::Success, &Some(json!({"n": 3}))), "{third:?}");
    assert_eq!(calls(&lab), 5);
    // What was said before is still known.
    let last = lab.server.requests("lab").last().unwrap().raw_body.clone();
    for said in ["one", "I will not.", "two", "three"] {
        assert!(last.contains(said), "{said}");
    }
}

#[test]
fn real_cli_a_schema_over_acp_is_kept_on_the_command_line_and_what_cannot_be_is_refused() {
    let turns = [submits(json!({"n": "1"})), Turn::say("never asked for")];
    let lab = lab("command", scenario(&turns));
    let given = schema().to_string();
    let args = ["-m", "gemini-2.5-flash", "--transport", "acp", "--schema", &given, "--schema-attempts", "0"];
    let limit = Duration::from_secs(120);
    let done =
        run_bounded(&mut lab.command(&[&args[..], &["--as", "outcome", "?"]].concat()), limit).unwrap();
    assert_eq!(done.status.code(), Some(8), "{}", done.stderr_text());
    assert_eq!(calls(&lab), 1);
    let old = Lab::real("old", "0.38.2", Scenario::new());
    let request = old.request("?").schema(schema()).transport(Transport::Acp);
    let error = old.gemini.start(request, &old.env).unwrap_err();
    assert!(error.to_string().contains("0.38.2"), "{error}");
}

/// A budget counts what the repairs take, too.
#[test]
fn real_cli_a_budget_ends_the_repairs_of_an_answer_over_acp() {
    let turns: Vec<Turn> = (0..9).map(|n| submits(json!({"n": n.to_string()}))).collect();
    let lab = lab("budget", scenario(&turns));
    let request = lab.request("How many?").schema(schema()).schema_attempts(8).max_calls(3);
    let outcome = lab.run(request.transport(Transport::Acp));
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!((failure.kind, &outcome.data), (FailureKind::Budget, &None), "{outcome:?}");
    assert_eq!(calls(&lab), 3);
    assert_eq!(outcome.usage.all.prompt, 300);
}
