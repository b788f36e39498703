//! An answer of a wanted shape: what the model is offered to give it, and what it is told.

use std::ffi::OsString;
use std::sync::Arc;

use alhena_model::Setting;
use alhena_model::answer::Schema;
use alhena_model::answer::TOOL;
use alhena_wire::acp::gemini;
use serde_json::{Map, Value, json};

use super::RunError;
use crate::answer::{Desk, Server};
use crate::env::{self, Environment};
use crate::hooks::Occasion;
use crate::request::{Approval, ResolvedRequest, Transport};

/// The server of our tool; another when the user has one of this name.
const SERVER: &str = "answer";

pub(super) struct Offer {
    pub desk: Arc<Desk>,
    /// None in plan mode, where no MCP tool may run (0.61.0).
    pub server: Option<Server>,
    /// What the model is told beside the prompt.
    pub instructions: String,
    pub tool: Option<String>,
}

impl Offer {
    /// When the CLI has to ask us.
    pub(super) fn occasions(&self, transport: Transport) -> Vec<Occasion> {
        let tool = self.tool.clone().filter(|_| transport != Transport::Acp);
        tool.map(Occasion::Submission).into_iter().chain([Occasion::Answer]).collect()
    }
}

/// Checks the schema, and puts the tool into the settings of the run.
pub(super) fn offer(
    request: &ResolvedRequest,
    servers: &[String],
    user: &Value,
    wanted: &mut Map<String, Value>,
    environment: &mut Environment,
) -> Result<Option<Offer>, RunError> {
    let Some(given) = &request.schema else { return Ok(None) };
    let schema = Schema::new(given).map_err(|error| {
        RunError::usage(
            format!("{}: {error}", Setting::Schema),
            "Give a JSON schema that holds everything it refers to: nothing is fetched.",
        )
    })?;
    let desk = Arc::new(Desk::new(schema, request.schema_attempts));
    if request.approval == Approval::Plan {
        let instructions = format!(
            "Give your final answer as JSON in a fenced block, and nothing behind it. It has to fit this JSON schema:\n\n```json\n{given:#}\n```\n"
        );
        return Ok(Some(Offer { desk, server: None, instructions, tool: None }));
    }
    let server = Server::start(Arc::clone(&desk)).map_err(|error| {
        RunError::usage(format!("answers cannot be listened for: {error}"), "").caused_by(error)
    })?;
    let mut names = (1_u32..).map(|n| if n == 1 { SERVER.to_owned() } else { format!("{SERVER}{n}") });
    // No tool of another server may have a name that could be one of ours.
    let is_free = |name: &String| {
        let ours = gemini::mcp_name(name, "");
        servers.iter().all(|server| !gemini::mcp_name(server, "").starts_with(&ours))
    };
    let name = names.find(is_free).unwrap_or_default();
    let tool = gemini::mcp_name(&name, TOOL);
    add(&name, user, wanted);
    environment.set(env::ALHENA_ANSWER_URL, server.url());
    reach_loopback(environment);
    let instructions = format!(
        "Give your final answer by calling the tool `{tool}`, once, when you have the whole answer. Its argument `result` is the answer. What you say in text does not count as the answer.\n"
    );
    Ok(Some(Offer { desk, server: Some(server), instructions, tool: Some(tool) }))
}

/// The entry of our server. By a variable, so that the settings of two runs are the same text: the place of a run's home
/// depends on its settings.
fn add(name: &str, user: &Value, wanted: &mut Map<String, Value>) {
    let entry = json!({"httpUrl": format!("${}", env::ALHENA_ANSWER_URL), "trust": true});
    let servers = wanted.entry("mcpServers").or_insert_with(|| json!({}));
    if let Some(servers) = servers.as_object_mut() {
        servers.insert(name.to_owned(), entry);
    }
    // Who lets in only some of their own servers has not thought of ours.
    if let Some(allowed) = user.pointer("/mcp/allowed").and_then(Value::as_array) {
        let allowed: Vec<Value> = allowed.iter().cloned().chain([json!(name)]).collect();
        let mcp = wanted.entry("mcp").or_insert_with(|| json!({}));
        if let Some(mcp) = mcp.as_object_mut() {
            mcp.insert("allowed".to_owned(), json!(allowed));
        }
    }
}

/// The CLI would ask a proxy for our address (0.61.0).
fn reach_loopback(environment: &mut Environment) {
    const LOWER: &str = "no_proxy";
    let ours = "127.0.0.1";
    let others = environment.filled(env::NO_PROXY).or_else(|| environment.filled(LOWER));
    let mut hosts = OsString::from(ours);
    if let Some(others) = others {
        hosts.push(",");
        hosts.push(others);
    }
    environment.set(LOWER, hosts.clone());
    environment.set(env::NO_PROXY, hosts);
}
