//! One line of what `--record-responses` writes: an answer of the API, when it is complete (seen in 0.61.0).
//!
//! Only what the CLI tells nowhere else in time is read of it: why the answer ended, and what it took. What it says is skipped.

use serde::Deserialize;

/// An answer of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Whether it came in pieces, as those of conversations do. Others are answers to questions of the CLI's own: its router's.
    pub streamed: bool,
    /// Why it ended, in the API's words: `STOP`, `MAX_TOKENS`, `SAFETY`.
    pub finish_reason: Option<String>,
    /// What it took.
    pub usage: UsageMetadata,
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
}

/// Reads a line, without its end. Nothing where it is no answer of a model: counts and embeddings are recorded as well.
pub fn parse_line(line: &[u8]) -> Option<Response> {
    let (streamed, pieces) = if line.starts_with(br#"{"method":"generateContentStream","#) {
        (true, serde_json::from_slice::<Line<Vec<Piece>>>(line).ok()?.response)
    } else if line.starts_with(br#"{"method":"generateContent","#) {
        (false, vec![serde_json::from_slice::<Line<Piece>>(line).ok()?.response])
    } else {
        return None;
    };
    let (mut finish_reason, mut usage) = (None, UsageMetadata::default());
    for piece in pieces {
        // What stands in a later piece counts for the whole.
        usage = piece.usage_metadata.unwrap_or(usage);
        let candidate = piece.candidates.into_iter().flatten().next();
        finish_reason = candidate.and_then(|candidate| candidate.finish_reason).or(finish_reason);
    }
    Some(Response { streamed, finish_reason, usage })
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
        assert_eq!(parse_line(streamed), Some(Response { streamed: true, finish_reason, usage }));
        let whole = br#"{"method":"generateContent","response":{"candidates":[{"finishReason":"STOP"}]}}"#;
        let (finish_reason, usage) = (Some("STOP".to_owned()), UsageMetadata::default());
        assert_eq!(parse_line(whole), Some(Response { streamed: false, finish_reason, usage }));
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
}
