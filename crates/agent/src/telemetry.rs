//! Finish reasons, from the CLI's own telemetry.
//!
//! An answer that was cut off by the token limit or by a filter after some text is a plain success in every output of
//! 0.61.0. Only its telemetry names the finish reason. The file is a row of pretty-printed JSON objects; of all of it only
//! the lists of finish reasons matter, so they are looked for and nothing else is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memchr::memmem;

use crate::env::{self, Environment};

/// Switches telemetry into a file on, unless the user has telemetry of their own.
pub(crate) fn switch_on(path: &Path, settings: &serde_json::Value, environment: &mut Environment) -> bool {
    let own = [env::GEMINI_TELEMETRY_ENABLED, env::GEMINI_TELEMETRY_TARGET, env::GEMINI_TELEMETRY_OUTFILE];
    if own.iter().any(|name| environment.get(name).is_some()) || settings.get("telemetry").is_some() {
        return false;
    }
    environment.set(env::GEMINI_TELEMETRY_ENABLED, "true");
    environment.set(env::GEMINI_TELEMETRY_TARGET, "local");
    environment.set(env::GEMINI_TELEMETRY_OUTFILE, path);
    environment.set(env::GEMINI_TELEMETRY_LOG_PROMPTS, "false");
    true
}

/// Warnings for answers that did not end by themselves.
pub(crate) fn warnings(path: &Path) -> Vec<String> {
    let Ok(mut file) = File::open(path) else { return Vec::new() };
    let finder = memmem::Finder::new(b"\n    \"finish_reasons\": [");
    let (mut buffer, mut chunk, mut found) = (Vec::new(), vec![0; 256 << 10], Vec::new());
    loop {
        let count = file.read(&mut chunk).unwrap_or(0);
        buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let mut used = 0;
        while let Some(at) = finder.find(buffer.get(used..).unwrap_or_default()) {
            let start = used + at + finder.needle().len();
            let Some(length) = buffer.get(start..).and_then(|rest| memchr::memchr(b']', rest)) else { break };
            found.extend(last_reason(buffer.get(start..start + length).unwrap_or_default()));
            used = start + length;
        }
        // What may be the beginning of the next list is kept, but never the whole file.
        let keep = used.max(buffer.len().saturating_sub(64 << 10));
        buffer.drain(..keep.min(buffer.len()));
        if count == 0 {
            break;
        }
    }
    let mut warnings: Vec<String> = found.iter().filter_map(|reason| warning(reason)).collect();
    warnings.dedup();
    warnings
}

/// The reason of the last piece of an answer is that of the answer.
fn last_reason(list: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(list).ok()?;
    text.split(',')
        .map(|word| word.trim().trim_matches('"'))
        .rfind(|word| !word.is_empty())
        .map(str::to_owned)
}

fn warning(reason: &str) -> Option<String> {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "tool_calls" | "unspecified" | "finish_reason_unspecified" | "error" => None,
        "length" | "max_tokens" => {
            Some("An answer was cut off at the limit of output tokens (MAX_TOKENS)".to_owned())
        }
        "content_filter" | "safety" => Some("An answer was cut off by a content filter (SAFETY)".to_owned()),
        other => Some(format!("An answer ended early: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_ended_early_are_warned_of() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telemetry");
        let list = |reasons: &str| format!("{{\n    \"finish_reasons\": [\n      {reasons}\n    ],\n}}\n");
        let text = [
            list("\"stop\",\n      \"stop\""),
            list("\"stop\",\n      \"length\""),
            list("\"content_filter\""),
        ]
        .concat();
        std::fs::write(&path, "x".repeat(300_000) + "\n" + &text).unwrap();
        assert_eq!(
            warnings(&path),
            [
                "An answer was cut off at the limit of output tokens (MAX_TOKENS)",
                "An answer was cut off by a content filter (SAFETY)"
            ]
        );
        assert_eq!(warnings(&dir.path().join("none")), [""; 0]);
    }
}
