//! What the options of a job mean. A batch knows none of them: whoever knows the options of `run` tells it.

use std::fmt;
use std::path::{Path, PathBuf};

use alhena_agent::env::Environment;
use alhena_agent::{AcpAgent, Gemini, Request, RunError, Transport};
use alhena_model::{Outcome, SettingError};
use serde_json::{Map, Value};

use crate::job::Place;

/// Options by their names.
pub type Options = Map<String, Value>;

/// Knows the options of `run`.
pub trait Meaning: Send + Sync {
    /// Whether there is such an option.
    fn is_option(&self, name: &str) -> bool;

    /// What a text means as the value of an option, where everything is text.
    fn value_of_text(&self, name: &str, text: &str) -> Value;

    /// All that can be judged before anything runs.
    fn check(&self, options: &Options) -> Result<Checked, Vec<Fault>>;

    /// The same, for a job that works in this place.
    fn check_in(&self, options: &Options, place: &Place) -> Result<Checked, Vec<Fault>> {
        match place {
            // What is in the checkout is known when it is there.
            Place::Git(_) => {
                let mut known = options.clone();
                known.insert("no_config".to_owned(), Value::Bool(true));
                self.check(&known)
            }
            Place::Dir | Place::Copy => self.check(options),
        }
    }

    /// What to run. In a place that was made for the job, `place` says where it is.
    fn ask(&self, options: &Options, place: Option<&Path>) -> Result<Ask, RunError>;
}

/// What is known of a job before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Where it works, without symbolic links.
    pub dir: PathBuf,
    /// Whether it may change something there.
    pub writes: bool,
    /// Files that say what the job is, such as the one with its prompt: another content makes it another job.
    pub inputs: Vec<PathBuf>,
}

/// Something to run, and all that it needs.
pub struct Ask {
    /// What to do.
    pub request: Request,
    /// By whom.
    pub agent: Agent,
    /// In which environment.
    pub environment: Environment,
    /// How the agent is to be talked to, where the job says so.
    pub transport: Option<Transport>,
    /// What is to be done when it is over; gives what people should know of it.
    pub after: Option<After>,
}

/// Done when a run is over; gives warnings.
pub type After = Box<dyn FnOnce(&Outcome) -> Vec<String> + Send>;

/// Who does it.
#[derive(Clone, Debug)]
pub enum Agent {
    /// Gemini CLI.
    Gemini(Box<Gemini>),
    /// Another program that speaks the Agent Client Protocol.
    Other(AcpAgent),
}

/// Something that is wrong with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Fault {
    /// Something that is wrong, and what to do.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<SettingError> for Fault {
    fn from(error: SettingError) -> Self {
        Self { message: error.to_string(), hint: error.fix }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
