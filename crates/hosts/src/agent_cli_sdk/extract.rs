//! The JSON in a model's answer: alone, in a fenced block, or somewhere in the prose.

use serde_json::Value;

/// So many beginnings are tried; an answer of brackets alone must not take for ever.
const MOST_STARTS: usize = 64;

/// The first object or array of an answer: the whole answer, else a fenced block, else the first one in the text.
pub fn extract_json(text: &str) -> Option<Value> {
    structure(text.trim())
        .or_else(|| fenced_blocks(text).find_map(structure))
        .or_else(|| first_balanced(text))
}

fn structure(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

/// The contents of the fenced blocks, without their language.
fn fenced_blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| {
        let language = block.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(block.len());
        block.get(language..).unwrap_or("")
    })
}

fn first_balanced(text: &str) -> Option<Value> {
    let starts = text.match_indices(['{', '[']).map(|(start, _)| start);
    starts.take(MOST_STARTS).find_map(|start| {
        let rest = text.get(start..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn json_is_found_wherever_it_stands() {
        let files = json!({"files": ["a", "b"]});
        for text in [
            r#"{"files":["a","b"]}"#,
            "  \n{\"files\":[\"a\",\"b\"]}\n",
            "Here it is:\n```json\n{\"files\": [\"a\", \"b\"]}\n```\nAnything else?",
            "```\n{\"files\": [\"a\", \"b\"]}\n```",
            "```text\nnot this {\"files\": [\n```\nbut\n```json\n{\"files\":[\"a\",\"b\"]}\n```",
            "The result is {\"files\":[\"a\",\"b\"]} as you see {braces}.",
            "A set {1, 2} is not it, but {\"files\":[\"a\",\"b\"]} is.",
        ] {
            assert_eq!(extract_json(text), Some(files.clone()), "{text}");
        }
        assert_eq!(extract_json("see [1, {\"a\": \"}\"}] here"), Some(json!([1, {"a": "}"}])));
    }

    #[test]
    fn prose_and_bare_values_are_no_json() {
        for text in ["", "42", "\"text\"", "no {json} here [at all]", "```json\nbroken: {\n```", "{\"cut\": "]
        {
            assert_eq!(extract_json(text), None, "{text}");
        }
    }

    #[test]
    fn an_answer_of_brackets_ends() {
        assert_eq!(extract_json(&"[{".repeat(200_000)), None);
        assert_eq!(extract_json(&"`".repeat(200_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_searched_without_harm(text in "[{}\\[\\]\",:`0-9a-z\\\\ \n]{0,200}") {
            if let Some(value) = extract_json(&text) {
                prop_assert!(value.is_object() || value.is_array());
            }
        }
    }
}
