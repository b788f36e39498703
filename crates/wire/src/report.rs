//! The object of `--output-format json`, also among noise and on stderr.
//!
//! On success the CLI prints one pretty object on stdout without a final newline; on a fatal error stdout is empty and the
//! object stands at the end of stderr, after stack traces, and for turn limit and cancel twice, the second time behind
//! `[ERROR] ` (0.61). So it has to be looked for. Of its statistics only those are decoded that no other source has.

use std::borrow::Cow;

use crate::{Count, Named, Raw};

mod find;

pub use find::{FoundReport, find_error_report, find_report};

wire_object! {
    /// The whole report. Every field is optional: a fatal error has no `response` and no `stats`.
    #[derive(Default)]
    pub struct Report<'a> {
        /// Upstream: the session's id (since 0.21).
        "session_id" session_id: Option<Cow<'a, str>>,
        /// Upstream: the text of the last turn only; what was said before a tool call is lost.
        "response" response: Option<Cow<'a, str>>,
        /// Upstream: what the process counted.
        "stats" stats: Option<SessionMetrics<'a>>,
        /// Upstream: why it failed.
        "error" error: Option<ReportError<'a>>,
        /// Upstream: loops, turn limits, hooks that blocked or stopped (since 0.42).
        "warnings" warnings: Option<Vec<Cow<'a, str>>>,
    }
}

wire_object! {
    /// The `error` of a report.
    #[derive(Default)]
    pub struct ReportError<'a> {
        /// Upstream: a class name such as `FatalTurnLimitedError`, `INVALID_STREAM`, or `Error` for every error of the API.
        "type" kind: Option<Cow<'a, str>>,
        /// Upstream: a text for people.
        "message" message: Option<Cow<'a, str>>,
        /// Upstream: an exit code, an HTTP status or a word.
        "code" code: Option<Raw<'a>>,
    }
}

wire_object! {
    /// The `stats` of a report (`SessionMetrics` upstream).
    #[derive(Default)]
    pub struct SessionMetrics<'a> {
        /// Upstream: per model that was really used.
        "models" models: Option<Named<'a, ModelMetrics>>,
        /// Upstream: what the tools did.
        "tools" tools: Option<ToolMetrics>,
    }
}

wire_object! {
    /// One entry of `stats.models`.
    #[derive(Default)]
    pub struct ModelMetrics {
        /// Upstream: the requests.
        "api" api: Option<ApiMetrics>,
        /// Upstream: the tokens.
        "tokens" tokens: Option<TokenMetrics>,
    }
}

wire_object! {
    /// `api` of a model.
    #[derive(Default)]
    pub struct ApiMetrics {
        /// Upstream: how many requests were made.
        "totalRequests" total_requests: Option<Count>,
    }
}

wire_object! {
    /// `tokens` of a model.
    #[derive(Default)]
    pub struct TokenMetrics {
        /// Upstream: `prompt` minus `cached` (since 0.22).
        "input" input: Option<Count>,
        /// Upstream: tokens of the prompts, cached ones included.
        "prompt" prompt: Option<Count>,
        /// Upstream: tokens of the answers, without thoughts.
        "candidates" candidates: Option<Count>,
        /// Upstream: all of them.
        "total" total: Option<Count>,
        /// Upstream: tokens of the prompts that came from the cache.
        "cached" cached: Option<Count>,
        /// Upstream: tokens of thoughts.
        "thoughts" thoughts: Option<Count>,
        /// Upstream: tokens of tool use prompts.
        "tool" tool: Option<Count>,
    }
}

wire_object! {
    /// `tools` of the metrics.
    #[derive(Default)]
    pub struct ToolMetrics {
        /// Upstream: how many tools were called.
        "totalCalls" total_calls: Option<Count>,
    }
}

impl ReportError<'_> {
    /// `code` if it is a number: an exit code, or an HTTP status.
    pub fn code_number(&self) -> Option<i64> {
        self.code.as_ref().and_then(|code| code.decode().ok())
    }
}
