//! `json`: the one object at the end, on standard output also when the run failed.
//!
//! Alhena always runs the CLI with stream-json, so the statistics are put together from the events. API latencies, roles
//! and decisions come from the CLI's telemetry; without that they are left out, not made up.

use std::collections::BTreeMap;

use alhena_model::{Calls, Event, EventKind, Outcome, Tokens, ToolRuns};
use serde_json::{Map, Value, json};

use super::{error_message, error_type, exit_code};
use crate::with;

/// Collects what the report counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonReport {
    tools: BTreeMap<String, Counts>,
    lines: Lines,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    success: u64,
    fail: u64,
}

/// So many tools are counted by name; a model can invent names without end.
const MOST_NAMES: usize = 1000;

impl JsonReport {
    /// An event of the run.
    pub fn event(&mut self, event: &Event) {
        if let EventKind::FileChange(change) = &event.kind
            && change.tool.is_some()
        {
            self.lines.count(change.diff.as_deref());
        }
        let EventKind::ToolResult { name, ok, error, .. } = &event.kind else { return };
        if self.tools.len() >= MOST_NAMES && !self.tools.contains_key(name) {
            return;
        }
        let counts = self.tools.entry(name.clone()).or_default();
        // A command that ran and failed is a success to the CLI: the tool did its work.
        if *ok || error.is_none() { counts.success += 1 } else { counts.fail += 1 }
    }

    /// The report.
    pub fn report(&self, outcome: &Outcome) -> Value {
        let error = outcome.failure.as_ref().map(|failure| {
            let code = failure.http_status.map_or_else(|| exit_code(outcome).into(), u64::from);
            json!({"type": error_type(failure), "message": error_message(failure), "code": code})
        });
        let report = [
            ("session_id", outcome.session_id.as_ref().map(|id| json!(id))),
            ("response", Some(json!(outcome.text.last()))),
            ("stats", Some(self.stats(outcome))),
            ("error", error),
            ("warnings", (!outcome.warnings.is_empty()).then(|| json!(outcome.warnings))),
        ];
        with(json!({}), report)
    }

    /// The report as the CLI prints it: with two blanks, and without a newline at the end.
    pub fn print(&self, outcome: &Outcome) -> String {
        format!("{:#}", self.report(outcome))
    }

    fn stats(&self, outcome: &Outcome) -> Value {
        let calls = outcome.statistics.as_ref().map(|statistics| &statistics.models);
        let models: Map<String, Value> = outcome
            .usage
            .models
            .iter()
            .map(|(name, tokens)| {
                let calls = calls.and_then(|calls| calls.get(name));
                let api =
                    calls.map(|calls| calls_of(&calls.all, ("errorsByType", json!(calls.errors_by_type))));
                let roles = calls.map(|calls| {
                    let role = |(role, calls): (&String, &Calls)| {
                        (role.clone(), calls_of(calls, ("tokens", tokens_of(&calls.tokens))))
                    };
                    Value::Object(calls.roles.iter().map(role).collect())
                });
                (name.clone(), with(json!({"tokens": tokens_of(tokens)}), [("api", api), ("roles", roles)]))
            })
            .collect();
        let stats = json!({"models": models, "tools": self.tools(outcome)});
        with(stats, [("files", self.lines.report())])
    }

    fn tools(&self, outcome: &Outcome) -> Value {
        let sum = |count: fn(&Counts) -> u64| self.tools.values().map(count).sum::<u64>();
        let runs = outcome.statistics.as_ref().map(|statistics| &statistics.tools);
        let by_name: Map<String, Value> = self
            .tools
            .iter()
            .map(|(name, counts)| {
                let count = counts.success + counts.fail;
                let tool = json!({"count": count, "success": counts.success, "fail": counts.fail});
                let run = runs.and_then(|runs| runs.get(name));
                let more = [
                    ("durationMs", run.map(|run| json!(run.duration_ms))),
                    ("decisions", run.map(|run| decisions(std::iter::once(run)))),
                ];
                (name.clone(), with(tool, more))
            })
            .collect();
        let tools = json!({
            "totalCalls": outcome.tool_calls,
            "totalSuccess": sum(|counts| counts.success),
            "totalFail": sum(|counts| counts.fail),
        });
        let duration =
            |runs: &BTreeMap<String, ToolRuns>| -> u64 { runs.values().map(|run| run.duration_ms).sum() };
        let more = [
            ("totalDurationMs", runs.map(|runs| json!(duration(runs)))),
            ("totalDecisions", runs.map(|runs| decisions(runs.values()))),
            ("byName", Some(Value::Object(by_name))),
        ];
        with(tools, more)
    }
}

fn tokens_of(tokens: &Tokens) -> Value {
    json!({
        "input": tokens.prompt.saturating_sub(tokens.cached),
        "prompt": tokens.prompt,
        "candidates": tokens.output,
        "total": tokens.total,
        "cached": tokens.cached,
        "thoughts": tokens.thoughts,
        "tool": tokens.tool,
    })
}

fn calls_of(calls: &Calls, (name, value): (&str, Value)) -> Value {
    let all = json!({
        "totalRequests": calls.requests,
        "totalErrors": calls.errors,
        "totalLatencyMs": calls.latency_ms,
    });
    with(all, [(name, Some(value))])
}

/// All four kinds are in the CLI's report, those that were never made too.
fn decisions<'a>(runs: impl Iterator<Item = &'a ToolRuns> + Clone) -> Value {
    let count = |kind: &str| -> u64 { runs.clone().filter_map(|run| run.decisions.get(kind)).sum() };
    json!({
        "accept": count("accept"),
        "reject": count("reject"),
        "modify": count("modify"),
        "auto_accept": count("auto_accept"),
    })
}

/// Lines added and removed: each edit counts, as for the CLI, also one that a later edit takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    added: u64,
    removed: u64,
    /// There was a write whose diff is not known, so that nothing can be said.
    unknown: bool,
}

impl Lines {
    fn count(&mut self, diff: Option<&str>) {
        let Some(diff) = diff else {
            self.unknown = true;
            return;
        };
        let mut in_hunk = false;
        for line in diff.lines() {
            in_hunk |= line.starts_with("@@ ");
            self.added += u64::from(in_hunk && line.starts_with('+'));
            self.removed += u64::from(in_hunk && line.starts_with('-'));
        }
    }

    fn report(&self) -> Option<Value> {
        (!self.unknown).then(|| json!({"totalLinesAdded": self.added, "totalLinesRemoved": self.removed}))
    }
}
