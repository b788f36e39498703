//! The JSON that the API answers with.
//!
//! The made-up token counts are those of the recordings of Gemini CLI 0.61.0 that the project tests with: 100 for the
//! prompt, a quarter of the characters for text and thoughts, five for a call.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::RecordedRequest;
use crate::step::Step;
use crate::turn::{Tokens, Turn, Usage};

/// The tokens of a prompt, when a scenario does not say.
const PROMPT_TOKENS: u64 = 100;
const TOKENS_OF_A_CALL: u64 = 5;
const CHARACTERS_OF_A_TOKEN: usize = 4;

/// A response with these parts, and nothing that ends it.
pub(crate) fn chunk(model: &str, parts: Vec<Value>) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": model,
    })
}

/// The chunk that ends a turn; none where the turn has neither a finish reason nor counts of its own.
pub(crate) fn last_chunk(model: &str, turn: &Turn) -> Option<Value> {
    if turn.finish.reason().is_none() && turn.usage == Tokens::default() {
        return None;
    }
    let mut chunk = chunk(model, Vec::new());
    finish(&mut chunk, turn);
    Some(chunk)
}

/// The whole turn as one response, for `generateContent`; neighbouring texts become one part.
pub(crate) fn whole(model: &str, turn: &Turn, number: usize) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    let mut text = String::new();
    for step in &turn.steps {
        if let Step::Text(piece) | Step::Chunks { text: piece, .. } = step {
            text.push_str(&numbered(piece, number));
            continue;
        }
        let others = parts_of(step, number);
        if !others.is_empty() && !text.is_empty() {
            parts.push(json!({"text": std::mem::take(&mut text)}));
        }
        parts.extend(others);
    }
    if !text.is_empty() {
        parts.push(json!({"text": text}));
    }
    let mut chunk = chunk(model, parts);
    finish(&mut chunk, turn);
    chunk
}

pub(crate) fn numbered(text: &str, number: usize) -> String {
    text.replace("${TURN}", &number.to_string())
}

/// The parts of a response for a step; none for steps that are not content.
pub(crate) fn parts_of(step: &Step, number: usize) -> Vec<Value> {
    match step {
        Step::Text(text) => vec![json!({"text": numbered(text, number)})],
        Step::Thought(text) => vec![json!({"text": text, "thought": true})],
        Step::Calls(calls) => calls
            .iter()
            .map(|call| match &call.id {
                Some(id) => json!({"functionCall": {"id": id, "name": call.name, "args": call.args}}),
                None => json!({"functionCall": {"name": call.name, "args": call.args}}),
            })
            .collect(),
        Step::Chunks { .. }
        | Step::Sleep(_)
        | Step::Gate(_)
        | Step::Hang
        | Step::Drop
        | Step::Reset
        | Step::Raw(_)
        | Step::Chunk(_) => Vec::new(),
    }
}

fn finish(chunk: &mut Value, turn: &Turn) {
    let candidate = chunk.get_mut("candidates").and_then(|all| all.get_mut(0)).and_then(Value::as_object_mut);
    if let (Some(candidate), Some(reason)) = (candidate, turn.finish.reason()) {
        candidate.insert("finishReason".to_owned(), json!(reason));
    }
    if let (Tokens::Counted(given), Some(chunk)) = (&turn.usage, chunk.as_object_mut()) {
        chunk.insert("usageMetadata".to_owned(), usage(given, &turn.steps));
    }
}

fn usage(given: &Usage, steps: &[Step]) -> Value {
    let (mut text, mut thoughts, mut calls) = (0, 0, 0);
    for step in steps {
        match step {
            Step::Text(piece) | Step::Chunks { text: piece, .. } => text += piece.chars().count(),
            Step::Thought(piece) => thoughts += piece.chars().count(),
            Step::Calls(several) => calls += several.len() as u64,
            _ => {}
        }
    }
    let tokens = |characters: usize| (characters / CHARACTERS_OF_A_TOKEN) as u64;
    let prompt = given.prompt_token_count.unwrap_or(PROMPT_TOKENS);
    let made_up = (tokens(text) + calls * TOKENS_OF_A_CALL).max(1);
    let candidates = given.candidates_token_count.unwrap_or(made_up);
    let thoughts = given.thoughts_token_count.unwrap_or(tokens(thoughts));
    let total = prompt.saturating_add(candidates).saturating_add(thoughts);
    let mut usage = Map::new();
    usage.insert("promptTokenCount".to_owned(), json!(prompt));
    usage.insert("candidatesTokenCount".to_owned(), json!(candidates));
    usage.insert("totalTokenCount".to_owned(), json!(given.total_token_count.unwrap_or(total)));
    if thoughts > 0 || given.thoughts_token_count.is_some() {
        usage.insert("thoughtsTokenCount".to_owned(), json!(thoughts));
    }
    if let Some(cached) = given.cached_content_token_count {
        usage.insert("cachedContentTokenCount".to_owned(), json!(cached));
    }
    if let Some(tool) = given.tool_use_prompt_token_count {
        usage.insert("toolUsePromptTokenCount".to_owned(), json!(tool));
    }
    Value::Object(usage)
}

pub(crate) fn error(status: u16, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": status_name(status)}})
}

pub(crate) fn error_of(turn: &Turn, status: u16) -> Value {
    match &turn.error {
        Some(given) => json!({"error": given}),
        None => error(status, &format!("Scripted error {status}.")),
    }
}

/// How the API names a status.
fn status_name(status: u16) -> &'static str {
    match status {
        400 | 413 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        500 => "INTERNAL",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "UNKNOWN",
    }
}

pub(crate) fn rate_limit(delay: Duration) -> Value {
    quota(
        "You exceeded your current quota, please check your plan and billing details.",
        "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
        delay,
    )
}

pub(crate) fn daily_quota() -> Value {
    quota(
        "You exceeded your current quota, please check your plan and billing details.",
        "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        Duration::from_secs(2),
    )
}

fn quota(message: &str, id: &str, delay: Duration) -> Value {
    json!({
        "code": 429,
        "message": message,
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{
                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": id,
                    "quotaValue": "50",
                }],
            },
            {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{}s", delay.as_secs_f64()),
            },
        ],
    })
}

/// How deep a made-up answer goes; a schema may be recursive.
const MAX_DEPTH: usize = 16;

/// The answer to a side question, a `generateContent` that no rule of the scenario covers.
///
/// Gemini CLI 0.61.0 asks, each with a JSON schema: which model to use (`model_choice`, or `complexity_score` from 1 to 100), who
/// speaks next (`next_speaker`), whether the run goes in circles (`unproductive_state_confidence`), and how to correct an edit.
/// Without a schema it asks for summaries. None of these may take a turn of the scenario.
pub(crate) fn utility(request: &RecordedRequest) -> Turn {
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
