//! The committed schema of scenario files is what the Rust types say, and files that are read are what it says. To write
//! it anew: `UPDATE_SCHEMAS=1 cargo test -p alhena-scripted --test it schema`.

#[path = "../../../hosts/tests/shapes/validator.rs"]
mod validator;

use std::path::Path;

use alhena_scripted::Scenario;
use serde_json::{Value, json};
use validator::Validator;

fn schema() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let mut schema = schemars::Schema::to_value(settings.into_generator().into_root_schema_for::<Scenario>());
    leave_out_rust(&mut schema);
    schema
}

/// The examples in Rust that stand in the comments of types say nothing to readers of a schema.
fn leave_out_rust(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(leave_out_rust),
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                text.truncate(text.find("\n\n```").unwrap_or(text.len()));
            }
            fields.values_mut().for_each(leave_out_rust);
        }
        _ => {}
    }
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/scenario.json");
    let expected = format!("{:#}\n", schema());
    if std::fs::read_to_string(&file).ok().as_deref() != Some(expected.as_str()) {
        assert!(std::env::var_os("UPDATE_SCHEMAS").is_some(), "stale; run this test with UPDATE_SCHEMAS=1");
        std::fs::write(&file, expected).unwrap();
    }
}

#[test]
fn what_is_read_is_what_the_schema_says() {
    let schema = schema();
    let mut read = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario: Value = serde_json::from_str(&text).unwrap();
        let turns =
            Scenario::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())).turns;
        assert!(!turns.is_empty(), "{}", path.display());
        assert_eq!(Validator::new(&schema).check(&scenario), Ok(()), "{}", path.display());
        read += 1;
    }
    assert_eq!(read, 18);
}

#[test]
fn what_is_not_read_is_not_what_the_schema_says() {
    let schema = schema();
    let wrong = [
        json!({"turn": []}),
        json!({"turns": [{"steps": [{"txt": "a"}]}]}),
        json!({"turns": [{"steps": [{"text": 1}]}]}),
        json!({"turns": [{"usage": {"tokens": 1}}]}),
        json!({"after": "again"}),
        json!({"turns": [{"when": {"promt": "x"}}]}),
    ];
    for scenario in wrong {
        assert!(Scenario::from_json(&scenario.to_string()).is_err(), "{scenario}");
        assert!(Validator::new(&schema).check(&scenario).is_err(), "{scenario}");
    }
}
