//! An answer of a type of the program's own: its schema goes out, its value comes back.

use alhena::answer::Schema;
use alhena::model::options::AnswerSchema;
use alhena::{Outcome, RunOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Review {
    verdict: Verdict,
    notes: Vec<Note>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Good,
    Bad,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Note {
    line: u32,
    text: Option<String>,
    /// Notes on this one.
    replies: Vec<Note>,
}

#[test]
fn the_schema_of_a_type_takes_its_values_and_no_others() {
    let Some(AnswerSchema::Json(schema)) = RunOptions::default().answer::<Review>().schema else { panic!() };
    let schema = Schema::new(&schema.into()).unwrap();
    let data = json!({"verdict": "bad", "notes": [{"line": 3, "text": null, "replies": [{"line": 4, "replies": []}]}]});
    assert_eq!(schema.errors(&data), [""; 0]);
    for wrong in [
        json!({"verdict": "fine", "notes": []}),
        json!({"verdict": "bad"}),
        json!({"verdict": "bad", "notes": [{"line": -1, "replies": []}]}),
        json!({"verdict": "bad", "notes": [{"line": 1, "replies": [{}]}]}),
    ] {
        assert!(!schema.errors(&wrong).is_empty(), "{wrong}");
    }
    let mut outcome = Outcome::default();
    outcome.data = Some(data);
    let reply = Note { line: 4, text: None, replies: Vec::new() };
    let notes = vec![Note { line: 3, text: None, replies: vec![reply] }];
    assert_eq!(outcome.data_as::<Review>().unwrap().unwrap(), Review { verdict: Verdict::Bad, notes });
    assert!(outcome.data_as::<Vec<u8>>().unwrap().is_err());
    assert!(Outcome::default().data_as::<Review>().is_none());
}
