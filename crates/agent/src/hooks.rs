//! Programs that decide while Gemini CLI works: before a tool runs, after it ran, before the model is asked.
//!
//! The CLI runs a command for each such moment. Ours is `alhena hook`, which carries the question to this process over a
//! socket that only the user can reach, and the decision back. The CLI lets everything through when a hook fails, takes too
//! long, or is killed (0.61.0). So the command denies before it asks (`occasion`), the time limit is kept here, long before the
//! CLI's, and whatever ran without a decision stops the run (`decisions`).
//!
//! Over ACP it runs no hook around a tool: before one it is made to ask (`acp::hooks`), behind one we look before the next model
//! call (`behind`).

mod behind;
mod command;
mod decisions;
mod occasion;
mod relay;
mod server;
mod settings;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use alhena_model::hook::UNDECIDED;
pub use alhena_model::options::Moment;
use serde_json::{Map, Value, json};

pub(crate) use self::behind::Behind;
pub(crate) use self::decisions::{Audit, Decisions};
pub(crate) use self::occasion::Occasion;
pub use self::relay::relay;
pub(crate) use self::server::{Deciders, Server, within};
pub(crate) use self::settings::{FAILED, PROGRAM, SOCKET, add_to, switched_off};

/// What is to be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// When.
    pub moment: Moment,
    /// All that the CLI says of it: `tool_name`, `tool_input`, `tool_response`, `llm_request`, `session_id` and more.
    pub told: Map<String, Value>,
}

impl Asked {
    /// The CLI's name of the tool; empty before a model call.
    pub fn tool(&self) -> &str {
        self.told.get("tool_name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The tool's arguments; null before a model call.
    pub fn input(&self) -> &Value {
        self.told.get("tool_input").unwrap_or(&Value::Null)
    }
}

/// What somebody decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It goes on.
    Allow {
        /// Other arguments for the tool, in the place of all of its own; only before a tool.
        input: Option<Map<String, Value>>,
        /// What the model is told beside the tool's result, or beside all else in this one call; not before a tool.
        context: Option<String>,
    },
    /// The tool does not run, its result is not shown, or the model is not asked; the model is told why.
    Deny(String),
    /// Everything ends here.
    Stop(String),
}

impl Verdict {
    /// It goes on as it is.
    pub const GO_ON: Verdict = Verdict::Allow { input: None, context: None };

    /// Denied, because whoever should have decided did not, for this reason: people are told so.
    pub(crate) fn undecided(why: impl fmt::Display) -> Self {
        Verdict::Deny(format!("{UNDECIDED}{why}"))
    }

    /// The decision in the CLI's words.
    fn in_words_of_cli(&self, moment: Moment) -> Value {
        let event = moment.event();
        match self {
            Verdict::Deny(reason) => json!({"decision": "deny", "reason": reason}),
            Verdict::Stop(reason) if moment == Moment::BeforeModel => {
                json!({"decision": "deny", "reason": reason})
            }
            Verdict::Stop(reason) => json!({"continue": false, "stopReason": reason}),
            Verdict::Allow { input, context } => {
                let mut output = Map::from_iter([("hookEventName".to_owned(), json!(event))]);
                if let Some(input) = input.as_ref().filter(|_| moment == Moment::BeforeTool) {
                    output.insert("tool_input".to_owned(), Value::Object(input.clone()));
                }
                if let Some(context) = context.as_ref().filter(|_| moment == Moment::AfterTool) {
                    output.insert("additionalContext".to_owned(), json!(context));
                }
                if output.len() == 1 { json!({}) } else { json!({"hookSpecificOutput": output}) }
            }
        }
    }
}

/// Who decides, when, and how long that may take.
#[derive(Clone)]
pub struct Hooks {
    pub(crate) moments: Vec<Moment>,
    pub(crate) decide: Arc<dyn Fn(&Asked) -> Verdict + Send + Sync>,
    pub(crate) limit: Duration,
}

/// How long a decision may take, unless somebody says otherwise.
const LIMIT: Duration = Duration::from_secs(60);

impl Hooks {
    /// Asks at these moments. Several can be asked at once, each on a thread of its own.
    pub fn new(
        moments: impl IntoIterator<Item = Moment>,
        decide: impl Fn(&Asked) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self { moments: moments.into_iter().collect(), decide: Arc::new(decide), limit: LIMIT }
    }

    /// Both decide: first these, and then the others about what these let through, with the arguments that these have given.
    #[must_use]
    pub fn then(self, others: Hooks) -> Self {
        let moments = Moment::ALL.into_iter();
        let moments =
            moments.filter(|moment| self.moments.contains(moment) || others.moments.contains(moment));
        let (moments, limit) = (moments.collect(), self.limit.saturating_add(others.limit));
        let both = [self, others];
        let decide = move |asked: &Asked| {
            let at = both.iter().filter(|hooks| hooks.moments.contains(&asked.moment));
            in_turn(asked, at.map(|hooks| |asked: &Asked| (hooks.decide)(asked)))
        };
        Self { moments, decide: Arc::new(decide), limit }
    }

    /// A decision that takes longer is a denial.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

/// What several decide, one after the other: the first that does not allow decides, and each sees the arguments that those before it
/// have given.
fn in_turn(asked: &Asked, all: impl Iterator<Item = impl FnOnce(&Asked) -> Verdict>) -> Verdict {
    let (mut asked, mut changed, mut contexts) = (asked.clone(), None, Vec::new());
    for decide in all {
        match decide(&asked) {
            Verdict::Allow { input, context } => {
                if let Some(input) = input {
                    asked.told.insert("tool_input".to_owned(), Value::Object(input.clone()));
                    changed = Some(input);
                }
                contexts.extend(context);
            }
            other => return other,
        }
    }
    Verdict::Allow { input: changed, context: (!contexts.is_empty()).then(|| contexts.join("\n")) }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("moments", &self.moments).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
