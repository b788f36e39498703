//! The settings of a run: the user's, with the run's changes on top.
//!
//! Gemini CLI 0.61.0 has no flag for settings. It reads JSON with comments from the home, expands `$NAME` in it, rewrites
//! keys of older releases at every start, and lets the settings of a trusted folder and of the system win.

use std::path::Path;

use serde_json::{Map, Value};

use crate::settings::{Problem, SettingsError, read_settings};

/// Reads a file of JSON with comments; empty when there is none.
pub(super) fn read_object(path: &Path) -> Result<Map<String, Value>, SettingsError> {
    match read_settings(path)? {
        Value::Object(object) => Ok(object),
        _ => Err(SettingsError { path: path.to_owned(), problem: Problem::NotAnObject }),
    }
}

/// Puts the run's changes on top: objects are merged, everything else is replaced. As in the CLI's own merge, an MCP
/// server is taken as a whole, for half of one and half of another is none.
pub(super) fn merge(target: &mut Map<String, Value>, changes: &Map<String, Value>) {
    merge_at(target, changes, &mut Vec::new());
}

fn merge_at<'a>(target: &mut Map<String, Value>, changes: &'a Map<String, Value>, path: &mut Vec<&'a str>) {
    for (key, change) in changes {
        path.push(key);
        match (target.get_mut(key), change) {
            (Some(Value::Object(old)), Value::Object(new))
                if !matches!(path.as_slice(), ["mcpServers", _]) =>
            {
                merge_at(old, new, path);
            }
            _ => {
                target.insert(key.clone(), change.clone());
            }
        }
        path.pop();
    }
}

/// A list of allowed MCP servers (`mcp.allowed`) would keep out those that the run brings along.
pub(super) fn admit_servers(settings: &mut Map<String, Value>, changes: &Map<String, Value>) -> Vec<String> {
    let names = changes.get("mcpServers").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let names: Vec<&String> = names.collect();
    let is_named = |list: &Vec<Value>, name: &str| list.iter().any(|item| item.as_str() == Some(name));
    let mcp = settings.get_mut("mcp").and_then(Value::as_object_mut);
    let Some(mcp) = mcp else { return Vec::new() };
    if let Some(Value::Array(allowed)) = mcp.get_mut("allowed") {
        for name in &names {
            if !is_named(allowed, name) {
                allowed.push(Value::String((*name).clone()));
            }
        }
    }
    let excluded = mcp.get("excluded").and_then(Value::as_array);
    let shut_out = names.iter().filter(|name| excluded.is_some_and(|list| is_named(list, name)));
    shut_out
        .map(|name| format!("The MCP server {name} is excluded by mcp.excluded in the settings"))
        .collect()
}

/// Paths that the CLI resolves against its home, where `~` would mean the overlay.
const HOME_PATHS: &[&[&str]] = &[
    &["context", "includeDirectories"],
    &["policyPaths"],
    &["adminPolicyPaths"],
    &["experimental", "extensionRegistryURI"],
];

/// Writes out `~` in those paths, so that it means the user's home.
pub(super) fn write_out_home(settings: &mut Map<String, Value>, home: &Path) {
    for path in HOME_PATHS {
        let Some((last, parents)) = path.split_last() else { continue };
        let mut object = Some(&mut *settings);
        for key in parents.iter() {
            object = object.and_then(|object| object.get_mut(*key)).and_then(Value::as_object_mut);
        }
        match object.and_then(|object| object.get_mut(*last)) {
            Some(Value::Array(items)) => items.iter_mut().for_each(|item| write_out(item, home)),
            Some(value) => write_out(value, home),
            None => {}
        }
    }
}

fn write_out(value: &mut Value, home: &Path) {
    if let Value::String(text) = value
        && let Some(full) = written_out(text, home)
    {
        *text = full;
    }
}

/// The path with its `~` written out; none when it does not begin with one.
pub(super) fn written_out(text: &str, home: &Path) -> Option<String> {
    let rest = text.strip_prefix('~')?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", home.display()))
}

/// The names of the context files in `.gemini`, the first of which the CLI also writes to.
pub(crate) fn context_names(settings: &Map<String, Value>) -> Vec<String> {
    let chosen = settings.get("context").and_then(|context| context.get("fileName"));
    let names: Vec<String> = match chosen {
        Some(Value::String(name)) => vec![name.trim().to_owned()],
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(|name| name.trim().to_owned()).collect()
        }
        _ => Vec::new(),
    };
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    if names.is_empty() { vec!["GEMINI.md".to_owned()] } else { names }
}

/// The run's settings that other settings win over, as `general.maxAttempts`.
pub(super) fn overridden(changes: &Map<String, Value>, winner: &Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    collect_overridden(changes, winner, "", &mut names);
    names
}

fn collect_overridden(
    changes: &Map<String, Value>,
    winner: &Map<String, Value>,
    prefix: &str,
    names: &mut Vec<String>,
) {
    for (key, change) in changes {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match (change, winner.get(key)) {
            (_, None) => {}
            (Value::Object(change), Some(Value::Object(winner))) => {
                collect_overridden(change, winner, &name, names);
            }
            (change, Some(winner)) if change == winner => {}
            _ => names.push(name),
        }
    }
}

/// The names of all settings in an object, as `general.maxAttempts`; an MCP server is one name.
pub(super) fn leaf_names(settings: &Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    collect_leaves(settings, "", &mut names);
    names
}

fn collect_leaves(settings: &Map<String, Value>, prefix: &str, names: &mut Vec<String>) {
    for (key, value) in settings {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(object) if prefix != "mcpServers" && !object.is_empty() => {
                collect_leaves(object, &name, names);
            }
            _ => names.push(name),
        }
    }
}

#[cfg(test)]
mod tests;
