//! The list of things to do, as an update.

use serde_json::{Value, json};

/// The plan that a call of `write_todos` made: from its arguments where they are known, else from what it says of the list, as over
/// ACP (0.61.0): `1. [in_progress] Read the file`.
pub(super) fn plan(input: Option<&Value>, output: Option<&str>) -> Option<Value> {
    let todos = input.and_then(|input| input.get("todos")).and_then(Value::as_array);
    let entries: Vec<Value> = match (todos, output) {
        (Some(todos), _) => todos
            .iter()
            .filter_map(|todo| entry(todo.get("status")?.as_str()?, todo.get("description")?.as_str()?))
            .collect(),
        (None, Some(output)) => output.lines().filter_map(listed).collect(),
        (None, None) => return None,
    };
    Some(json!({"sessionUpdate": "plan", "entries": entries}))
}

fn listed(line: &str) -> Option<Value> {
    let (number, rest) = line.split_once(". [")?;
    number.parse::<u32>().ok()?;
    let (status, text) = rest.split_once("] ")?;
    entry(status, text)
}

fn entry(status: &str, text: &str) -> Option<Value> {
    let status = match status {
        "completed" => "completed",
        "in_progress" => "in_progress",
        "cancelled" => return None,
        _ => "pending",
    };
    Some(json!({"content": text, "priority": "medium", "status": status}))
}
