//! What Gemini CLI measured while it ran: calls of models by role with their times, and tools with times and decisions.
//!
//! No stream and no session file has these (0.61.0); its telemetry does. They are absent where there is none, but for turns over ACP,
//! of which enough is seen to say most of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::usage::Tokens;

/// Measured by the CLI itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Statistics {
    /// Calls of the API, by model.
    pub models: BTreeMap<String, ModelCalls>,
    /// Tools that ran, by name.
    pub tools: BTreeMap<String, ToolRuns>,
}

/// Calls of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ModelCalls {
    /// All of them.
    #[serde(flatten)]
    pub all: Calls,
    /// How often each kind of error came.
    pub errors_by_type: BTreeMap<String, u64>,
    /// What they were for: `main`, `utility_router`, `subagent` and others.
    pub roles: BTreeMap<String, Calls>,
}

/// How many calls, how long they took, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Calls {
    /// How many, failed ones included.
    pub requests: u64,
    /// How many failed.
    pub errors: u64,
    /// How long they took together.
    pub latency_ms: u64,
    /// Tokens of those that were answered.
    pub tokens: Tokens,
}

/// Runs of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolRuns {
    /// How long they took together.
    pub duration_ms: u64,
    /// How often each decision was made on it: `accept`, `reject`, `modify`, `auto_accept`.
    pub decisions: BTreeMap<String, u64>,
}

/// So many names of each kind are kept; a model can invent names without end.
const MOST_NAMES: usize = 1000;

impl Statistics {
    /// One call of a model: how it was answered, or the kind of error that came instead.
    pub fn call(&mut self, model: &str, role: Option<&str>, latency_ms: u64, answer: Result<Tokens, &str>) {
        let Some(model) = entry(&mut self.models, model) else { return };
        let role = role.and_then(|role| entry(&mut model.roles, role));
        for calls in std::iter::once(&mut model.all).chain(role) {
            calls.requests += 1;
            calls.latency_ms = calls.latency_ms.saturating_add(latency_ms);
            match &answer {
                Ok(tokens) => calls.tokens.add(tokens),
                Err(_) => calls.errors += 1,
            }
        }
        if let Some(count) = answer.err().and_then(|kind| entry(&mut model.errors_by_type, kind)) {
            *count += 1;
        }
    }

    /// One run of a tool.
    pub fn tool(&mut self, name: &str, duration_ms: u64, decision: Option<&str>) {
        let Some(tool) = entry(&mut self.tools, name) else { return };
        tool.duration_ms = tool.duration_ms.saturating_add(duration_ms);
        if let Some(count) = decision.and_then(|decision| entry(&mut tool.decisions, decision)) {
            *count += 1;
        }
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.models.is_empty() && self.tools.is_empty()
    }
}

fn entry<'a, T: Default>(map: &'a mut BTreeMap<String, T>, name: &str) -> Option<&'a mut T> {
    if !map.contains_key(name) {
        if map.len() >= MOST_NAMES {
            return None;
        }
        map.insert(name.to_owned(), T::default());
    }
    map.get_mut(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_by_model_and_role_and_errors_by_kind() {
        let mut statistics = Statistics::default();
        let tokens = Tokens { prompt: 10, total: 12, output: 2, ..Tokens::default() };
        statistics.call("m", Some("main"), 5, Ok(tokens));
        statistics.call("m", Some("main"), 7, Err("ApiError"));
        statistics.call("m", Some("utility_router"), 1, Ok(tokens));
        let model = &statistics.models["m"];
        assert_eq!((model.all.requests, model.all.errors, model.all.latency_ms), (3, 1, 13));
        assert_eq!(model.all.tokens.prompt, 20);
        assert_eq!(model.roles["main"], Calls { requests: 2, errors: 1, latency_ms: 12, tokens });
        assert_eq!(model.errors_by_type["ApiError"], 1);
    }

    #[test]
    fn names_without_end_take_no_memory_without_end() {
        let mut statistics = Statistics::default();
        for number in 0..5000 {
            statistics.tool(&format!("tool-{number}"), 1, None);
        }
        assert_eq!(statistics.tools.len(), MOST_NAMES);
    }
}
