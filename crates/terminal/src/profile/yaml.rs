//! Front matter: the YAML above a profile, as values with the line that each key is on.
//!
//! What people write there is small, so it is bounded: no anchors, no tags, a limited depth. Nothing can be blown up.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

/// How deep values may be nested.
const DEPTH: usize = 32;

/// What is wrong with front matter, and in which of its lines, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) message: String,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) values: Map<String, Value>,
    pub(super) lines: BTreeMap<String, usize>,
}

enum Open {
    List(Vec<Value>),
    Map { entries: Map<String, Value>, key: Option<String> },
}

/// Reads front matter without its `---` lines.
pub(super) fn read(text: &str) -> Result<FrontMatter, Wrong> {
    let mut lines = BTreeMap::new();
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| Wrong { line: error.marker().line(), message: error.info().to_owned() })?;
        let wrong = |message: &str| Wrong { line: line(span), message: message.to_owned() };
        let done = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH => {
                return Err(wrong("nested too deeply"));
            }
            Event::Alias(_) => return Err(wrong("aliases are not supported")),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map { entries: Map::new(), key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Map { entries, .. }) => Value::Object(entries),
                None => continue,
            },
            Event::Scalar(text, style, ..) => {
                let top = open.len() == 1;
                if let Some(Open::Map { entries, key: key @ None }) = open.last_mut() {
                    if entries.contains_key(text.as_ref()) {
                        return Err(wrong(&format!("{text:?} is there twice")));
                    }
                    if top {
                        lines.insert(text.clone().into_owned(), line(span));
                    }
                    *key = Some(text.into_owned());
                    continue;
                }
                scalar(&text, style)
            }
            Event::DocumentStart(_) if whole.is_some() => return Err(wrong("more than one document")),
            _ => continue,
        };
        match open.last_mut() {
            None => whole = Some(done),
            Some(Open::List(items)) => items.push(done),
            Some(Open::Map { entries, key }) => match key.take() {
                Some(key) => {
                    entries.insert(key, done);
                }
                None => return Err(wrong("a key must be a word")),
            },
        }
    }
    match whole {
        None | Some(Value::Null) => Ok(FrontMatter::default()),
        Some(Value::Object(values)) => Ok(FrontMatter { values, lines }),
        Some(_) => Err(Wrong { line: 1, message: "not a list of `key: value`".to_owned() }),
    }
}

fn line(span: Span) -> usize {
    span.start.line()
}

/// A plain word may be a number, true, false or nothing; a quoted one is text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) => {
            let plain = text.strip_prefix('+').unwrap_or(text);
            let float = || plain.parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number);
            plain
                .parse::<i64>()
                .ok()
                .map(Value::from)
                .or_else(float)
                .unwrap_or_else(|| Value::String(text.to_owned()))
        }
        _ => Value::String(text.to_owned()),
    }
}
