//! The MCP servers that a run has, as far as files tell.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::env::Environment;
use crate::facts;
use crate::request::ResolvedRequest;
use crate::settings::read_settings;

/// The MCP servers of all settings that the CLI will read.
pub(crate) fn of(
    request: &ResolvedRequest,
    user_home: &Path,
    dir: &Path,
    user: &Value,
    environment: &Environment,
) -> Vec<String> {
    let folder = super::takes_folder_settings(request, user_home, dir, environment)
        .then(|| dir.join(".gemini/settings.json"));
    let files = folder.into_iter().chain([facts::system_settings(environment)]);
    // The CLI itself complains of one that cannot be read.
    let others: Vec<Value> = files.filter_map(|path| read_settings(&path).ok()).collect();
    let asked = request.mcp_servers.iter().map(|server| server.name.clone());
    let all: BTreeSet<String> = asked.chain([user].into_iter().chain(&others).flat_map(named)).collect();
    all.into_iter().collect()
}

/// The MCP servers that extensions bring along, also those that may be switched off.
pub(super) fn of_extensions(user_home: &Path) -> Vec<String> {
    let extensions = fs::read_dir(user_home.join(".gemini/extensions"));
    let files =
        extensions.into_iter().flatten().flatten().map(|entry| entry.path().join("gemini-extension.json"));
    files.filter_map(|file| read_settings(&file).ok()).flat_map(|extension| named(&extension)).collect()
}

fn named(settings: &Value) -> Vec<String> {
    let servers = settings.get("mcpServers").and_then(Value::as_object);
    servers.into_iter().flat_map(Map::keys).cloned().collect()
}
