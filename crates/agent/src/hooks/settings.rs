//! The CLI's own settings for hooks.

use serde_json::{Map, Value, json};

use super::Occasion;
use crate::env;

/// Where the command finds the program that carries the question, and the socket. By variables, so that the settings of two
/// runs are the same text: the place of a run's home depends on its settings.
pub(crate) const PROGRAM: &str = env::ALHENA_HOOK_PROGRAM;
pub(crate) const SOCKET: &str = env::ALHENA_HOOK_SOCKET;

/// The file that is there when a hook before a model call could not ask.
pub(crate) const FAILED: &str = env::ALHENA_HOOK_FAILED;

/// What the CLI calls ours.
const NAME: &str = "alhena";
/// For the CLI: longer than anybody waits, because it lets through what takes too long.
const NEVER: u64 = 24 * 60 * 60 * 1000;

/// Adds our command to a settings object on these occasions; the user's own hooks stay. False where hooks are switched off.
pub(crate) fn add_to(settings: &mut Map<String, Value>, occasions: &[Occasion]) -> bool {
    if switched_off(settings) {
        return false;
    }
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    if !hooks.is_object() {
        *hooks = json!({});
    }
    let Some(hooks) = hooks.as_object_mut() else { return false };
    for occasion in occasions {
        let ours = json!({"type": "command", "name": NAME, "command": occasion.command(), "timeout": NEVER});
        let ours = match occasion.matcher() {
            Some(matcher) => json!({"matcher": matcher, "hooks": [ours]}),
            None => json!({"hooks": [ours]}),
        };
        match hooks.get_mut(occasion.event()) {
            Some(Value::Array(others)) => others.push(ours),
            _ => drop(hooks.insert(occasion.event().to_owned(), json!([ours]))),
        }
    }
    true
}

/// Whether these settings keep our hooks from running.
pub(crate) fn switched_off(settings: &Map<String, Value>) -> bool {
    let Some(config) = settings.get("hooksConfig") else { return false };
    let disabled = config.get("disabled").and_then(Value::as_array);
    config.get("enabled") == Some(&json!(false))
        || disabled.is_some_and(|names| names.iter().any(|name| name == NAME))
}
