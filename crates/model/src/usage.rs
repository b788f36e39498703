//! Tokens, in one shape for all sources.
//!
//! Gemini CLI 0.61.0 counts in four shapes: `input_tokens` of a stream includes cached tokens, its `output_tokens`
//! leaves thoughts out, its session files call the prompt `input` and its json report has both `prompt` and `input`.

use std::collections::BTreeMap;

use alhena_wire::Count;
use alhena_wire::report::TokenMetrics;
use alhena_wire::stream::{ModelStats, StreamStats};
use serde::{Deserialize, Serialize};

/// Token counts of one model, or of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tokens {
    /// Tokens sent, cached ones included.
    pub prompt: u64,
    /// Those of `prompt` that came from the cache.
    pub cached: u64,
    /// Tokens of the answer, without thoughts.
    pub output: u64,
    /// Tokens of thoughts. The stream leaves them out; there it is what `total` has left over (derived).
    pub thoughts: u64,
    /// Tokens of tool prompts.
    pub tool: u64,
    /// All together, as the API counted.
    pub total: u64,
}

impl Tokens {
    pub(crate) fn add(&mut self, other: &Tokens) {
        self.prompt = self.prompt.saturating_add(other.prompt);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.thoughts = self.thoughts.saturating_add(other.thoughts);
        self.tool = self.tool.saturating_add(other.tool);
        self.total = self.total.saturating_add(other.total);
    }

    /// What is left of these when others are taken away.
    pub(crate) fn without(&self, other: &Tokens) -> Tokens {
        Tokens {
            prompt: self.prompt.saturating_sub(other.prompt),
            cached: self.cached.saturating_sub(other.cached),
            output: self.output.saturating_sub(other.output),
            thoughts: self.thoughts.saturating_sub(other.thoughts),
            tool: self.tool.saturating_sub(other.tool),
            total: self.total.saturating_sub(other.total),
        }
    }

    fn from_stream(
        prompt: Option<Count>,
        cached: Option<Count>,
        output: Option<Count>,
        total: Option<Count>,
    ) -> Self {
        let (prompt, output) = (count(prompt), count(output));
        let total = total.map_or(prompt.saturating_add(output), Count::get);
        let thoughts = total.saturating_sub(prompt).saturating_sub(output);
        Self { prompt, cached: count(cached), output, thoughts, tool: 0, total }
    }
}

impl From<&ModelStats> for Tokens {
    fn from(stats: &ModelStats) -> Self {
        Self::from_stream(stats.input_tokens, stats.cached, stats.output_tokens, stats.total_tokens)
    }
}

impl From<&TokenMetrics> for Tokens {
    fn from(tokens: &TokenMetrics) -> Self {
        Self {
            prompt: count(tokens.prompt.or(tokens.input)),
            cached: count(tokens.cached),
            output: count(tokens.candidates),
            thoughts: count(tokens.thoughts),
            tool: count(tokens.tool),
            total: count(tokens.total),
        }
    }
}

fn count(count: Option<Count>) -> u64 {
    count.map_or(0, Count::get)
}

/// What a run used, in all and by model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// The sum over all models.
    #[serde(flatten)]
    pub all: Tokens,
    /// The same six figures by the model's name.
    #[serde(default)]
    pub models: BTreeMap<String, Tokens>,
    /// What it cost in US dollars, where that is known: every model has a price, and somebody computed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Adds tokens of one model.
    pub fn add(&mut self, model: &str, tokens: &Tokens) {
        self.models.entry(model.to_owned()).or_default().add(tokens);
        self.all.add(tokens);
    }

    /// The sum of the models given.
    pub fn of_models<'a>(models: impl IntoIterator<Item = (&'a str, Tokens)>) -> Self {
        let mut usage = Usage::default();
        for (name, tokens) in models {
            usage.add(name, &tokens);
        }
        usage
    }
}

impl From<&StreamStats<'_>> for Usage {
    fn from(stats: &StreamStats<'_>) -> Self {
        let models = stats.models.iter().flat_map(|models| models.iter());
        let models = models.map(|(name, model)| (name.to_owned(), Tokens::from(model))).collect();
        let all =
            Tokens::from_stream(stats.input_tokens, stats.cached, stats.output_tokens, stats.total_tokens);
        Usage { all, models, cost_usd: None }
    }
}
