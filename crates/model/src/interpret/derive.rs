//! Facts that are worked out, not said: each one is marked as derived where it leaves.

use serde_json::{Map, Value};

use crate::answer;
use crate::conversation::{ToolEnd, needs_somebody};
use crate::event::ToolError;
use crate::hook;
use crate::tool::{self, Class, Tool};

/// Of a call's arguments only what its result will need: contents of files can be megabytes.
pub(super) fn what_the_result_needs(class: Class, input: &Value) -> Value {
    let keys: &[&str] = match class {
        Class::Command => &["command"],
        Class::FileWrite => &["file_path", "absolute_path", "path", "old_string"],
        _ => &[],
    };
    let kept: Map<String, Value> = keys
        .iter()
        .filter_map(|key| {
            let value = input.get(key)?;
            // Only whether it is empty matters.
            let value =
                if *key == "old_string" { Value::Bool(value.as_str() == Some("")) } else { value.clone() };
            Some(((*key).to_owned(), value))
        })
        .collect();
    Value::Object(kept)
}

fn is_same(one: &str, other: &str) -> bool {
    let name = |name| Tool::find(name).map(|tool| tool.name);
    one == other || name(one).is_some_and(|one| name(other) == Some(one))
}

/// A warning for a call that the CLI turned away, or that ended the run.
pub(super) fn refusal(name: &str, end: &ToolEnd<'_>, denied: &[String]) -> Option<String> {
    let Some(error) = end.error.as_deref() else {
        return end.refused.then(|| {
            "Gemini CLI blocked a shell command because of a command substitution in it; it did not run"
                .to_owned()
        });
    };
    if let Some(why) = hook::undecided(error) {
        return Some(format!("What {name} gave was kept from the model, because nobody decided: {why}"));
    }
    match end.error_type.as_deref().unwrap_or("") {
        "tool_not_registered" if denied.iter().any(|denied| is_same(denied, name)) => Some(format!(
            "The model asked for {name}, which was not offered to it: `deny_tool` {name} denies it"
        )),
        "tool_not_registered" => Some(match tool::class(name) {
            Class::FileWrite => format!(
                "The model asked for {name}, which was not offered to it; `approval` auto-edit or yolo offers it, unless it is denied"
            ),
            Class::Command => {
                format!(
                    "The model asked for {name}, which was not offered to it; `approval` yolo offers it, unless it is denied"
                )
            }
            _ => format!("The model asked for {name}, which was not offered to it"),
        }),
        "policy_violation" if let Some(guarded) = guarded(error) => Some(format!(
            "Gemini CLI's own guard denied a call of {name}: {guarded} needs somebody's yes, and headless there is nobody; `transport` acp can do it"
        )),
        "policy_violation" if let Some(reason) = error.strip_prefix(BY_HOOK) => {
            Some(denied_by_hook(name, reason))
        }
        "policy_violation" => Some(format!("A call of {name} was denied by policy")),
        "stop_execution" if error == answer::NONE_VALID && name.ends_with(answer::TOOL) => None,
        "stop_execution" => Some(format!("A hook stopped the agent: {error}")),
        _ if needs_somebody(error) => Some(format!(
            "A call of {name} needed approval, and nobody can be asked; `allow_tool` {name} would allow it"
        )),
        _ => None,
    }
}

/// How the CLI begins the error of a call that a hook did not let run; what a policy denies has other words (0.61.0).
const BY_HOOK: &str = "Tool execution blocked: ";

pub(super) fn denied_by_hook(name: &str, reason: &str) -> String {
    match (hook::undecided(reason), reason.strip_prefix(hook::UNCONFIRMED)) {
        (Some(why), _) => format!("A call of {name} was denied, because nobody decided: {why}"),
        (_, Some(why)) => format!("A call of {name} was not confirmed: {why}"),
        (None, None) => format!("A hook denied a call of {name}: {reason}"),
    }
}

/// What a guard of the CLI itself keeps from being done without a person's yes: edits of build files since 0.61.0.
fn guarded(error: &str) -> Option<String> {
    let (said, _) = error.split_once(" requires explicit user confirmation")?;
    let what = said.rsplit_once("denied by policy. ").map_or(said, |(_, what)| what);
    let mut letters = what.chars();
    let first = letters.next()?.to_lowercase();
    Some(first.chain(letters).collect())
}

/// A prompt that only names the file it stands in: without that file the model knows nothing of its task.
#[derive(Debug)]
pub(super) struct PromptFile {
    path: String,
    reading: Option<String>,
}

impl PromptFile {
    pub(super) fn named_in(prompt: &str) -> Option<Self> {
        let path = prompt.strip_prefix("Process the prompt in ").filter(|path| !path.contains('\n'))?;
        Some(Self { path: path.to_owned(), reading: None })
    }

    pub(super) fn call(&mut self, id: &str, class: Class, input: &Value) {
        let asked = ["file_path", "absolute_path"].iter().find_map(|key| input.get(key)?.as_str());
        if class == Class::FileRead && asked == Some(&self.path) {
            self.reading = Some(id.to_owned());
        }
    }

    /// A warning if this is the end of an attempt to read it, and a bad one.
    pub(super) fn result(&self, id: &str, error: Option<&ToolError>) -> Option<String> {
        let error = error.filter(|_| self.reading.as_deref() == Some(id))?;
        Some(format!("The model could not read the prompt in {}: {}", self.path, cut(&error.message, 300)))
    }
}

/// About how many bytes the kept arguments take.
pub(super) fn size(kept: &Value) -> usize {
    let text = |value: &Value| value.as_str().map_or(8, str::len);
    kept.as_object().map_or(0, |kept| kept.values().map(text).sum())
}

/// At most `limit` bytes, in whole characters.
pub(super) fn cut(text: &str, limit: usize) -> String {
    text.get(..text.floor_char_boundary(limit)).unwrap_or("").to_owned()
}
