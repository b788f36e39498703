//! TypeScript types from schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Shape, as_object, definitions, doc_lines};

/// A module with a type for each of the shapes and for everything that they refer to.
pub fn typescript_types(shapes: &[Shape]) -> String {
    let mut types: BTreeMap<String, &Value> = BTreeMap::new();
    for shape in shapes {
        types.extend(definitions(&shape.schema).map(|(name, schema)| (name.to_owned(), schema)));
        types.insert(shape.title().to_owned(), &shape.schema);
    }
    let mut out = "// Generated from the Rust types; do not edit. To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas\n".to_owned();
    for (name, schema) in types {
        out.push('\n');
        comment(schema, "", &mut out);
        let fields = as_object(schema);
        if fields.contains_key("properties") && !fields.contains_key("oneOf") {
            out.push_str(&format!("export interface {name} {}\n", object(fields, "")));
        } else {
            out.push_str(&format!("export type {name} =\n  {};\n", type_of(schema, "  ")));
        }
    }
    out
}

fn type_of(schema: &Value, indent: &str) -> String {
    let fields = as_object(schema);
    let mut parts = Vec::new();
    if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
        parts.push(name.rsplit('/').next().unwrap_or(name).to_owned());
    }
    if fields.contains_key("properties") {
        parts.push(object(fields, indent));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = fields.get(key) {
            let choices: Vec<String> = choices.iter().map(|choice| type_of(choice, indent)).collect();
            let union = choices.join(&format!("\n{indent}| "));
            parts.push(if parts.is_empty() { union } else { format!("(\n{indent}| {union}\n{indent})") });
        }
    }
    if parts.is_empty() { simple(fields, indent) } else { parts.join(" & ") }
}

fn simple(fields: &Map<String, Value>, indent: &str) -> String {
    if let Some(literal) = fields.get("const") {
        return literal.to_string();
    }
    if let Some(Value::Array(literals)) = fields.get("enum") {
        return literals.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match fields.get("type") {
        Some(Value::String(name)) => named(name, fields, indent),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(|name| named(name, fields, indent)).collect::<Vec<_>>().join(" | ")
        }
        _ => "unknown".to_owned(),
    }
}

fn named(name: &str, fields: &Map<String, Value>, indent: &str) -> String {
    match name {
        "string" | "boolean" | "null" => name.to_owned(),
        "integer" | "number" => "number".to_owned(),
        "array" => {
            let item = fields.get("items").map_or("unknown".to_owned(), |item| type_of(item, indent));
            format!("Array<{item}>")
        }
        "object" => {
            let value = fields.get("additionalProperties").filter(|value| value.is_object());
            format!("Record<string, {}>", value.map_or("unknown".to_owned(), |value| type_of(value, indent)))
        }
        _ => "unknown".to_owned(),
    }
}

fn object(fields: &Map<String, Value>, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let required: Vec<&str> = super::required(fields);
    let mut out = "{\n".to_owned();
    for (name, schema) in fields.get("properties").into_iter().flat_map(as_object) {
        comment(schema, &inner, &mut out);
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        out.push_str(&format!("{inner}{name}{optional}: {};\n", type_of(schema, &inner)));
    }
    out.push_str(&format!("{indent}}}"));
    out
}

fn comment(schema: &Value, indent: &str, out: &mut String) {
    let lines = doc_lines(schema);
    match lines.as_slice() {
        [] => {}
        [line] => out.push_str(&format!("{indent}/** {line} */\n")),
        lines => {
            out.push_str(&format!("{indent}/**\n"));
            for line in lines {
                out.push_str(format!("{indent} * {line}").trim_end());
                out.push('\n');
            }
            out.push_str(&format!("{indent} */\n"));
        }
    }
}
