//! Facts that are worked out, not said: each one is marked as derived where it leaves.

use serde_json::{Map, Value};

use crate::tool::{self, Class};

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

/// The stream gives a shell command's exit code only when the command printed nothing (0.61.0).
pub(super) fn exit_code(output: Option<&str>) -> Option<i32> {
    output?.trim().strip_prefix("Command exited with code: ")?.parse().ok()
}

/// A warning for a tool that the CLI took away or refused.
pub(super) fn refused_tool(name: &str, error: &str) -> Option<String> {
    match error {
        "tool_not_registered" => Some(match tool::class(name) {
            Class::FileWrite => format!(
                "The model asked for {name}, which this approval mode does not offer; --approval auto-edit or yolo does"
            ),
            Class::Command => {
                format!(
                    "The model asked for {name}, which this approval mode does not offer; --approval yolo does"
                )
            }
            _ => format!("The model asked for {name}, which was not offered to it"),
        }),
        "policy_violation" => Some(format!("A call of {name} was denied by policy")),
        _ => None,
    }
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
