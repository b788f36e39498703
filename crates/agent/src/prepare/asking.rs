//! What has to be so that the CLI asks about what it does, where somebody decides about it.
//!
//! The tools of an MCP server that is trusted ask nobody, whatever a policy says (0.61.0).

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::RunError;
use crate::home::McpServer;
use crate::request::{Request, Transport};
use crate::settings::read_settings;

/// Whether the CLI has to ask about tools that it would not ask about by itself.
pub(crate) fn is_wanted(request: &Request, transport: Transport) -> bool {
    transport == Transport::Acp && request.rules.restrict()
}

/// The MCP servers of the request and of the user that are trusted.
pub(crate) fn trusted_servers(request: &Request, user: &Value) -> Vec<String> {
    let own = request.mcp_servers.iter().map(|server| (server.name.clone(), server.entry()));
    own.chain(servers(user)).filter(|(_, entry)| is_trusted(entry)).map(|(name, _)| name).collect()
}

/// Trusts none of these servers in the settings of the run: their tools ask, and are answered as if they did not.
pub(super) fn distrust(request: &Request, user: &Value, wanted: &mut Map<String, Value>) {
    let users = servers(user).filter(|(_, entry)| is_trusted(entry));
    let own = request.mcp_servers.iter().map(|server| (server.name.clone(), server.clone()));
    let own = own.map(|(name, server)| (name, McpServer { trust: None, ..server }.entry()));
    let mut changed: Map<String, Value> = users.chain(own).collect();
    for entry in changed.values_mut().filter_map(Value::as_object_mut) {
        entry.insert("trust".to_owned(), json!(false));
    }
    if changed.is_empty() {
        return;
    }
    if let Some(servers) = wanted.entry("mcpServers").or_insert_with(|| json!({})).as_object_mut() {
        servers.extend(changed);
    }
}

/// What others trust cannot be changed.
pub(super) fn check(request: &Request, others: &[PathBuf]) -> Result<(), RunError> {
    let about_servers = |name: &String| name == "*" || name.contains("__") || name.starts_with("mcp_");
    if !request.rules.to_be_asked_about().iter().any(about_servers) {
        return Ok(());
    }
    for path in others {
        let settings = read_settings(path).unwrap_or_default();
        if let Some((name, _)) = servers(&settings).find(|(_, entry)| is_trusted(entry)) {
            let path = path.display();
            return Err(RunError::usage(
                format!(
                    "{path} trusts the MCP server {name}, so that its tools ask nobody and rules cannot be kept"
                ),
                "Take `trust` out of its entry there.",
            ));
        }
    }
    Ok(())
}

fn servers(settings: &Value) -> impl Iterator<Item = (String, Value)> {
    let servers = settings.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default();
    servers.into_iter()
}

fn is_trusted(entry: &Value) -> bool {
    entry.get("trust") == Some(&json!(true))
}
