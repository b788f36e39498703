//! Answers to the side questions that Gemini CLI asks by `generateContent`.
//!
//! Version 0.61.0 asks, each with a JSON schema: which model to use (`model_choice`, or `complexity_score` from 1 to
//! 100), who speaks next (`next_speaker`), whether the run goes in circles (`unproductive_state_confidence`), and how
//! to correct an edit. Without a schema it asks for summaries. None of these may take a turn of the scenario.

use serde_json::{Map, Value, json};

use crate::{RecordedRequest, Turn, Usage};

/// How deep a made-up answer goes; a schema may be recursive.
const MAX_DEPTH: usize = 16;

/// The answer to a `generateContent` that no rule of the scenario covers.
pub(crate) fn answer(request: &RecordedRequest) -> Turn {
    let usage = Usage { candidates_token_count: Some(10), ..Usage::default() };
    match request.schema() {
        Some(schema) => Turn::say(example(schema, None, MAX_DEPTH).to_string()).usage(usage),
        None => Turn::say("Scripted summary.").usage(usage),
    }
}

/// A number that stands for the words of a prompt, for `countTokens`.
pub(crate) fn count_tokens(request: &RecordedRequest) -> u64 {
    let characters: usize = request.texts().map(|text| text.chars().count()).sum();
    (characters as u64 / 4).max(1)
}

/// The smallest value that fits a schema; names that Gemini CLI uses get the answer that changes nothing.
fn example(schema: &Value, name: Option<&str>, depth: usize) -> Value {
    if let Some(known) = name.and_then(known_answer) {
        return known;
    }
    if let Some(first) = schema.get("const").or_else(|| schema.get("enum").and_then(|all| all.get(0))) {
        return first.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    let alternative = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.get(0));
    if let (Some(alternative), true) = (alternative, depth > 0) {
        return example(alternative, name, depth - 1);
    }
    match type_of(schema).as_str() {
        "object" => object(schema, depth),
        "array" => array(schema, depth),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(0)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!("scripted"),
    }
}

fn type_of(schema: &Value) -> String {
    let given = schema.get("type");
    let given = given.and_then(|given| given.as_str().or_else(|| given.get(0)?.as_str()));
    match given {
        Some(given) => given.to_ascii_lowercase(),
        None if schema.get("properties").is_some() => "object".to_owned(),
        None => "string".to_owned(),
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut object = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_none_or(|all| all.iter().any(|each| each == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten().filter(|_| depth > 0) {
        if is_required(name) {
            object.insert(name.clone(), example(property, Some(name), depth - 1));
        }
    }
    Value::Object(object)
}

fn array(schema: &Value, depth: usize) -> Value {
    let wanted = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(8);
    match (schema.get("items"), depth) {
        (Some(items), 1..) => (0..wanted).map(|_| example(items, None, depth - 1)).collect(),
        _ => json!([]),
    }
}

fn known_answer(name: &str) -> Option<Value> {
    Some(match name {
        "model_choice" => json!("flash"),
        "complexity_score" => json!(10),
        "next_speaker" => json!("user"),
        "unproductive_state_confidence" | "confidence" => json!(0.0),
        "noChangesRequired" => json!(true),
        // The tool then keeps the text it has.
        "corrected_string_escaping" => json!(""),
        "search" | "replace" => json!(""),
        _ => return None,
    })
}
