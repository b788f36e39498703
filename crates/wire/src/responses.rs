//! One line of what `--record-responses` writes: an answer of the API, when it is complete (seen in 0.61.0).
//!
//! Only the parts that the CLI reports nowhere else in time are read: why the answer ended, its tokens, and the arguments of its tool
//! calls. Text is skipped.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::raw::from_slice;

/// An answer of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Whether it came in pieces, as those of conversations do. Others are answers to questions of the CLI's own: its router's.
    pub streamed: bool,
    /// Why it ended, in the API's words: `STOP`, `MAX_TOKENS`, `SAFETY`.
    pub finish_reason: Option<String>,
    /// What it took.
    pub usage: UsageMetadata,
    /// The tool calls that it asks for, in order.
    pub calls: Vec<FunctionCall>,
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The id that the CLI uses for the call over ACP too (since 0.43).
    pub id: String,
    /// The tool.
    pub name: String,
    /// The complete arguments.
    pub args: Value,
}

/// Tokens, by the API's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageMetadata {
    /// Those of the question, cached ones included.
    pub prompt_token_count: Option<u64>,
    /// Those of the question that came from the cache.
    pub cached_content_token_count: Option<u64>,
    /// Those of the answer.
    pub candidates_token_count: Option<u64>,
    /// Those of thoughts.
    pub thoughts_token_count: Option<u64>,
    /// Those of the results of tools that the API itself used.
    pub tool_use_prompt_token_count: Option<u64>,
    /// All of them.
    pub total_token_count: Option<u64>,
}

#[derive(Deserialize)]
struct Line<T> {
    response: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<UsageMetadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    finish_reason: Option<String>,
    content: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    function_call: Option<Value>,
}

impl FunctionCall {
    fn read(call: &Value) -> Option<Self> {
        let text = |key: &str| call.get(key).and_then(Value::as_str).map(str::to_owned);
        let args = call.get("args").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        Some(Self { id: text("id")?, name: text("name")?, args })
    }
}

/// Reads a line, without its end. Nothing where it is no answer of a model: counts and embeddings are recorded as well.
pub fn parse_line(line: &[u8]) -> Option<Response> {
    let (streamed, pieces) = if line.starts_with(br#"{"method":"generateContentStream","#) {
        (true, from_slice::<Line<Vec<Piece>>>(line).ok()?.response)
    } else if line.starts_with(br#"{"method":"generateContent","#) {
        (false, vec![from_slice::<Line<Piece>>(line).ok()?.response])
    } else {
        return None;
    };
    let mut response = Response { streamed, ..Response::default() };
    for piece in pieces {
        // What stands in a later piece counts for the whole.
        response.usage = piece.usage_metadata.unwrap_or(response.usage);
        let Some(candidate) = piece.candidates.into_iter().flatten().next() else { continue };
        response.finish_reason = candidate.finish_reason.or(response.finish_reason);
        let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        let calls = parts.iter().filter_map(|part| FunctionCall::read(part.function_call.as_ref()?));
        response.calls.extend(calls);
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_an_answer_ended_and_what_it_took_is_read() {
        let streamed = br#"{"method":"generateContentStream","response":[{"candidates":[{"content":{"role":"model","parts":[{"text":"finishReason"}]},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100}},{"candidates":[{"content":{"parts":[]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"thoughtsTokenCount":20,"cachedContentTokenCount":30,"totalTokenCount":127,"promptTokensDetails":[{}]}},{}]}"#;
        let usage = UsageMetadata {
            prompt_token_count: Some(100),
            cached_content_token_count: Some(30),
            candidates_token_count: Some(7),
            thoughts_token_count: Some(20),
            tool_use_prompt_token_count: None,
            total_token_count: Some(127),
        };
        let finish_reason = Some("MAX_TOKENS".to_owned());
        assert_eq!(
            parse_line(streamed),
            Some(Response { streamed: true, finish_reason, usage, ..Response::default() })
        );
        let whole = br#"{"method":"generateContent","response":{"candidates":[{"finishReason":"STOP"}]}}"#;
        let finish_reason = Some("STOP".to_owned());
        assert_eq!(parse_line(whole), Some(Response { finish_reason, ..Response::default() }));
        for other in [
            &b""[..],
            b"{}",
            br#"{"method":"countTokens","response":{"totalTokens":3}}"#,
            br#"{"method":"generateContent","response":[]}"#,
            br#"{"method":"generateContentStream","response":[{"candidates":[7]}]}"#,
            b"{\"method\":\"generateContentStream\",\"resp",
        ] {
            assert_eq!(parse_line(other), None, "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn the_arguments_of_calls_are_complete_even_with_half_a_character_in_the_answer() {
        let line = br#"{"method":"generateContentStream","response":[{"candidates":[{"content":{"parts":[{"text":"cut \ud83d"},{"functionCall":{"id":"a","name":"replace","args":{"file_path":"x","old_string":"\ud83d","new_string":"y"}}}]}}]},{"candidates":[{"content":{"parts":[{"functionCall":{"id":"b","name":"glob"}},{"functionCall":{"name":"no_id"}},{"functionCall":7}]}}]}]}"#;
        let call = |id: &str, name: &str, args: Value| FunctionCall {
            id: id.to_owned(),
            name: name.to_owned(),
            args,
        };
        let edit = serde_json::json!({"file_path": "x", "old_string": "\u{fffd}", "new_string": "y"});
        let calls = parse_line(line).unwrap().calls;
        assert_eq!(calls, [call("a", "replace", edit), call("b", "glob", serde_json::json!({}))]);
    }
}
