//! What a client asked for, and where it sent that.
//!
//! Gemini CLI (0.61.0) sends the whole conversation with every request: a `<session_context>` content first, then
//! prompts, calls and results. Contents of referenced files come as further text parts of the same content, and
//! after a tool call the last content holds only function responses.

use std::collections::BTreeMap;
use std::time::SystemTime;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
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

/// Where a request goes: `[/s/<scenario>[/<run>]]/v1beta/models/<model>:<action>`.
///
/// Gemini CLI (0.61.0) keeps a path prefix of `GOOGLE_GEMINI_BASE_URL`, so one server can play many scenarios.
#[derive(Debug, PartialEq)]
pub(crate) struct Route {
    /// None at the root of the server.
    pub(crate) scenario: Option<String>,
    pub(crate) run: String,
    pub(crate) model: String,
    pub(crate) action: String,
    pub(crate) path: String,
}

const ACTIONS: [&str; 3] = ["streamGenerateContent", "generateContent", "countTokens"];

impl Route {
    /// Takes a target apart; none when it is not one of the API's.
    pub(crate) fn of(target: &str) -> Option<Route> {
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let (prefix, last) = path.rsplit_once("/models/")?;
        let (prefix, version) = prefix.rsplit_once('/')?;
        if !version.starts_with("v1") {
            return None;
        }
        let (scenario, run) = match prefix {
            "" => (None, ""),
            _ => {
                let rest = prefix.strip_prefix("/s/")?;
                let (scenario, run) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(decode(scenario)), run)
            }
        };
        let (model, action) = last.rsplit_once(':')?;
        if !ACTIONS.contains(&action) {
            return None;
        }
        Some(Route {
            scenario,
            run: decode(run),
            model: decode(model),
            action: action.to_owned(),
            path: without_keys(target),
        })
    }
}

/// A target without the keys in its query.
pub(crate) fn without_keys(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let pairs = query.split('&').map(|pair| if pair.starts_with("key=") { "key=[secret]" } else { pair });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

const OF_A_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Makes a name fit for one segment of a path.
pub(crate) fn encode(name: &str) -> String {
    utf8_percent_encode(name, OF_A_NAME).to_string()
}

pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Route, decode, encode};

    proptest::proptest! {
        #[test]
        fn any_name_survives_its_way_through_a_path(name in ".*", run in "[^/?]{0,9}") {
            proptest::prop_assert_eq!(decode(&encode(&name)), name.clone());
            let target = format!("/s/{}/{}/v1beta/models/m:countTokens", encode(&name), encode(&run));
            let route = Route::of(&target).map(|route| (route.scenario, route.run));
            proptest::prop_assert_eq!(route, Some((Some(name), run)));
        }

        #[test]
        fn any_target_is_taken(target in r"(/|s|%|\?|:|v1|models|\PC){0,30}") {
            let _ = (Route::of(&target), decode(&target));
        }
    }
}
