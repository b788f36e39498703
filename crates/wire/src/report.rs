//! The object of `--output-format json`, also among noise and on stderr.
//!
//! On success the CLI prints one pretty object on stdout without a final newline; on a fatal error stdout is empty and the
//! object stands at the end of stderr, after stack traces, and for turn limit and cancel twice, the second time behind
//! `[ERROR] ` (0.61). So it has to be looked for.

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
        "models" models: Option<Named<'a, ModelMetrics<'a>>>,
        /// Upstream: what the tools did.
        "tools" tools: Option<ToolMetrics<'a>>,
        /// Upstream: what was edited.
        "files" files: Option<FileMetrics>,
    }
}

wire_object! {
    /// One entry of `stats.models`.
    #[derive(Default)]
    pub struct ModelMetrics<'a> {
        /// Upstream: the requests.
        "api" api: Option<ApiMetrics<'a>>,
        /// Upstream: the tokens.
        "tokens" tokens: Option<TokenMetrics>,
        /// Upstream: the same by what the model was used for, such as `main` or `utility_router` (since 0.30).
        "roles" roles: Option<Named<'a, RoleMetrics<'a>>>,
    }
}

wire_object! {
    /// `api` of a model.
    #[derive(Default)]
    pub struct ApiMetrics<'a> {
        /// Upstream: how many requests were made.
        "totalRequests" total_requests: Option<Count>,
        /// Upstream: how many of them failed.
        "totalErrors" total_errors: Option<Count>,
        /// Upstream: their time together.
        "totalLatencyMs" total_latency_ms: Option<Count>,
        /// Upstream: how many failed with which error (since 0.55).
        "errorsByType" errors_by_type: Option<Named<'a, Count>>,
    }
}

wire_object! {
    /// `tokens` of a model or a role.
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
    /// One entry of `roles`.
    #[derive(Default)]
    pub struct RoleMetrics<'a> {
        /// Upstream: how many requests were made.
        "totalRequests" total_requests: Option<Count>,
        /// Upstream: how many of them failed.
        "totalErrors" total_errors: Option<Count>,
        /// Upstream: their time together.
        "totalLatencyMs" total_latency_ms: Option<Count>,
        /// Upstream: how many failed with which error (since 0.55).
        "errorsByType" errors_by_type: Option<Named<'a, Count>>,
        /// Upstream: the tokens.
        "tokens" tokens: Option<TokenMetrics>,
    }
}

wire_object! {
    /// `tools` of the metrics.
    #[derive(Default)]
    pub struct ToolMetrics<'a> {
        /// Upstream: how many tools were called.
        "totalCalls" total_calls: Option<Count>,
        /// Upstream: how many of them worked.
        "totalSuccess" total_success: Option<Count>,
        /// Upstream: how many failed.
        "totalFail" total_fail: Option<Count>,
        /// Upstream: their time together.
        "totalDurationMs" total_duration_ms: Option<Count>,
        /// Upstream: how they were approved.
        "totalDecisions" total_decisions: Option<Decisions>,
        /// Upstream: the same per tool.
        "byName" by_name: Option<Named<'a, ToolMetric>>,
    }
}

wire_object! {
    /// One entry of `byName`.
    #[derive(Default)]
    pub struct ToolMetric {
        /// Upstream: how often it was called.
        "count" count: Option<Count>,
        /// Upstream: how often it worked.
        "success" success: Option<Count>,
        /// Upstream: how often it failed.
        "fail" fail: Option<Count>,
        /// Upstream: its time together.
        "durationMs" duration_ms: Option<Count>,
        /// Upstream: how its calls were approved.
        "decisions" decisions: Option<Decisions>,
    }
}

wire_object! {
    /// How tool calls were approved.
    #[derive(Default)]
    pub struct Decisions {
        /// Upstream: allowed by a person.
        "accept" accept: Option<Count>,
        /// Upstream: refused by a person.
        "reject" reject: Option<Count>,
        /// Upstream: changed by a person.
        "modify" modify: Option<Count>,
        /// Upstream: allowed by the approval mode or a policy.
        "auto_accept" auto_accept: Option<Count>,
    }
}

wire_object! {
    /// `files` of the metrics.
    #[derive(Default)]
    pub struct FileMetrics {
        /// Upstream: lines added by edits.
        "totalLinesAdded" total_lines_added: Option<Count>,
        /// Upstream: lines removed by edits.
        "totalLinesRemoved" total_lines_removed: Option<Count>,
    }
}

impl ReportError<'_> {
    /// `code` if it is a number: an exit code, or an HTTP status.
    pub fn code_number(&self) -> Option<i64> {
        self.code.as_ref().and_then(|code| code.decode().ok())
    }

    /// `code` if it is a word, such as `ECONNREFUSED`.
    pub fn code_word(&self) -> Option<String> {
        self.code.as_ref().and_then(|code| code.decode().ok())
    }
}
