//! Answers that have to fit a schema, turn by turn over ACP.

use crate::lab::Build;
use alhena_agent::Transport;
use alhena_model::{FailureKind, Status};
use alhena_scripted::{Scenario, Turn};
use serde_json::{Value, json};

use super::{converse, follow, lab, nobody};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": false,
    })
}

fn submits(answer: Value) -> Turn {
    Turn::new().call("mcp_answer_submit_result", json!({"result": answer}))
}

fn scenario(turns: &[Turn]) -> Scenario {
    turns.iter().cloned().fold(Scenario::new(), Scenario::turn)
}

#[test]
fn real_cli_every_turn_of_a_conversation_has_an_answer_of_its_own() {
    let turns = [
        submits(json!({"n": 1})),
        Turn::say("I will not."),
        Turn::say("No."),
        submits(json!({"n": "three"})),
        submits(json!({"n": 3})),
        Turn::say("Here: ```json\n{\"n\": 7}\n```\nMore?"),
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
    assert_eq!(lab.calls(), 5);
    // What was said before is still known.
    let last = lab.last_request();
    for said in ["one", "I will not.", "two", "three"] {
        assert!(last.contains(said), "{said}");
    }
    let (_, fourth) = follow(talk.prompt("in text").unwrap(), nobody);
    assert_eq!((fourth.status, &fourth.data), (Status::Success, &Some(json!({"n": 7}))), "{fourth:?}");
    assert_eq!(lab.calls(), 6);
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
    assert_eq!(lab.calls(), 3);
    assert_eq!(outcome.usage.all.prompt, 300);
}
