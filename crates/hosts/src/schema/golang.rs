//! Go types from a schema that is a choice between tagged objects.
//!
//! Go has no unions: each choice becomes a struct, all of them implement one interface, and a function gives an
//! empty one for the value of `type`. Optional fields are pointers, so that absent and empty stay different.

pub mod protocol;

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::{Shape, as_object, definition, definitions, doc_lines, required};

const GENERATED: &str = "// Code generated from the Rust types. DO NOT EDIT.\n// To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas\n";

/// A package with types for a shape, which has to be an object with `oneOf` over a `type`.
pub fn go_types(package: &str, shape: &Shape) -> String {
    let root = &shape.schema;
    let name = shape.title();
    let choices: Vec<&Value> =
        as_object(root).get("oneOf").and_then(Value::as_array).into_iter().flatten().collect();
    let mut out = String::new();
    line(&mut out, GENERATED);
    line(&mut out, &format!("package {package}\n"));
    line(&mut out, "import (\n\t\"encoding/json\"\n\t\"time\"\n)\n");
    interface(&mut out, name, root);
    head(&mut out, name, root);
    for choice in &choices {
        structure(&mut out, name, root, choice);
    }
    decoder(&mut out, name, &choices);
    let used = used_definitions(root, &choices);
    for (defined, schema) in definitions(root).filter(|(defined, _)| used.contains(*defined)) {
        define(&mut out, defined, schema);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn comment(out: &mut String, indent: &str, name: &str, schema: &Value) {
    let lines = doc_lines(schema);
    let Some((first, rest)) = lines.split_first() else { return };
    let first = if name.is_empty() { first.clone() } else { format!("{name}: {first}") };
    for text in std::iter::once(&first).chain(rest) {
        line(out, format!("{indent}// {text}").trim_end());
    }
}

fn interface(out: &mut String, name: &str, root: &Value) {
    comment(out, "", name, root);
    line(out, "//");
    line(
        out,
        &format!(
            "// It is a pointer to one of the types below, by the value of \"type\", or to Unknown{name}."
        ),
    );
    line(out, &format!("type {name} interface {{"));
    line(out, &format!("\t// Head is what every {name} has.\n\tHead() {name}Head\n}}\n"));
}

fn head(out: &mut String, name: &str, root: &Value) {
    line(out, &format!("// {name}Head is what every {name} has."));
    line(out, &format!("type {name}Head struct {{"));
    line(out, "\t// Which of the types it is.\n\tType string `json:\"type\"`");
    fields(out, as_object(root));
    line(out, "}\n");
    line(
        out,
        &format!(
            "// Head is what every {name} has.\nfunc (head {name}Head) Head() {name}Head {{ return head }}\n"
        ),
    );
}

/// One choice, with the fields of what it refers to.
fn structure(out: &mut String, name: &str, root: &Value, choice: &Value) {
    let tag = tag(choice);
    let own = exported(tag);
    comment(out, "", &own, choice);
    line(out, &format!("type {own} struct {{\n\t{name}Head"));
    if let Some(definition) = definition(root, choice) {
        fields(out, as_object(definition));
    }
    fields(out, as_object(choice));
    line(out, "}\n");
}

fn fields(out: &mut String, schema: &Map<String, Value>) {
    let required = required(schema);
    for (name, field) in schema.get("properties").into_iter().flat_map(as_object) {
        if name == "type" && field.get("const").is_some() {
            continue;
        }
        out.push('\n');
        comment(out, "\t", "", field);
        let needed = required.contains(&name.as_str());
        let go = go_type(field);
        let nullable = is_nullable(field);
        // A list or a map that is absent is nil; a switch that is absent is off.
        let pointer =
            (nullable || !needed) && !go.starts_with(['[', 'm']) && go != "bool" && go != "json.RawMessage";
        let pointer = if pointer { "*" } else { "" };
        let omit = if needed { "" } else { ",omitempty" };
        line(out, &format!("\t{} {pointer}{go} `json:\"{name}{omit}\"`", exported(name)));
    }
}

fn decoder(out: &mut String, name: &str, choices: &[&Value]) {
    let empty = format!("empty{name}");
    line(out, &format!("// {empty} is a {name} of this type, or nil when there is no such type."));
    line(out, &format!("func {empty}(kind string) {name} {{\n\tswitch kind {{"));
    for choice in choices {
        let tag = tag(choice);
        line(out, &format!("\tcase {tag:?}:\n\t\treturn &{}{{}}", exported(tag)));
    }
    line(out, "\t}\n\treturn nil\n}\n");
}

/// A definition: words become a string type with constants, an object a struct.
fn define(out: &mut String, name: &str, schema: &Value) {
    let object = as_object(schema);
    let words: Vec<(&str, &Value)> = super::words(schema);
    comment(out, "", name, schema);
    if words.is_empty() {
        line(out, &format!("type {name} struct {{"));
        let start = out.len();
        fields(out, object);
        // The first field follows its brace.
        if out.get(start..).is_some_and(|added| added.starts_with('\n')) {
            out.remove(start);
        }
        line(out, "}\n");
        return;
    }
    line(out, &format!("type {name} string\n"));
    line(out, &format!("// What a {name} can be.\nconst ("));
    for (index, (word, choice)) in words.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        comment(out, "\t", "", choice);
        line(out, &format!("\t{name}{} {name} = {word:?}", exported(word)));
    }
    line(out, ")\n");
}

fn go_type(schema: &Value) -> String {
    let fields = as_object(schema);
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return if name == "Timestamp" { "time.Time".to_owned() } else { name.to_owned() };
    }
    if let Some(choice) = fields.get("anyOf").and_then(Value::as_array).and_then(|choices| choices.first()) {
        return go_type(choice);
    }
    let kind = match fields.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ => "",
    };
    let inner = |key: &str| {
        fields.get(key).filter(|inner| inner.is_object()).map_or("json.RawMessage".to_owned(), go_type)
    };
    match kind {
        "string" => "string".to_owned(),
        "boolean" => "bool".to_owned(),
        "number" => "float64".to_owned(),
        "integer" => "int64".to_owned(),
        "array" => format!("[]{}", inner("items")),
        "object" => format!("map[string]{}", inner("additionalProperties")),
        _ => "json.RawMessage".to_owned(),
    }
}

fn is_nullable(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => schema.get("anyOf").is_some(),
    }
}

fn tag(choice: &Value) -> &str {
    choice.pointer("/properties/type/const").and_then(Value::as_str).unwrap_or_default()
}

/// `session_id` as Go writes it: `SessionID`.
fn exported(name: &str) -> String {
    let mut out = String::new();
    for part in name.split('_') {
        match part {
            "id" | "ms" | "http" | "cli" | "api" | "mcp" => out.push_str(&part.to_uppercase()),
            part => {
                let mut letters = part.chars();
                let _infallible =
                    letters.next().map(|first| write!(out, "{}{}", first.to_uppercase(), letters.as_str()));
            }
        }
    }
    out
}

/// The definitions that fields refer to; a choice that is a definition was written out in its place.
fn used_definitions<'a>(root: &'a Value, choices: &[&'a Value]) -> BTreeSet<&'a str> {
    let mut used = BTreeSet::new();
    let mut waiting: Vec<&Value> = as_object(root).get("properties").into_iter().collect();
    for choice in choices {
        waiting.extend(choice.get("properties"));
        waiting.extend(definition(root, choice));
    }
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(name) =
                    fields.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next())
                    && used.insert(name)
                {
                    waiting.extend(definition(root, value));
                }
                waiting.extend(fields.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    used.remove("Timestamp");
    used
}
