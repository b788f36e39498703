//! The part of starting a run that a batch and a server leave to the program that they are in.

use std::path::Path;

use alhena_agent::env::Environment;
use alhena_agent::{ResolvedRequest, RunError, Whom};
use alhena_model::{Hint, Outcome, Prompt, RunOptions, SettingError};

/// Knows files with defaults, the scripted model, cassettes, and where Gemini CLI is.
pub trait Launcher: Send + Sync {
    /// Checks all that can be judged before a run starts, or a conversation, which has no prompt, and returns the options with the defaults of files.
    fn check(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<RunOptions, RunError>;

    /// Prepares a run. With `copy`, it works in this copy of its directory.
    fn launch(
        &self,
        prompt: Option<&Prompt>,
        options: &RunOptions,
        copy: Option<&Path>,
    ) -> Result<Launch, RunError>;
}

/// A run that is ready to start.
pub struct Launch {
    /// What to do.
    pub request: ResolvedRequest,
    /// The agent that does it.
    pub agent: Whom,
    /// Its environment.
    pub environment: Environment,
    /// Called at the end of the run.
    pub after: Option<After>,
}

/// Called at the end of a run. Returns warnings for its outcome.
pub type After = Box<dyn FnOnce(&Outcome) -> Vec<String> + Send>;

/// Returns why a run cannot start.
pub fn setting_error(error: &RunError) -> SettingError {
    let hint = error.hint().unwrap_or_default();
    SettingError::new(error.to_string(), hint)
}
