//! Finish reasons and measurements, from the CLI's own telemetry.
//!
//! An answer that was cut off by the token limit or by a filter after some text is a plain success in every output of
//! 0.61.0. Only its telemetry names the finish reason, and how long calls and tools took. The file is a row of
//! pretty-printed JSON objects, most of them large and of no use here, so it is read by lines and not parsed as a whole.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use alhena_model::{Statistics, Tokens};
use alhena_wire::frame::{Frame, Framer};
use serde_json::Value;

use crate::env::{self, Environment};
use crate::follow::Follower;

/// Its name among the files of a run.
pub(crate) const FILE: &str = "telemetry";

/// Longer lines are prompts and answers.
const LONGEST_LINE: usize = 64 << 10;
/// So many calls may be traced before anybody asks.
const MOST_TRACED: usize = 1000;

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

/// Lets it trace the calls of models at once: those it does not keep back as it does events (0.44.0 on).
pub(crate) fn trace(environment: &mut Environment) {
    environment.set(env::GEMINI_TELEMETRY_TRACES_ENABLED, "true");
    if environment.get(env::OTEL_BSP_SCHEDULE_DELAY).is_none() {
        environment.set(env::OTEL_BSP_SCHEDULE_DELAY, "0");
    }
}

/// What the telemetry says that nothing else does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// For answers that did not end by themselves.
    pub warnings: Vec<String>,
    pub statistics: Statistics,
    /// The calls that were traced, as they ended.
    pub traced: Vec<Traced>,
}

/// A call of a model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    pub model: String,
    pub input: u64,
    pub output: u64,
}

/// Reads the telemetry of a run that is over.
pub(crate) fn read(path: &Path) -> Measured {
    let mut reader = TelemetryReader::default();
    let Ok(mut file) = File::open(path) else { return reader.measured };
    let (mut framer, mut chunk) = (Framer::new(LONGEST_LINE), vec![0; 256 << 10]);
    while let Some(bytes) = file.read(&mut chunk).ok().and_then(|count| chunk.get(..count)) {
        if bytes.is_empty() {
            break;
        }
        framer.push(bytes, |frame| {
            if let Frame::Line(line) = frame {
                reader.line(line);
            }
        });
    }
    reader.measured.warnings.dedup();
    reader.measured
}

/// The telemetry of a CLI that goes on. Its events are written 5 s late, and nothing can hurry them (0.61.0): what they say of a
/// turn of a conversation is known in the next one, or at the end. Traces are written at once, where that was asked for.
pub(crate) struct TelemetryTail {
    file: Follower,
    framer: Framer,
    reader: TelemetryReader,
}

impl TelemetryTail {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let (file, framer) = (Follower::open(path)?, Framer::new(LONGEST_LINE));
        Ok(Self { file, framer, reader: TelemetryReader::default() })
    }

    fn read(&mut self) {
        let (framer, reader) = (&mut self.framer, &mut self.reader);
        while let Some(bytes) = self.file.next().ok().filter(|bytes| !bytes.is_empty()) {
            framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    reader.line(line);
                }
            });
        }
    }

    /// Nobody else reads it: what has been read need not be kept.
    pub(crate) fn forget(&mut self) {
        self.file.forget();
    }

    /// What was not told yet of answers that did not end by themselves.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        self.read();
        let mut warnings = std::mem::take(&mut self.reader.measured.warnings);
        warnings.dedup();
        warnings
    }

    /// The calls of models that were not told yet.
    pub(crate) fn traced(&mut self) -> Vec<Traced> {
        self.read();
        std::mem::take(&mut self.reader.measured.traced)
    }
}

/// Goes through the file line by line: the attributes of an event stand one to a line, at a depth of their own.
#[derive(Default)]
struct TelemetryReader {
    /// Those of the event at hand that count.
    attributes: HashMap<&'static str, Value>,
    /// Inside the list of finish reasons: the last of them is that of the answer.
    reasons: Option<String>,
    measured: Measured,
}

/// What is read of an event.
const ATTRIBUTES: &[&str] = &[
    "event.name",
    "model",
    "role",
    "duration_ms",
    "error_type",
    "function_name",
    "decision",
    "input_token_count",
    "output_token_count",
    "cached_content_token_count",
    "thoughts_token_count",
    "tool_token_count",
    "total_token_count",
    "gen_ai.operation.name",
    "gen_ai.request.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
];

impl TelemetryReader {
    fn line(&mut self, line: &[u8]) {
        if line.starts_with(b"}") {
            self.event();
        } else if let Some(reason) = line.strip_prefix(b"      \"") {
            if let Some(last) = &mut self.reasons {
                *last = String::from_utf8_lossy(reason).trim_end_matches(['"', ',']).to_owned();
            }
        } else if let Some(line) = line.strip_prefix(b"    \"") {
            self.attribute(line);
        } else if line.starts_with(b"    ]") {
            self.measured.warnings.extend(self.reasons.take().and_then(|reason| warning(&reason)));
        }
    }

