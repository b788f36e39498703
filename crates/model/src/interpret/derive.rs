//! Facts that are worked out, not said: each one is marked as derived where it leaves.

use serde_json::{Map, Value};

use crate::event::ToolError;
use crate::join::ToolFact;
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

/// Without a look at the disk: `write_file` is taken for a new file, and so is a replacement of nothing.
pub(super) fn creates(name: &str, kept: &Value) -> bool {
    match name {
        "write_file" => true,
        _ => kept.get("old_string") == Some(&Value::Bool(true)),
    }
}

/// Whether a tool ran, and how, as far as its result lets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// As the result says.
    Fine,
    /// A command with this exit code.
    Code(i32),
    /// A command that failed in another way.
    Badly,
    /// It was stopped; the stream calls that a success (C-44).
    Cancelled,
    /// It never ran; the stream calls that a success, too, when the CLI found the command suspicious.
    Not,
}

impl Ran {
    pub(super) fn well(self) -> bool {
        matches!(self, Ran::Fine | Ran::Code(0))
    }

    /// The same, with what the session file says on top.
    pub(super) fn knowing(self, fact: &ToolFact) -> Self {
        match (self, fact.exit_code) {
            (Ran::Not, _) => Ran::Not,
            _ if fact.cancelled => Ran::Cancelled,
            (Ran::Fine, Some(code)) => Ran::Code(code),
            (ran, _) => ran,
        }
    }

    pub(super) fn exit_code(self) -> Option<i32> {
        match self {
            Ran::Code(code) => Some(code),
            Ran::Fine | Ran::Badly | Ran::Cancelled | Ran::Not => None,
        }
    }
}

/// What the CLI displays (0.61.0) of a command that was blocked.
const BLOCKED: &str = "Blocked: command substitution detected in shell command.";

/// How a call went. The stream has a shell command's exit code only when the command printed nothing (0.61.0).
pub(super) fn ran(class: Class, output: Option<&str>, error: Option<&ToolError>) -> Ran {
    match (error, output) {
        (Some(error), _) if is_refusal(error) => Ran::Not,
        (Some(_), _) => Ran::Badly,
        (None, Some(output)) if class == Class::Command => command_ran(output.trim_end()),
        (None, _) => Ran::Fine,
    }
}

fn command_ran(output: &str) -> Ran {
    let cancelled = |words: &str| {
        output
            .strip_prefix(words)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("\n\nOutput before"))
    };
    let code = output.strip_prefix("Command exited with code: ").and_then(|code| code.parse().ok());
    if let Some(code) = code {
        Ran::Code(code)
    } else if output == BLOCKED {
        Ran::Not
    } else if cancelled("Command cancelled by user.") || is_automatic_cancel(output) {
        Ran::Cancelled
    } else if output.starts_with("Command terminated by signal: ") && !output.contains('\n') {
        Ran::Badly
    } else {
        Ran::Fine
    }
}

fn is_automatic_cancel(output: &str) -> bool {
    let first = output.lines().next().unwrap_or("");
    first.starts_with("Command was automatically cancelled because it exceeded the timeout of ")
        && first.ends_with(" without output.")
}

/// Errors of calls that were turned away before anything ran.
fn is_refusal(error: &ToolError) -> bool {
    matches!(error.kind.as_str(), "tool_not_registered" | "policy_violation" | "invalid_tool_params")
        || needs_somebody(error)
}

fn needs_somebody(error: &ToolError) -> bool {
    error.message.contains("requires user confirmation")
}

/// Whether two names are those of one tool.
fn is_same(one: &str, other: &str) -> bool {
    let name = |name| Tool::find(name).map(|tool| tool.name);
    one == other || name(one).is_some_and(|one| name(other) == Some(one))
}

/// A warning for a call that the CLI turned away, or that ended the run.
pub(super) fn refusal(name: &str, ran: Ran, error: Option<&ToolError>, denied: &[String]) -> Option<String> {
    let Some(error) = error else {
        return (ran == Ran::Not).then(|| {
            "Gemini CLI blocked a shell command because of a command substitution in it; it did not run"
                .to_owned()
        });
    };
    match error.kind.as_str() {
        "tool_not_registered" if denied.iter().any(|denied| is_same(denied, name)) => Some(format!(
            "The model asked for {name}, which was not offered to it: --deny-tool {name} denies it"
        )),
        "tool_not_registered" => Some(match tool::class(name) {
            Class::FileWrite => format!(
                "The model asked for {name}, which was not offered to it; --approval auto-edit or yolo offers it, unless it is denied"
            ),
            Class::Command => {
                format!(
                    "The model asked for {name}, which was not offered to it; --approval yolo offers it, unless it is denied"
                )
            }
            _ => format!("The model asked for {name}, which was not offered to it"),
        }),
        "policy_violation" => Some(format!("A call of {name} was denied by policy")),
        "stop_execution" => Some(format!("A hook stopped the agent: {}", error.message)),
        _ if needs_somebody(error) => Some(format!(
            "A call of {name} needed approval, and nobody can be asked; --allow-tool {name} would allow it"
        )),
        _ => None,
    }
}

/// A prompt that only names the file it stands in: without that file the model knows nothing of its task.
#[derive(Debug)]
pub(super) struct PromptFile {
    path: String,
    /// The call that reads it.
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

/// Whether text is a unified diff; the CLI's experimental agent loop prints those.
pub(super) fn looks_like_diff(text: &str) -> bool {
    let mut lines = text.lines().take(200);
    let headed = lines.by_ref().any(|line| line.starts_with("--- "))
        && lines.next().is_some_and(|line| line.starts_with("+++ "));
    headed && lines.any(|line| line.starts_with("@@ "))
}

/// At most `limit` bytes, in whole characters.
pub(super) fn cut(text: &str, limit: usize) -> String {
    text.get(..text.floor_char_boundary(limit)).unwrap_or("").to_owned()
}
