//! The shapes as JSON Schemas, and types for other languages that are made from them.
//!
//! Schemas are read off the Rust types and committed under `schemas/`; a test fails when they are stale. Hosts in other
//! languages get types made from the same schemas, so that there is one source for all of them.

mod golang;
mod options;
mod typescript;

use std::sync::LazyLock;

use alhena_model::message::Message;
use alhena_model::{Event, Outcome};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::{agent_cli_sdk, aiwf, openase, promptfoo};

/// A shape that leaves Alhena.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name, and that of its file without the ending.
    pub name: &'static str,
    /// Its schema.
    pub schema: Value,
}

impl Shape {
    /// The type's name.
    pub fn title(&self) -> &str {
        self.schema.get("title").and_then(Value::as_str).unwrap_or(self.name)
    }
}

/// Every shape.
pub fn shapes() -> Vec<Shape> {
    vec![
        shape::<Event>("event"),
        shape::<Outcome>("outcome"),
        shape::<Message<'static>>("message"),
        shape::<aiwf::Answer>("aiwf"),
        shape::<agent_cli_sdk::ExecuteResult>("agent-cli-sdk"),
        shape::<openase::Line>("openase"),
        shape::<promptfoo::ProviderResponse>("promptfoo"),
        shape::<alhena_model::Prices>("prices"),
    ]
}

/// Every file that is made from the types: its path in the repository, and what it has to hold.
pub fn files() -> Vec<(String, String)> {
    let shapes = shapes();
    let mut files: Vec<(String, String)> = shapes
        .iter()
        .map(|shape| (format!("schemas/{}.json", shape.name), format!("{:#}\n", shape.schema)))
        .collect();
    let pick = |names: &[&str]| -> Vec<Shape> {
        shapes.iter().filter(|shape| names.contains(&shape.name)).cloned().collect()
    };
    let node = typescript::typescript_types(&pick(&["event", "outcome", "message"]));
    files.push(("packages/node/src/alhena.ts".to_owned(), node));
    files.push(("packages/node/src/run-options.ts".to_owned(), options::typescript_options()));
    files.push(("packages/python/src/alhena/run_options.py".to_owned(), options::python_options()));
    let response = typescript::typescript_types(&pick(&["promptfoo"]));
    files.push(("hosts/promptfoo/src/provider-response.ts".to_owned(), response));
    files.extend(
        pick(&["openase"])
            .first()
            .map(|shape| ("hosts/openase/line.go".to_owned(), golang::go_types("openase", shape))),
    );
    files.push(("hosts/openase/protocol.go".to_owned(), golang::protocol::go_protocol("openase")));
    files
}

/// The shape of a type, as it is written.
pub fn shape<T: JsonSchema>(name: &'static str) -> Shape {
    // What is written, not what would be understood: a field that is always there is required.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = Schema::to_value(settings.into_generator().into_root_schema_for::<T>());
    absent_is_not_null(&mut schema);
    plain_descriptions(&mut schema);
    Shape { name, schema }
}

/// Comments in the source name the demand that a field meets, `(B-16)`; to readers of a schema that says nothing.
fn plain_descriptions(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(plain_descriptions),
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = without_ids(text);
            }
            fields.values_mut().for_each(plain_descriptions);
        }
        _ => {}
    }
}

fn without_ids(text: &str) -> String {
    let mut pieces = text.split(" (");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(')') {
            Some((ids, rest))
                if ids.split([',', ' ']).all(|word| matches!(word, "" | "to") || is_id(word)) =>
            {
                plain.push_str(rest);
            }
            _ => {
                plain.push_str(" (");
                plain.push_str(piece);
            }
        }
    }
    plain
}

/// `C-29`.
fn is_id(word: &str) -> bool {
    let number =
        word.strip_prefix(|letter: char| letter.is_ascii_uppercase()).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A field that may be absent is never written as `null`, but its type in Rust does not say so.
fn absent_is_not_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(absent_is_not_null),
        Value::Object(fields) => {
            let required: Vec<String> = required(fields).into_iter().map(str::to_owned).collect();
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                let optional = properties.iter_mut().filter(|(name, _)| !required.contains(*name));
                optional.for_each(|(_, field)| never_null(field));
            }
            fields.values_mut().for_each(absent_is_not_null);
        }
        _ => {}
    }
}

fn never_null(field: &mut Value) {
    let Value::Object(field) = field else { return };
    if let Some(Value::Array(kinds)) = field.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            field.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(choices)) = field.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(choice)] = choices.as_slice() {
            let choice = choice.clone();
            field.shift_remove("anyOf");
            field.extend(choice);
        }
    }
}

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

fn as_object(schema: &Value) -> &Map<String, Value> {
    schema.as_object().unwrap_or(&NOTHING)
}

fn required(fields: &Map<String, Value>) -> Vec<&str> {
    fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn definitions(root: &Value) -> impl Iterator<Item = (&str, &Value)> {
    root.get("$defs").into_iter().flat_map(as_object).map(|(name, schema)| (name.as_str(), schema))
}

/// What a schema refers to.
fn definition<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let reference = schema.get("$ref")?.as_str()?;
    root.pointer(reference.strip_prefix('#')?)
}

/// The words of a schema that is a choice between words, each with its own schema.
fn words(schema: &Value) -> Vec<(&str, &Value)> {
    let choices = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    choices.filter_map(|choice| Some((choice.get("const")?.as_str()?, choice))).collect()
}

/// The description, line by line.
fn doc_lines(schema: &Value) -> Vec<String> {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::without_ids;

    #[test]
    fn ids_of_demands_are_left_out_and_other_words_stay() {
        for (text, expected) in [
            ("Who speaks (B-16).", "Who speaks."),
            ("Names (B-23 to B-29), and (C-1, C-2) more", "Names, and more"),
            ("The output (of a command) stays", "The output (of a command) stays"),
            ("Open (B-1", "Open (B-1"),
            ("", ""),
        ] {
            assert_eq!(without_ids(text), expected);
        }
    }
}
