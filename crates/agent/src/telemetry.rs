//! Finish reasons and measurements, from the CLI's own telemetry.
//!
//! An answer that was cut off by the token limit or by a filter after some text is a plain success in every output of
//! 0.61.0. Where its answers cannot be recorded, only its telemetry names the finish reason; it also has the times of calls and
//! tools. The file is a row of pretty-printed JSON objects, most of them large and of no use here, so it is read by lines and
//! not parsed as a whole.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use alhena_model::judge::finish;
use alhena_model::{Fact, Statistics, Tokens};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::release::Version;
use serde_json::Value;

use crate::env::{self, Environment};
use crate::finish::Finishes;
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

/// The first release that traces model calls.
const TRACES_SINCE: Version = Version::new(0, 44, 0);

/// Lets it trace model calls, where it can: traces are written at once, while events are kept back.
pub(crate) fn trace(version: &Version, environment: &mut Environment) {
    if *version < TRACES_SINCE {
        return;
    }
    environment.set(env::GEMINI_TELEMETRY_TRACES_ENABLED, "true");
    if environment.get(env::OTEL_BSP_SCHEDULE_DELAY).is_none() {
        environment.set(env::OTEL_BSP_SCHEDULE_DELAY, "0");
    }
}

/// Whether telemetry goes to the files of the run.
pub(crate) fn is_ours(run_dir: &Path, environment: &Environment) -> bool {
    environment.get(env::GEMINI_TELEMETRY_OUTFILE) == Some(run_dir.join(FILE).as_os_str())
}

/// Returns where model calls are traced, if that is among the files of the run.
pub(crate) fn traces(run_dir: &Path, environment: &Environment) -> Option<PathBuf> {
    let ours = is_ours(run_dir, environment);
    (ours && environment.is_true(env::GEMINI_TELEMETRY_TRACES_ENABLED)).then(|| run_dir.join(FILE))
}

/// What the telemetry says that nothing else does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub finishes: Finishes,
    pub statistics: Statistics,
    /// The calls beside the conversation, the router's for example.
    pub aside: Vec<Fact>,
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
    pub(crate) fn late_warnings(&mut self) -> Vec<String> {
        self.read();
        self.reader.measured.finishes.take_late()
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
    /// The last of the finish reasons of the event at hand: that of the answer.
    reason: Option<String>,
    /// Inside the list of finish reasons.
    in_reasons: bool,
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
            if self.in_reasons {
                self.reason = Some(String::from_utf8_lossy(reason).trim_end_matches(['"', ',']).to_owned());
            }
        } else if let Some(line) = line.strip_prefix(b"    \"") {
            self.attribute(line);
        } else if line.starts_with(b"    ]") {
            self.in_reasons = false;
        }
    }

    fn attribute(&mut self, line: &[u8]) {
        if line.starts_with(b"finish_reasons\": [") {
            self.in_reasons = true;
            return;
        }
        let known = ATTRIBUTES.iter().find_map(|name| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b"\": ")?;
            Some((*name, value.strip_suffix(b",").unwrap_or(value)))
        });
        if let Some((name, value)) = known
            && let Ok(value) = alhena_wire::from_slice(value)
        {
            self.attributes.insert(name, value);
        }
    }

    /// The end of an object of the outermost level.
    fn event(&mut self) {
        self.in_reasons = false;
        let reason = self.reason.take();
        let attributes = std::mem::take(&mut self.attributes);
        let text = |name| attributes.get(name).and_then(Value::as_str);
        // Times are fractions in some events.
        let number = |name| attributes.get(name).and_then(Value::as_f64).unwrap_or(0.0).max(0.0) as u64;
        let statistics = &mut self.measured.statistics;
        match text("event.name") {
            Some("gemini_cli.api_response") => {
                let reason = reason.as_deref().and_then(word_of_api);
                let is_aside = text("role").is_some_and(|role| role.starts_with("utility_"));
                match is_aside {
                    true => self.measured.finishes.aside(reason),
                    false if reason.is_none() => self.measured.finishes.unknown(),
                    false => self.measured.finishes.answer(reason.map(str::to_owned)),
                }
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
                if is_aside && self.measured.aside.len() < MOST_TRACED {
                    self.measured.aside.push(Fact::UsageAside { model: model.to_owned(), tokens });
                }
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

/// The API's word for a finish reason of the telemetry, which has fewer (0.61.0): `stop` is `OTHER` too, and all filters are
/// one. None for errors, after which the CLI asks again or fails.
fn word_of_api(reason: &str) -> Option<&'static str> {
    match reason {
        "stop" | "tool_calls" => Some("STOP"),
        "length" => Some("MAX_TOKENS"),
        "content_filter" => Some(finish::CONTENT_FILTER),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finish_reason_is_that_of_the_last_answer_in_the_conversation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telemetry");
        let answer = |role: &str, reasons: &[&str]| {
            let attributes = serde_json::json!({
                "event.name": "gemini_cli.api_response", "model": "m", "role": role, "finish_reasons": reasons,
            });
            format!("{:#}\n", serde_json::json!({"attributes": attributes}))
        };
        let text = [
            answer("main", &["stop", "length"]),
            answer("subagent", &["stop", "stop"]),
            answer("main", &["stop", "content_filter"]),
            answer("utility_router", &["length"]),
        ]
        .concat();
        std::fs::write(&path, "x".repeat(300_000) + "\n" + &text).unwrap();
        let (last, warnings) = read(&path).finishes.take();
        assert_eq!(last, Some(Some("CONTENT_FILTER".to_owned())));
        assert_eq!(warnings, ["An answer was cut off at the limit of output tokens (MAX_TOKENS)"]);
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
