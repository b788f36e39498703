//! The committed schemas and the types for other languages are what the Rust types say, and what Alhena writes is what the
//! schemas say. To write them anew: `UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas`.

#[path = "../shapes/validator.rs"]
mod validator;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_hosts::{agent_cli_sdk, aiwf, openase, promptfoo, schema};
use alhena_model::{End, Event, Exit, Input, Interpreter, Outcome, Prices, Stop};
use serde_json::{Value, json};
use validator::{Validator, closed};

#[test]
fn committed_files_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let mut stale = Vec::new();
    for (path, expected) in schema::files() {
        let file = root.join(&path);
        if std::fs::read_to_string(&file).ok().as_deref() == Some(expected.as_str()) {
            continue;
        }
        if update {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, expected).unwrap();
        } else {
            stale.push(path);
        }
    }
    assert!(stale.is_empty(), "stale: {stale:?}; run this test with UPDATE_SCHEMAS=1");
}

/// What the real CLI wrote, and how it ended.
struct Recording {
    name: String,
    stdout: String,
    stderr: String,
    exit: i32,
}

fn recordings() -> Vec<Recording> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut directories: Vec<PathBuf> =
        std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).collect();
    directories.retain(|directory| directory.join("stdout").is_file());
    directories.sort();
    let read = |directory: &Path, name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    directories
        .iter()
        .map(|directory| Recording {
            name: directory.file_name().unwrap().to_string_lossy().into_owned(),
            stdout: read(directory, "stdout"),
            stderr: read(directory, "stderr"),
            exit: read(directory, "exit").trim().parse().unwrap(),
        })
        .collect()
}

fn played(recording: &Recording, stop: Option<Stop>) -> (Vec<Event>, Arc<Outcome>) {
    let mut interpreter = Interpreter::new().with_prices(Prices::shipped().unwrap());
    let mut events = Vec::new();
    for line in recording.stdout.lines() {
        interpreter.line(line.as_bytes(), &mut events);
    }
    if let Some(stop) = stop {
        interpreter.feed(Input::Stop(stop), &mut events);
    }
    let end =
        End { exit: Exit::Code(recording.exit), stderr: recording.stderr.clone(), duration_ms: Some(1) };
    let outcome = interpreter.conclude(&end, &mut events);
    (events, outcome)
}

/// Everything that Alhena would write of a run, by the name of its shape.
fn written(events: &[Event], outcome: &Outcome) -> Vec<(&'static str, Value)> {
    let mut view = promptfoo::View::default();
    let mut all = Vec::new();
    for event in events {
        view.event(event);
        all.push(("event", serde_json::to_value(event).unwrap()));
        let lines = openase::lines(event, openase::Mode::Chat);
        all.extend(lines.iter().map(|line| ("openase", serde_json::to_value(line).unwrap())));
    }
    all.push(("outcome", serde_json::to_value(outcome).unwrap()));
    all.push(("aiwf", serde_json::to_value(aiwf::view(outcome, None)).unwrap()));
    let result = agent_cli_sdk::view(outcome, json!([]), agent_cli_sdk::Data::Json);
    all.push(("agent-cli-sdk", serde_json::to_value(result).unwrap()));
    let response = view.response(outcome, None);
    all.push(("promptfoo", serde_json::to_value(response).unwrap()));
    all
}

#[test]
fn what_is_written_of_real_runs_is_what_the_schemas_say() {
    let shapes: BTreeMap<_, _> =
        schema::shapes().iter().map(|shape| (shape.name, closed(&shape.schema))).collect();
    let recordings = recordings();
    assert_eq!(recordings.len(), 9);
    for recording in &recordings {
        for stop in [None, Some(Stop::Cancelled)] {
            let (events, outcome) = played(recording, stop);
            for (name, value) in written(&events, &outcome) {
                let checked = shapes[name].validate(&value);
                assert!(checked.is_ok(), "{name} of {}: {checked:?} {value}", recording.name);
            }
        }
    }
}

/// The descriptions of the fields of a line by their names, with those of nested objects.
fn described(schema: &Value, fields: &mut Vec<(String, String)>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| described(item, fields)),
        Value::Object(object) => {
            for (name, field) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let text = field["description"].as_str().unwrap_or_default();
                fields.push((name.clone(), text.to_owned()));
            }
            object.values().for_each(|value| described(value, fields));
        }
        _ => {}
    }
}

// C-17
#[test]
fn every_field_of_a_line_for_openase_names_its_layer_and_derived_ones_are_marked() {
    let shape = schema::shapes().into_iter().find(|shape| shape.name == "openase").unwrap();
    let mut all = Vec::new();
    // The error of a tool is the CLI's own object.
    let mut lines = shape.schema.clone();
    lines["$defs"].as_object_mut().unwrap().remove("ToolError");
    described(&lines, &mut all);
    let layers = ["Upstream: ", "Derived: ", "Form: "];
    let unnamed: Vec<_> = all
        .iter()
        .filter(|(name, text)| name != "type" && !layers.iter().any(|layer| text.starts_with(layer)))
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let choices = shape.schema["oneOf"].as_array().unwrap();
    let mut seen = 0;
    for recording in recordings() {
        let (events, _) = played(&recording, None);
        for line in events.iter().flat_map(|event| openase::lines(event, openase::Mode::Chat)) {
            let line = serde_json::to_value(line).unwrap();
            let is_choice = |choice: &&Value| choice["properties"]["type"]["const"] == line["type"];
            let choice = choices.iter().find(is_choice).unwrap();
            let mut fields = Vec::new();
            described(choice, &mut fields);
            if let Some(reference) = choice["$ref"].as_str() {
                let definition = reference.trim_start_matches("#/$defs/");
                described(&shape.schema["$defs"][definition], &mut fields);
            }
            let derived = |name: &String| {
                fields.iter().any(|(field, text)| field == name && text.starts_with("Derived: "))
            };
            let expected: Vec<&String> =
                line.as_object().unwrap().keys().filter(|name| derived(name)).collect();
            let marked: Vec<&str> =
                line["derived_fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let last = line["type"] == "TurnCompleted" || line["type"] == "TurnFailed";
            if line["derived"] == true && !last {
                assert!(marked.is_empty(), "{line}");
            } else {
                let missing: Vec<_> =
                    expected.iter().filter(|name| !marked.contains(&name.as_str())).collect();
                let extra: Vec<_> = marked
                    .iter()
                    .filter(|name| **name != "status" && !expected.iter().any(|other| other == *name))
                    .collect();
                assert!(missing.is_empty() && extra.is_empty(), "{missing:?} {extra:?} {line}");
                seen += marked.len();
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn the_price_file_is_what_its_schema_says() {
    let shapes = schema::shapes();
    let schema = &shapes.iter().find(|shape| shape.name == "prices").unwrap().schema;
    let prices = serde_json::to_value(Prices::shipped().unwrap()).unwrap();
    assert_eq!(Validator { root: schema }.check(&prices), Ok(()));
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let shapes = schema::shapes();
    let schema = &shapes.iter().find(|shape| shape.name == "event").unwrap().schema;
    let good =
        json!({"seq": 0, "at": "2026-11-15T17:49:10.599Z", "source": "stream", "type": "text", "delta": "x"});
    assert_eq!(Validator { root: schema }.check(&good), Ok(()));
    for (field, value) in [
        ("seq", json!(-1)),
        ("seq", json!("0")),
        ("source", json!("rumour")),
        ("type", json!("txt")),
        ("delta", json!(null)),
        ("stranger", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(Validator { root: schema }.check(&bad).is_err(), "{bad}");
    }
}
