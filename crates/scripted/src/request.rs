//! What a client asked for.
//!
//! Gemini CLI (0.61.0) sends the whole conversation with every request: a `<session_context>` content first, then
//! prompts, calls and results. Contents of referenced files come as further text parts of the same content, and
//! after a tool call the last content holds only function responses.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::Value;

/// One request to the API, as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    /// When it had been read completely.
    pub at: SystemTime,
    /// The run it belongs to: what follows the scenario's name in the base URL; empty when nothing does.
    pub run: String,
    /// Its number among the requests of this kind in its run, from 1.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path and query, without a key.
    pub path: String,
    /// What was called: `streamGenerateContent`, `generateContent` or `countTokens`.
    pub action: String,
    /// The model.
    pub model: String,
    /// The headers, names in lower case, values of secrets replaced.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
    /// The body as it was sent.
    pub raw_body: String,
}

impl RecordedRequest {
    fn contents(&self) -> std::slice::Iter<'_, Value> {
        self.body.get("contents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
    }

    /// The last text of the user, without what Gemini CLI adds of its own: the session's context, hooks, reminders
    /// and the contents of referenced files.
    pub fn prompt(&self) -> Option<&str> {
        self.contents().rfind(|content| is_prompt(content)).and_then(|content| own_texts(content).next())
    }

    /// The texts of all contents, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.contents().flat_map(texts_of)
    }

    /// The tools that are offered to the model.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        let tools = self.body.get("tools").and_then(Value::as_array).into_iter().flatten();
        let declarations =
            tools.filter_map(|tool| tool.get("functionDeclarations").and_then(Value::as_array)).flatten();
        declarations.filter_map(|declaration| declaration.get("name").and_then(Value::as_str))
    }

    /// The results of tools that this request brings: the function responses of its last content, with their names.
    pub fn responses(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.contents().next_back().into_iter().flat_map(results_of)
    }

    /// The results of tools since the last text of the user, with their names, in order.
    pub fn results_since_prompt(&self) -> impl Iterator<Item = (&str, &Value)> {
        let after = self.contents().rposition(is_prompt).map_or(0, |index| index + 1);
        self.contents().skip(after).flat_map(results_of)
    }

    /// The schema that the answer has to follow, where one is given.
    pub fn schema(&self) -> Option<&Value> {
        let config = self.body.get("generationConfig")?;
        let names = ["responseJsonSchema", "_responseJsonSchema", "responseSchema"];
        names.iter().find_map(|name| config.get(name)).filter(|schema| schema.is_object())
    }
}

fn role(content: &Value) -> &str {
    content.get("role").and_then(Value::as_str).unwrap_or("user")
}

fn parts_of(content: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    content.get("parts").and_then(Value::as_array).into_iter().flatten()
}

fn texts_of(content: &Value) -> impl DoubleEndedIterator<Item = &str> {
    parts_of(content).filter_map(|part| part.get("text").and_then(Value::as_str))
}

fn results_of(content: &Value) -> impl Iterator<Item = (&str, &Value)> {
    parts_of(content).filter_map(|part| {
        let response = part.get("functionResponse")?;
        Some((response.get("name")?.as_str()?, response.get("response").unwrap_or(&Value::Null)))
    })
}

fn is_prompt(content: &Value) -> bool {
    role(content) == "user" && own_texts(content).next().is_some()
}

/// The texts of a content that the user wrote.
fn own_texts(content: &Value) -> impl Iterator<Item = &str> {
    const ADDED: [&str; 6] = [
        "<session_context>",
        "<hook_context>",
        "<system-reminder>",
        "<state_snapshot>",
        "--- Content from referenced files ---",
        "\n--- Content from referenced files ---",
    ];
    let brings_results = parts_of(content).any(|part| part.get("functionResponse").is_some());
    texts_of(content).filter(move |text| {
        !brings_results && !text.trim().is_empty() && !ADDED.iter().any(|added| text.starts_with(added))
    })
}
