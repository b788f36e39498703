//! A scenario: what the model answers to a whole run.
//!
//! Gemini CLI asks for answers by `streamGenerateContent`. By `generateContent` it asks side questions (which model
//! to use, who speaks next, a summary); those never take a turn of the scenario.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::{RecordedRequest, Turn};

/// What the model answers to a run, in turns.
///
/// ```
/// use alhena_scripted::{Scenario, Turn};
/// use serde_json::json;
///
/// let built = Scenario::new()
///     .turn(Turn::new().call("read_file", json!({"file_path": "a.txt"})))
///     .turn(Turn::say("It is empty."));
/// let read = Scenario::from_json(r#"{"turns": [
///     {"steps": [{"call": {"name": "read_file", "args": {"file_path": "a.txt"}}}]},
///     {"steps": [{"text": "It is empty."}]}
/// ]}"#)?;
/// assert_eq!(built.turns, read.turns);
/// # Ok::<(), alhena_scripted::ScenarioError>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The answers, in order. A request gets the first that is not used up and whose `when` matches.
    pub turns: Vec<Turn>,
    /// What happens when no turn is left.
    pub after: After,
    /// Answers to `generateContent`: rules, of which the first that matches is used, every time. A request that
    /// none matches gets the smallest answer that its schema allows.
    pub generate: Vec<Turn>,
    #[serde(skip)]
    pub(crate) responder: Option<Answers>,
}

/// What happens when no turn is left for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// The model says `done.` and stops.
    #[default]
    Stop,
    /// The last turn that matches is played again; one with a `when` goes before one without.
    Repeat,
    /// HTTP 400, with a message that says which request was not expected.
    Error,
}

/// Makes up answers while a run goes on.
///
/// Any `Fn(&RecordedRequest) -> Turn` is one. It is called on the connection's thread and should not block.
pub trait Responder: Send + Sync {
    /// The answer to a `streamGenerateContent`.
    fn respond(&self, request: &RecordedRequest) -> Turn;
}

impl<F: Fn(&RecordedRequest) -> Turn + Send + Sync> Responder for F {
    fn respond(&self, request: &RecordedRequest) -> Turn {
        self(request)
    }
}

#[derive(Clone)]
pub(crate) struct Answers(pub(crate) Arc<dyn Responder>);

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

impl Scenario {
    /// A scenario without turns.
    pub fn new() -> Self {
        Scenario::default()
    }

    /// A scenario whose answers are made up while it runs.
    pub fn dynamic(responder: impl Responder + 'static) -> Self {
        Scenario { responder: Some(Answers(Arc::new(responder))), ..Scenario::default() }
    }

    /// Reads a scenario file.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let scenario: Scenario = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            ScenarioError(match path.as_str() {
                // What is no JSON at all has no place in it.
                "." | "?" => error.into_inner().to_string(),
                _ => format!("{path}: {}", error.into_inner()),
            })
        })?;
        json.end().map_err(|error| ScenarioError(error.to_string()))?;
        Ok(scenario)
    }

    /// Adds a turn.
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Says what happens when no turn is left.
    pub fn after(mut self, after: After) -> Self {
        self.after = after;
        self
    }

    /// Adds a rule for `generateContent`.
    pub fn generate(mut self, rule: Turn) -> Self {
        self.generate.push(rule);
        self
    }
}

/// What is wrong with a scenario file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError(String);

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a scenario: {}", self.0)
    }
}

impl std::error::Error for ScenarioError {}
