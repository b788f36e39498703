//! The workflow engine `aiwf` (Python): a provider that returns a response and the files that were written.
//!
//! Its document finds failed sign-ins by the letters "auth" in standard error, before it looks at the exit code, and
//! takes every exit 0 for a success. Gemini CLI 0.61.0 exits 0 after being killed, so here success is the outcome's, and only
//! the texts are the document's, word for word.

use alhena_model::Outcome;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::failed_run::{FailedRun, reason_first};
use crate::python;

/// The keys of the configuration, in the document's order.
const CONFIG_KEYS: [&str; 7] =
    ["model", "sandbox", "approval_mode", "include_directories", "allowed_tools", "working_dir", "timeout"];
/// The approval modes that the document knows, sorted as its message lists them.
const APPROVAL_MODES: [&str; 3] = ["auto_edit", "default", "yolo"];
/// The tools whose writes count.
const WRITE_TOOLS: [&str; 2] = ["write_file", "replace"];
/// How long a response may take unless told otherwise, in seconds.
const DEFAULT_TIMEOUT: u64 = 600;
///
const NOT_FOUND: &str = "Gemini CLI not found. Install from: https://github.com/google-gemini/gemini-cli";

/// What the provider returns, or raises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// All text of the model, in order; the answer as JSON where it had to fit a schema.
    pub response: String,
    /// The files that were written, in order, each with `null`: the provider wrote it.
    pub files: Map<String, Value>,
    /// What the provider raises when the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The outcome as this host wants it. `stderr` is the CLI's standard error where the caller knows better than the outcome.
pub fn view(outcome: &Outcome, stderr: Option<&str>) -> Answer {
    Answer {
        response: outcome.data.as_ref().map_or_else(|| outcome.text.all().to_owned(), Value::to_string),
        files: written_files(outcome),
        error: FailedRun::of(outcome, stderr).map(|failed| error_text(failed, outcome)),
    }
}

/// what a writing tool says it wrote with success, once each, in order.
fn written_files(outcome: &Outcome) -> Map<String, Value> {
    let written = outcome
        .files
        .iter()
        .filter(|file| file.claimed && file.tool.as_deref().is_some_and(|tool| WRITE_TOOLS.contains(&tool)));
    written.map(|file| (file.path.clone(), Value::Null)).collect()
}

fn error_text(run: FailedRun<'_>, outcome: &Outcome) -> String {
    match run {
        FailedRun::NotInstalled => NOT_FOUND.to_owned(),
        FailedRun::Exited { code, said } => {
            let message = outcome.failure.as_ref().map_or("", |failure| failure.message.as_str());
            process_error(code, &reason_first(said, message))
        }
        FailedRun::Stopped { code, message } => failed(i32::from(code), message),
    }
}

/// The document's text for a process that ended with this code and this on standard error.
fn process_error(code: i32, stderr: &str) -> String {
    let lower = stderr.to_lowercase();
    if lower.contains("auth") || lower.contains("login") {
        format!("Gemini CLI authentication error. Run: gemini auth login\n{stderr}")
    } else if code == 127 {
        NOT_FOUND.to_owned()
    } else {
        failed(code, stderr)
    }
}

fn failed(code: i32, said: &str) -> String {
    format!("Gemini CLI failed (exit {code}): {said}")
}

/// What `get_metadata` returns.
pub fn metadata() -> Value {
    json!({
        "name": "gemini-cli",
        "description": "Gemini CLI AI agent via subprocess",
        "requires_config": false,
        "config_keys": CONFIG_KEYS,
        "default_response_timeout": DEFAULT_TIMEOUT,
        "fs_ability": "local-write",
    })
}

/// Checks a configuration as the document does; gives its warnings, or the message of the error it raises.
pub fn validate(config: &Value) -> Result<Vec<String>, String> {
    let config = match config {
        Value::Null => return Ok(Vec::new()),
        Value::Object(config) => config,
        other => return Err(format!("config must be a dict, got: {}", python::type_name(other))),
    };
    let given = |key: &str| config.get(key).filter(|value| !value.is_null());
    if let Some(timeout) = given("timeout") {
        check_timeout(timeout)?;
    }
    if let Some(mode) = given("approval_mode")
        && !mode.as_str().is_some_and(|mode| APPROVAL_MODES.contains(&mode))
    {
        let modes = python::list_repr(APPROVAL_MODES.into_iter().map(python::string_repr));
        return Err(format!("approval_mode must be one of {modes}, got: {}", python::repr(mode)));
    }
    for key in ["include_directories", "allowed_tools"] {
        if let Some(value) = given(key).filter(|value| !value.is_array()) {
            return Err(format!("{key} must be a list, got: {}", python::type_name(value)));
        }
    }
    let mut unknown: Vec<&str> =
        config.keys().map(String::as_str).filter(|key| !CONFIG_KEYS.contains(key)).collect();
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    unknown.sort_unstable();
    let unknown = python::list_repr(unknown.into_iter().map(python::string_repr));
    Ok(vec![format!("Unknown GeminiCliProvider config keys ignored: {unknown}")])
}

/// Python compares booleans as numbers, and raises a TypeError of its own for everything else.
fn check_timeout(timeout: &Value) -> Result<(), String> {
    let positive = match timeout {
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64().is_some_and(|value| value > 0.0),
        other => {
            let name = python::type_name(other);
            return Err(format!("'<=' not supported between instances of '{name}' and 'int'"));
        }
    };
    if positive { Ok(()) } else { Err("timeout must be > 0".to_owned()) }
}

#[cfg(test)]
mod tests;
