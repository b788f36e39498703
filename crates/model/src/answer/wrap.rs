//! A schema as the input of a tool: that has to be an object, so the answer is one field of it.
//!
//! Gemini CLI takes all tools of a server away when one's root is no object, and checks the arguments of a call itself where it
//! knows the schema's draft (0.61.0). It cannot count how often an answer was wrong, so it is given a draft that it does not
//! know: everything that is submitted then comes to us.

use serde_json::{Map, Value, json};

/// The argument that holds the answer.
pub const RESULT: &str = "result";
/// An argument that the CLI adds to every tool, and passes on.
pub(crate) const ADDED_BY_CLI: &str = "wait_for_previous";

/// 2020-12 by a name that Gemini CLI 0.61.0 compares and does not find; it means the same.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema#";
/// Where definitions are; they move to the root with their names, so that what refers to them stays as it is.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keys whose value is data, not a schema.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keys whose value has schemas under names of the user's.
const NAMED: [&str; 7] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
    "propertyNames",
];

/// The schema of an object with the answer in it.
pub(crate) fn wrap(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut root =
        Map::from_iter([("$schema".to_owned(), json!(DRAFT)), ("type".to_owned(), json!("object"))]);
    let id = inner.get("$id").or_else(|| inner.get("id")).and_then(Value::as_str).map(str::to_owned);
    rebase(&mut inner, id.as_deref().map(|id| id.trim_end_matches('#')), Position::Schema);
    if let Value::Object(fields) = &mut inner {
        for key in ["$schema", "$id", "id"] {
            // `id` is also a name that others use for what is no identifier.
            if fields.get(key).is_some_and(Value::is_string) {
                fields.shift_remove(key);
            }
        }
        for key in DEFINITIONS {
            if let Some(definitions) = fields.shift_remove(key) {
                root.insert(key.to_owned(), definitions);
            }
        }
    }
    root.insert("properties".to_owned(), json!({RESULT: inner}));
    root.insert("required".to_owned(), json!([RESULT]));
    Value::Object(root)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Schema,
    /// Its keys are names.
    Names,
}

/// Says what older drafts say in the words of 2020-12: the wrapped schema is one of those.
fn modernise(fields: &mut Map<String, Value>) {
    for (limit, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let Some(Value::Bool(is)) = fields.get(exclusive) else { continue };
        let strict = *is;
        fields.shift_remove(exclusive);
        if let Some(limit) = if strict { fields.shift_remove(limit) } else { None } {
            fields.insert(exclusive.to_owned(), limit);
        }
    }
    if let Some(Value::Array(_)) = fields.get("items") {
        let first = fields.shift_remove("items");
        fields.extend(first.map(|first| ("prefixItems".to_owned(), first)));
        let others = fields.shift_remove("additionalItems");
        fields.extend(others.map(|others| ("items".to_owned(), others)));
    }
}

/// Lets references to the old root lead to its new place.
fn rebase(value: &mut Value, id: Option<&str>, position: Position) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, id, position)),
        Value::Object(fields) => {
            if position == Position::Schema {
                modernise(fields);
            }
            for (key, field) in fields.iter_mut() {
                match (position, key.as_str(), &mut *field) {
                    (Position::Schema, "$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                        if let Some(moved) = moved(target, id) {
                            *target = moved;
                        }
                    }
                    (Position::Schema, key, _) if DATA.contains(&key) => {}
                    (Position::Schema, key, Value::Object(_)) if NAMED.contains(&key) => {
                        rebase(
                            field,
                            id,
                            if key == "propertyNames" { Position::Schema } else { Position::Names },
                        );
                    }
                    _ => rebase(field, id, Position::Schema),
                }
            }
        }
        _ => {}
    }
}

fn moved(target: &str, id: Option<&str>) -> Option<String> {
    let local = match id.and_then(|id| target.strip_prefix(id)) {
        Some("") => "#",
        Some(rest) if rest.starts_with('#') => rest,
        _ => target,
    };
    let pointer = local.strip_prefix('#')?;
    let stays = DEFINITIONS.iter().any(|key| {
        pointer
            .strip_prefix('/')
            .and_then(|rest| rest.strip_prefix(key))
            .is_some_and(|rest| rest.starts_with('/'))
    });
    // A name that is no pointer means the same wherever it stands.
    let anchor = !pointer.is_empty() && !pointer.starts_with('/');
    Some(match stays || anchor {
        true => local.to_owned(),
        false => format!("#/properties/{RESULT}{pointer}"),
    })
}

#[cfg(all(test, feature = "jsonschema"))]
mod tests {
    use super::*;

    #[test]
    fn what_refers_to_the_root_finds_it_in_its_new_place() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://example.com/tree",
            "type": "object",
            "properties": {
                "next": {"$ref": "#"},
                "leaf": {"$ref": "#/definitions/leaf"},
                "same": {"$ref": "#/properties/leaf"},
                "far": {"$ref": "https://example.com/tree#/definitions/leaf"},
                "named": {"$ref": "#here"},
                "$ref": {"const": {"$ref": "#"}},
            },
            "definitions": {"leaf": {"$anchor": "here", "enum": [{"$ref": "#"}], "items": {"$ref": "#"}}},
        });
        assert_eq!(
            wrap(&schema),
            json!({
                "$schema": DRAFT,
                "type": "object",
                "definitions": {
                    "leaf": {"$anchor": "here", "enum": [{"$ref": "#"}], "items": {"$ref": "#/properties/result"}},
                },
                "properties": {"result": {
                    "type": "object",
                    "properties": {
                        "next": {"$ref": "#/properties/result"},
                        "leaf": {"$ref": "#/definitions/leaf"},
                        "same": {"$ref": "#/properties/result/properties/leaf"},
                        "far": {"$ref": "#/definitions/leaf"},
                        "named": {"$ref": "#here"},
                        "$ref": {"const": {"$ref": "#"}},
                    },
                }},
                "required": ["result"],
            })
        );
    }

    #[test]
    fn a_wrapped_schema_means_the_same_as_the_one_in_it() {
        let tree = json!({
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"$ref": "#/$defs/n"}},
            "additionalProperties": false,
            "$defs": {"n": {"type": "integer"}},
        });
        let plain = jsonschema::validator_for(&tree).unwrap();
        let wrapped = jsonschema::validator_for(&wrap(&tree)).unwrap();
        for answer in [
            json!({}),
            json!({"kids": [{"kids": [{"n": 1}]}]}),
            json!({"kids": [{"kids": [{"n": "1"}]}]}),
            json!({"kids": [{"x": 1}]}),
            json!(null),
        ] {
            let inside = json!({RESULT: answer});
            assert_eq!(plain.is_valid(&answer), wrapped.is_valid(&inside), "{answer}");
        }
    }
}
