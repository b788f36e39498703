//! The last JSON in a text, fenced or bare.

use serde_json::Value;

/// How often each byte of a text may be looked at, at most: brackets that open and do not close invite to begin again at each.
const PASSES: usize = 8;
/// What is nested deeper is not read.
const TOO_DEEP: usize = 128;

/// The last JSON value in a text. An object or an array counts wherever it stands; anything else only when it is all of the
/// text or of the last fenced block.
pub fn last_json(text: &str) -> Option<Value> {
    last(text, |_| true)
}

/// The last object or array in a text; a number or a word is none.
pub fn last_structure(text: &str) -> Option<Value> {
    last(text, |value| value.is_object() || value.is_array())
}

fn last(text: &str, counts: fn(&Value) -> bool) -> Option<Value> {
    let whole = text.trim();
    if let Ok(value) = serde_json::from_str(whole) {
        return Some(value).filter(counts);
    }
    let fenced = last_fenced(whole).filter(|(_, value)| counts(value));
    let bare = last_container(whole);
    match (fenced, bare) {
        // In or behind the last fence, or there is none that holds JSON.
        (Some((start, _)), Some((at, value))) if at >= start => Some(value),
        (Some((_, value)), _) => Some(value),
        (None, bare) => bare.map(|(_, value)| value),
    }
}

/// The last fenced block that is JSON as a whole, and where it begins.
fn last_fenced(text: &str) -> Option<(usize, Value)> {
    let close = text.rfind("```")?;
    let before = text.get(..close)?;
    let open = before.rfind("```")?;
    let line = before.get(open..)?;
    let start = open + line.find('\n')? + 1;
    let block = before.get(start..)?;
    Some((start, serde_json::from_str(block.trim()).ok()?))
}

/// The last object or array, and where it begins. Looked for from the end: there it is, whatever stands before.
fn last_container(text: &str) -> Option<(usize, Value)> {
    let bytes = text.as_bytes();
    let mut left = bytes.len().saturating_mul(PASSES).saturating_add(1 << 16);
    let mut end = bytes.len();
    loop {
        end = bytes.get(..end)?.iter().rposition(|byte| matches!(byte, b'}' | b']'))?;
        let start = opening(bytes.get(..end)?, &mut left)?;
        if let Some(start) = start {
            left = left.checked_sub(end - start)?;
            if let Some(value) = text.get(start..=end).and_then(|part| serde_json::from_str(part).ok()) {
                return Some((start, value));
            }
        }
    }
}

/// Where the bracket opens whose end is behind these bytes, if it does; none of both when there was enough looking.
fn opening(bytes: &[u8], left: &mut usize) -> Option<Option<usize>> {
    let mut depth = 1;
    let mut in_text = false;
    for (at, byte) in bytes.iter().enumerate().rev() {
        *left = left.checked_sub(1)?;
        match byte {
            b'"' if !is_escaped(bytes, at) => in_text = !in_text,
            _ if in_text => {}
            b'}' | b']' => depth += 1,
            b'{' | b'[' => depth -= 1,
            _ => {}
        }
        match depth {
            0 => return Some(Some(at)),
            // Nobody reads it anyway.
            TOO_DEEP => return Some(None),
            _ => {}
        }
    }
    Some(None)
}

/// Whether a quote belongs to the text around it.
fn is_escaped(bytes: &[u8], quote: usize) -> bool {
    let before = bytes.get(..quote).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_json_counts_fenced_or_bare() {
        for (text, expected) in [
            ("42", Some(json!(42))),
            (" \"yes\" ", Some(json!("yes"))),
            ("It is 42", None),
            ("```json\n42\n```", Some(json!(42))),
            ("Here:\n```json\n{\"a\": 1}\n```\nDone.", Some(json!({"a": 1}))),
            ("First {\"a\": 1}, no, {\"a\": 2}.", Some(json!({"a": 2}))),
            ("```\n{\"a\": 1}\n```\nor rather {\"a\": 2}", Some(json!({"a": 2}))),
            ("{\"a\": 1}\n```\n7\n```", Some(json!(7))),
            ("[see note: {\"a\": [1, {\"b\": \"}]\"}]}]", Some(json!({"a": [1, {"b": "}]"}]}))),
            ("{\"a\": \"say \\\"hi\\\" {\"}", Some(json!({"a": "say \"hi\" {"}))),
            ("{\"a\": 1} and that is \"it}", Some(json!({"a": 1}))),
            ("{\"a\": 1", None),
            ("", None),
            ("}]}]", None),
        ] {
            assert_eq!(last_json(text), expected, "{text}");
        }
    }

    #[test]
    fn a_structure_is_found_wherever_it_stands() {
        let files = json!({"files": ["a", "b"]});
        for text in [
            r#"{"files":["a","b"]}"#,
            "  \n{\"files\":[\"a\",\"b\"]}\n",
            "Here it is:\n```json\n{\"files\": [\"a\", \"b\"]}\n```\nAnything else?",
            "```\n{\"files\": [\"a\", \"b\"]}\n```",
            "```text\nnot this {\"files\": [\n```\nbut\n```json\n{\"files\":[\"a\",\"b\"]}\n```",
            "The result is {\"files\":[\"a\",\"b\"]} as you see {braces}.",
            "A set {1, 2} is not it, but {\"files\":[\"a\",\"b\"]} is.",
            "First {\"files\": []}, no, {\"files\":[\"a\",\"b\"]}.",
            "{\"files\":[\"a\",\"b\"]}, in short:\n```\n2\n```",
        ] {
            assert_eq!(last_structure(text), Some(files.clone()), "{text}");
        }
        assert_eq!(last_structure("see [1, {\"a\": \"}\"}] here"), Some(json!([1, {"a": "}"}])));
    }

    #[test]
    fn prose_and_bare_values_are_no_structure() {
        for text in ["", "42", "\"text\"", "no {json} here [at all]", "```json\nbroken: {\n```", "{\"cut\": "]
        {
            assert_eq!(last_structure(text), None, "{text}");
        }
    }

    #[test]
    fn hostile_texts_cost_no_stack_and_little_time() {
        let large = 10 << 20;
        let strings = format!("{}{}", "\"[\\\"".repeat(large / 4), "]");
        for text in [
            "[".repeat(large),
            "]".repeat(large),
            "{\"a\":".repeat(large / 5),
            format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
            format!("[{}", "1]".repeat(large / 2)),
            "\\\"}".repeat(large / 3),
            strings,
        ] {
            last_json(&text);
        }
        let buried = format!("{}{{\"a\": 1}}", "[{\"".repeat(large / 3));
        assert_eq!(last_json(&buried), Some(json!({"a": 1})));
    }

    proptest::proptest! {
        #[test]
        fn what_is_json_behind_any_words_is_found(words in "[^\\[\\]{}\"`]{0,40}", number: i32, text in ".{0,20}") {
            let value = json!({"n": number, "t": [text]});
            proptest::prop_assert_eq!(last_json(&format!("{words}{value}{words}")), Some(value));
        }

        #[test]
        fn any_text_is_borne(text in "[\\[\\]{}\"\\\\a`\n:,0-9]{0,60}") {
            last_json(&text);
            if let Some(value) = last_structure(&text) {
                proptest::prop_assert!(value.is_object() || value.is_array());
            }
        }
    }
}