    fn attribute(&mut self, line: &[u8]) {
        if line.starts_with(b"finish_reasons\": [") {
            self.reasons = Some(String::new());
            return;
        }
        let known = ATTRIBUTES.iter().find_map(|name| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b"\": ")?;
            Some((*name, value.strip_suffix(b",").unwrap_or(value)))
        });
        if let Some((name, value)) = known
            && let Ok(value) = serde_json::from_slice(value)
        {
            self.attributes.insert(name, value);
        }
    }

    /// The end of an object of the outermost level.
    fn event(&mut self) {
        self.reasons = None;
        let attributes = std::mem::take(&mut self.attributes);
        let text = |name| attributes.get(name).and_then(Value::as_str);
        // Times are fractions in some events.
        let number = |name| attributes.get(name).and_then(Value::as_f64).unwrap_or(0.0).max(0.0) as u64;
        let statistics = &mut self.measured.statistics;
        match text("event.name") {
            Some("gemini_cli.api_response") => {
                let tokens = Tokens {
                    prompt: number("input_token_count"),
                    cached: number("cached_content_token_count"),
                    output: number("output_token_count"),
                    thoughts: number("thoughts_token_count"),
                    tool: number("tool_token_count"),
                    total: number("total_token_count"),
                };
                let Some(model) = text("model") else { return };
                statistics.call(model, text("role"), number("duration_ms"), Ok(tokens));
            }
            Some("gemini_cli.api_error") => {
                let Some(model) = text("model") else { return };
                let kind = text("error_type").filter(|kind| !kind.is_empty()).unwrap_or("UNKNOWN");
                statistics.call(model, text("role"), number("duration_ms"), Err(kind));
            }
            Some("gemini_cli.tool_call") => {
                let Some(name) = text("function_name") else { return };
                statistics.tool(name, number("duration_ms"), text("decision"));
            }
            None if text("gen_ai.operation.name") == Some("llm_call") => {
                // One that failed took nothing.
                let took = attributes.contains_key("gen_ai.usage.input_tokens");
                let model =
                    text("gen_ai.request.model").filter(|_| took && self.measured.traced.len() < MOST_TRACED);
                self.measured.traced.extend(model.map(|model| Traced {
                    model: model.to_owned(),
                    input: number("gen_ai.usage.input_tokens"),
                    output: number("gen_ai.usage.output_tokens"),
                }));
            }
            _ => {}
        }
    }
}

/// What people should know of an answer that ended for this reason, in the words of the API or of the telemetry.
pub(crate) fn warning(reason: &str) -> Option<String> {
    match reason.to_ascii_lowercase().as_str() {
        "stop" | "tool_calls" | "unspecified" | "finish_reason_unspecified" | "error" => None,
        // The telemetry calls the first a stop and the others errors; the CLI asks again after those.
        "other" | "malformed_function_call" | "unexpected_tool_call" => None,
        "length" | "max_tokens" => {
            Some("An answer was cut off at the limit of output tokens (MAX_TOKENS)".to_owned())
        }
        "content_filter" | "safety" | "recitation" | "language" | "blocklist" | "prohibited_content"
        | "spii" | "image_safety" => Some("An answer was cut off by a content filter (SAFETY)".to_owned()),
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
            read(&path).warnings,
            [
                "An answer was cut off at the limit of output tokens (MAX_TOKENS)",
                "An answer was cut off by a content filter (SAFETY)"
            ]
        );
        assert_eq!(read(&dir.path().join("none")), Measured::default());
    }

    #[test]
    fn calls_and_tools_are_counted_with_times_roles_and_decisions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telemetry");
        let event = |attributes: Value| {
            format!("{:#}\n", serde_json::json!({"hrTime": [1, 2], "attributes": attributes, "_body": "x"}))
        };
        let call = |role: &str| {
            event(serde_json::json!({
                "event.name": "gemini_cli.api_response", "model": "m", "duration_ms": 82, "role": role,
                "input_token_count": 100, "output_token_count": 10, "total_token_count": 110,
                "finish_reasons": ["stop"], "response_text": "}\n{ \"role\": \"x\" }",
            }))
        };
        let failed = event(serde_json::json!({
            "event.name": "gemini_cli.api_error", "model": "m", "duration_ms": 8, "role": "main", "error_type": "ApiError",
        }));
        let tool = event(serde_json::json!({
            "event.name": "gemini_cli.tool_call", "function_name": "glob", "duration_ms": 75.5, "decision": "accept",
        }));
        let other = event(serde_json::json!({"event.name": "gemini_cli.config", "model": "other"}));
        std::fs::write(&path, [call("main"), other, failed, call("utility_router"), tool].concat()).unwrap();
        let statistics = read(&path).statistics;
        let model = &statistics.models["m"];
        assert_eq!((model.all.requests, model.all.errors, model.all.latency_ms), (3, 1, 172));
        assert_eq!((model.roles["main"].requests, model.roles["main"].tokens.total), (2, 110));
        assert_eq!(model.errors_by_type["ApiError"], 1);
        assert_eq!(
            (statistics.tools["glob"].duration_ms, statistics.tools["glob"].decisions["accept"]),
            (75, 1)
        );
        assert_eq!(statistics.models.len(), 1);
    }
}
