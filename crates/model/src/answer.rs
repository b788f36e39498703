//! Answers that have to fit a JSON schema: the schema and its check, the outcome of one, and the JSON in a text.
//!
//! Bounded in what it does with any text: answers come from a model.

mod find;
mod schema;
mod wrap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::find::{last_json, last_structure};
pub use self::schema::{BadSchema, DEEPEST, Schema};
pub use self::wrap::RESULT;
use crate::event::ToolError;
use crate::failure::{Failure, FailureKind};

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// It fits.
    Valid {
        /// The answer.
        data: Value,
    },
    /// There was none that fits.
    Invalid {
        /// The last one, if the model gave any.
        answer: Option<String>,
        /// What was wrong with it, each with its path.
        errors: Vec<String>,
        /// How often the model tried.
        tries: u32,
    },
}

/// The tool that takes an answer, behind the name of its server.
pub const TOOL: &str = "submit_result";
/// Why the run ends when the tool has taken a valid one. Gemini CLI tells a hook's reason as the tool's error (0.61.0).
pub const TAKEN: &str = "The answer was taken.";

/// Why the run ends when the model may not try again. The failure says more.
pub const NONE_VALID: &str = "There was no valid answer.";

/// Whether the error of a tool only says that it took an answer.
pub(crate) fn is_taken(tool: &str, error: &ToolError) -> bool {
    tool.ends_with(TOOL) && error.kind == "stop_execution" && error.message == TAKEN
}

/// Why there is no valid answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub answer: Option<String>,
    pub errors: Vec<String>,
    pub tries: u32,
}

impl Unfit {
    /// The failure. A model that goes in a loop is stopped by the CLI, which calls that a success (0.61.0): then the loop is why.
    pub(crate) fn failure(&self, looped: bool) -> Failure {
        let tries = if self.tries == 1 { "1 try".to_owned() } else { format!("{} tries", self.tries) };
        let first = self.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let more = if self.errors.len() > 1 {
            format!(" (and {} more)", self.errors.len() - 1)
        } else {
            String::new()
        };
        let mut failure = match looped {
            true => Failure::new(
                FailureKind::Schema,
                format!("The model went in a loop, which Gemini CLI stopped before there was an answer that fits the schema ({tries})"),
            )
            .with_hint("Say in the prompt what is wanted and when it is enough, or use another model (`model`)."),
            false => Failure::new(
                FailureKind::Schema,
                format!("The model gave no answer that fits the schema, in {tries}{first}{more}"),
            ),
        };
        failure.errors.clone_from(&self.errors);
        failure.answer.clone_from(&self.answer);
        failure
    }
}
