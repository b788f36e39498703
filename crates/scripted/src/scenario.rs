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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The answers, in order. A request gets the first that is not used up and whose `when` matches.
    pub turns: Vec<Turn>,
    /// What happens when no turn is left.
    pub after: After,
    /// Answers to `generateContent`: rules, of which the first that matches is used, every time. A request that
    /// none matches gets the smallest answer that its schema allows.
    pub generate: Vec<Turn>,
    /// Where the schema of scenario files is; for editors.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    #[serde(skip)]
    pub(crate) responder: Option<Answers>,
}

/// What happens when no turn is left for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
            match path.as_str() {
                // What is no JSON at all has no place in it.
                "." | "?" => ScenarioError::new("", error.inner()),
                _ => ScenarioError::new(&path, error.inner()),
            }
        })?;
        json.end().map_err(|error| ScenarioError::new("", &error))?;
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
pub struct ScenarioError {
    what: String,
    line: usize,
    column: usize,
    suggestion: Option<String>,
}

impl ScenarioError {
    fn new(path: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let said = error.to_string();
        let what = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
        let suggestion = suggestion(what);
        let what = if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") };
        ScenarioError { what, line, column, suggestion }
    }

    /// What is wrong, without the place in the file.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The line of the file, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in that line, from 1; 0 where a line is missing.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The word that was probably meant, for one that is not known.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

/// What a misspelled name was meant to be, out of the names that the message lists.
fn suggestion(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field ").or_else(|| message.strip_prefix("unknown variant "))?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    let distance = |name: &str| strsim::damerau_levenshtein(wrong, name);
    let nearest = quoted.min_by_key(|name| distance(name))?;
    // A third of the letters may be wrong: a longer way off is another word.
    (distance(nearest) <= wrong.chars().count().div_ceil(3)).then(|| nearest.to_owned())
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a scenario: {} at line {} column {}", self.what, self.line, self.column)?;
        match &self.suggestion {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}
