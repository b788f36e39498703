//! One line of the results: how a job ended, and what the journal needs to know it again.

use std::sync::Arc;

use alhena_model::{FailureKind, Outcome, Status, Timestamp, Usage};
use alhena_wire::display::{is_unsafe_in_text, push_escaped};
use serde::{Deserialize, Serialize};

use crate::outputs::OutputFile;

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobResult {
    /// The job's id; its line's number where it has none.
    pub id: String,
    /// How often it was tried, this time included; 0 when it could not be read as a job.
    pub attempt: u32,
    /// How the last attempt ended.
    pub outcome: Arc<Outcome>,
    /// What it changed in a place of its own, to be applied with `git apply`; empty when it changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The files that the job names in `outputs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputFile>,
    /// The commit that it worked on, for a job with `git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The worker that did it, by its name, where that was another program's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The attempts before, that did not succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Earlier>,
    /// A mark of all that the job said: another one makes it another job.
    pub job: String,
    /// When it was over.
    pub at: Timestamp,
}

/// An attempt that was followed by another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Earlier {
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Tokens that it used.
    pub tokens: u64,
    /// What it cost in US dollars, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it took.
    pub duration_ms: u64,
}

impl Earlier {
    /// What is kept of an attempt.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            status: outcome.status,
            kind: outcome.failure.as_ref().map(|failure| failure.kind),
            message: outcome.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default(),
            tokens: outcome.usage.all.total,
            cost_usd: outcome.cost_usd,
            duration_ms: outcome.duration_ms,
        }
    }
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens, all together.
    pub tokens: u64,
    /// US dollars, as far as they are known.
    pub cost_usd: f64,
    /// Whether something was used whose price is not known.
    pub unpriced: bool,
}

impl Spent {
    /// What an attempt used.
    pub fn of(tokens: u64, cost_usd: Option<f64>) -> Self {
        Self { tokens, cost_usd: cost_usd.unwrap_or(0.0), unpriced: cost_usd.is_none() && tokens > 0 }
    }

    /// Adds what an event says was used.
    pub fn hear(&mut self, usage: &Usage) {
        self.add(Spent::of(usage.all.total, usage.cost_usd));
    }

    /// Adds what another used.
    pub fn add(&mut self, other: Spent) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost_usd += other.cost_usd;
        self.unpriced |= other.unpriced;
    }
}

impl JobResult {
    /// Returns the result of the job with this id and mark that has nothing but its outcome.
    pub fn new(id: impl Into<String>, job: impl Into<String>, outcome: Arc<Outcome>) -> Self {
        Self {
            id: id.into(),
            attempt: 0,
            outcome,
            patch: None,
            outputs: Vec::new(),
            commit: None,
            worker: None,
            earlier: Vec::new(),
            job: job.into(),
            at: Timestamp::now(),
        }
    }

    /// What all attempts used together.
    pub fn spent(&self) -> Spent {
        let mut spent = Spent::of(self.outcome.usage.all.total, self.outcome.cost_usd);
        for earlier in &self.earlier {
            spent.add(Spent::of(earlier.tokens, earlier.cost_usd));
        }
        spent
    }

    /// One line, with its end. What a terminal would obey is written as JSON has it for such characters.
    pub fn line(&self) -> serde_json::Result<String> {
        let mut line = harmless_json(serde_json::to_string(self)?);
        line.push('\n');
        Ok(line)
    }
}

/// JSON with everything that a terminal would obey written as JSON has it for such characters.
pub fn harmless_json(text: String) -> String {
    if text.is_ascii() && !text.contains('\u{7f}') {
        return text;
    }
    let mut line = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        match is_unsafe_in_text(character) {
            true => push_escaped(character, &mut line),
            false => line.push(character),
        }
    }
    line
}
