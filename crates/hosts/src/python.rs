//! Values as Python shows them: `repr` and type names, for messages that a Python host compares word for word.

use serde_json::{Number, Value};

/// `type(value).__name__` of a value that came from JSON.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

/// `repr(value)`.
pub fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number_repr(number),
        Value::String(text) => string_repr(text),
        Value::Array(items) => list_repr(items.iter().map(repr)),
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", string_repr(key), repr(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A list of representations as Python writes a list.
pub fn list_repr(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// `repr(text)`: single quotes, unless only those occur in it.
pub fn string_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character if character == quote => out.extend(['\\', character]),
            character if is_printable(character) => out.push(character),
            character => out.push_str(&escape(u32::from(character))),
        }
    }
    out.push(quote);
    out
}

fn escape(code: u32) -> String {
    match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

/// `str.isprintable` for one character, without the tables of Unicode: controls, format characters, separators other than
/// the blank, and private use are not.
fn is_printable(character: char) -> bool {
    let hidden = character.is_control()
        || (character.is_whitespace() && character != ' ')
        || matches!(u32::from(character),
            0xad | 0x600..=0x605 | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb | 0xfffe | 0xffff | 0xe0000.. );
    !hidden
}

/// Integers as they are; floats in Python's shortest form, with an exponent from 1e16 and below 1e-4.
fn number_repr(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => {
            let plain = format!("{float}");
            if plain.contains('.') { plain } else { format!("{plain}.0") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Every right side was printed by CPython 3.11.
    #[test]
    fn values_are_shown_as_python_shows_them() {
        let shown = [
            (json!("x"), "'x'"),
            (json!("it's"), "\"it's\""),
            (json!("both ' and \""), "'both \\' and \"'"),
            (
                json!("a\\b\n\t\r\u{0}\u{7f}\u{a0}\u{200b}é✦\u{1f600}"),
                "'a\\\\b\\n\\t\\r\\x00\\x7f\\xa0\\u200bé✦😀'",
            ),
            (json!(null), "None"),
            (json!(true), "True"),
            (json!(-3), "-3"),
            (json!(0.5), "0.5"),
            (json!(2.0), "2.0"),
            (json!(1e16), "1e+16"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(["a", 1, {"k": [false]}]), "['a', 1, {'k': [False]}]"),
            (json!([]), "[]"),
            (json!({}), "{}"),
        ];
        for (value, expected) in shown {
            assert_eq!(repr(&value), expected);
        }
    }

    #[test]
    fn types_have_pythons_names() {
        let named = [
            (json!(null), "NoneType"),
            (json!(true), "bool"),
            (json!(1), "int"),
            (json!(1.0), "float"),
            (json!("a"), "str"),
            (json!([1]), "list"),
            (json!({"a": 1}), "dict"),
        ];
        for (value, expected) in named {
            assert_eq!(type_name(&value), expected);
        }
    }
}
