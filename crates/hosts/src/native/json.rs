//! `json`: the one object at the end, on standard output also when the run failed.
//!
//! Alhena always runs the CLI with stream-json, so the statistics are put together from the events. What neither stream nor
//! session file carries (API latencies, roles, decisions) is left out, not made up.

use std::collections::BTreeMap;

use alhena_model::{Event, EventKind, Outcome};
use serde_json::{Map, Value, json};

use super::{error_message, error_type, exit_code};

/// Collects what the report counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonReport {
    tools: BTreeMap<String, Counts>,
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
        let mut report = Map::new();
        if let Some(session_id) = &outcome.session_id {
            report.insert("session_id".to_owned(), json!(session_id));
        }
        report.insert("response".to_owned(), json!(outcome.text.last()));
        report.insert("stats".to_owned(), self.stats(outcome));
        if let Some(failure) = &outcome.failure {
            let code = failure.http_status.map_or_else(|| exit_code(outcome).into(), u64::from);
            let error = json!({"type": error_type(failure), "message": error_message(failure), "code": code});
            report.insert("error".to_owned(), error);
        }
        if !outcome.warnings.is_empty() {
            report.insert("warnings".to_owned(), json!(outcome.warnings));
        }
        Value::Object(report)
    }

    /// The report as the CLI prints it: with two blanks, and without a newline at the end.
    pub fn print(&self, outcome: &Outcome) -> String {
        format!("{:#}", self.report(outcome))
    }

    fn stats(&self, outcome: &Outcome) -> Value {
        let models: Map<String, Value> = outcome
            .usage
            .models
            .iter()
            .map(|(name, tokens)| {
                let tokens = json!({
                    "input": tokens.prompt.saturating_sub(tokens.cached),
                    "prompt": tokens.prompt,
                    "candidates": tokens.output,
                    "total": tokens.total,
                    "cached": tokens.cached,
                    "thoughts": tokens.thoughts,
                    "tool": tokens.tool,
                });
                (name.clone(), json!({"tokens": tokens}))
            })
            .collect();
        let mut stats = json!({"models": models, "tools": self.tools(outcome)});
        if let (Value::Object(stats), Some(files)) = (&mut stats, files(outcome)) {
            stats.insert("files".to_owned(), files);
        }
        stats
    }

    fn tools(&self, outcome: &Outcome) -> Value {
        let sum = |count: fn(&Counts) -> u64| self.tools.values().map(count).sum::<u64>();
        let by_name: Map<String, Value> = self
            .tools
            .iter()
            .map(|(name, counts)| {
                let count = counts.success + counts.fail;
                (name.clone(), json!({"count": count, "success": counts.success, "fail": counts.fail}))
            })
            .collect();
        json!({
            "totalCalls": outcome.tool_calls,
            "totalSuccess": sum(|counts| counts.success),
            "totalFail": sum(|counts| counts.fail),
            "byName": by_name,
        })
    }
}

/// Lines added and removed, if the diff of every claimed write is known.
fn files(outcome: &Outcome) -> Option<Value> {
    let (mut added, mut removed) = (0u64, 0u64);
    for file in outcome.files.iter().filter(|file| file.claimed) {
        let mut in_hunk = false;
        for line in file.diff.as_deref()?.lines() {
            in_hunk |= line.starts_with("@@ ");
            added += u64::from(in_hunk && line.starts_with('+'));
            removed += u64::from(in_hunk && line.starts_with('-'));
        }
    }
    Some(json!({"totalLinesAdded": added, "totalLinesRemoved": removed}))
}
