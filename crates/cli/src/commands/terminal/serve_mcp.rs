//! `alhena terminal serve-mcp`: what an agent needs to lead others, as tools.
//!
//! Gemini CLI 0.61.0 starts one such server per agent, offers its tools as `mcp_<server>_<tool>`, and runs several calls at
//! once. The protocol is the official SDK's, which wants an async runtime; it gets one of a single thread, here and nowhere
//! else. All work is done by blocking calls on threads of their own.

mod team;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alhena::terminal::{Options, TerminalError, TerminalErrorKind};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};

use self::team::Team;

/// How long workers of a supervisor that has gone may take to end.
const GRACE: Duration = Duration::from_secs(30);

/// Serve tools for a supervisor: handoff, assign, send_message, list, status. An MCP server on stdin and stdout.
///
/// Workers run where their supervisor runs, in terminals of their own, with its Gemini CLI, model and approval mode.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  alhena terminal launch --name boss --approval yolo --trust \\
    --mcp-server 'alhena=alhena terminal serve-mcp --trust'")]
pub struct Args {
    /// What workers may do without asking; as their supervisor by default.
    #[arg(long, value_name = "MODE")]
    approval: Option<alhena::Approval>,
    /// Let workers run in a folder that is not trusted.
    #[arg(long)]
    trust: bool,
    /// The model of workers; as their supervisor by default.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub fn execute(args: Args, options: Options) -> Result<ExitCode, TerminalError> {
    let failed = |error: std::io::Error| {
        TerminalError::new(TerminalErrorKind::Tmux, format!("the server could not be started: {error}"))
    };
    let team = Arc::new(Team::new(args, options)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
    let post = std::thread::spawn({
        let team = Arc::clone(&team);
        move || team.deliver()
    });
    let served = runtime.block_on(async {
        let server = Server(Arc::clone(&team));
        let running = server.serve((tokio::io::stdin(), tokio::io::stdout())).await;
        match running {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    });
    team.close();
    runtime.shutdown_timeout(GRACE);
    let _panicked = post.join();
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(message) => Err(TerminalError::new(TerminalErrorKind::Usage, message)
            .with_hint("An MCP client has to start it and speak first.")),
    }
}

#[derive(Clone)]
struct Server(Arc<Team>);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("alhena", env!("CARGO_PKG_VERSION"));
        config.instructions = Some(
            "Hand work to other agents. `handoff` waits for the answer; `assign` does not, and the worker reports by \
             `send_message`."
                .to_owned(),
        );
        config
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let team = Arc::clone(&self.0);
        let cancelled = context.ct.clone();
        let arguments = request.arguments.unwrap_or_default();
        let done = tokio::task::spawn_blocking(move || {
            team.call(&request.name, &arguments, &|| cancelled.is_cancelled())
        });
        let done = done.await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let structured = structured(done.as_ref().unwrap_or_else(|text| text));
        let mut result = match done {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        result.structured_content = structured;
        Ok(result.into())
    }
}

/// The structured content of a text that is JSON. Gemini CLI 0.61.0 makes it of the text where there is none, and then refuses
/// whatever is no object: a worker's answer `42`, too.
fn structured(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(if value.is_object() { value } else { json!({"text": text}) })
}

/// A name, what it is for, its arguments.
fn tools() -> Vec<Tool> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let work = || {
        json!({
            "message": text("The task, with everything that the worker has to know"),
            "agent_profile": text("Who the worker is: the name of a profile. Optional"),
            "working_directory": text("Where the worker works. Optional"),
            "name": text("What to call the worker. Optional"),
        })
    };
    let mut handoff = work();
    let limit = json!({"type": "integer", "minimum": 1, "description": "How long it may take, in seconds; 600 by default"});
    handoff
        .as_object_mut()
        .into_iter()
        .for_each(|handoff| drop(handoff.insert("timeout".into(), limit.clone())));
    let terminal = json!({"terminal": text("The terminal's name or id")});
    let message = json!({
        "receiver": text("The terminal's name or id"),
        "message": text("The message"),
    });
    let table: [(&'static str, &'static str, Value, &[&str]); 5] = [
        (
            "handoff",
            "Hand a task to a new agent, wait until it has finished, and get its answer. The agent ends.",
            handoff,
            &["message"],
        ),
        (
            "assign",
            "Give a task to a new agent and go on. The agent reports by send_message when it has finished.",
            work(),
            &["message"],
        ),
        (
            "send_message",
            "Leave a message for an agent in another terminal. It gets it as soon as it is free.",
            message,
            &["receiver", "message"],
        ),
        ("list", "The terminals and what their agents do.", json!({}), &[]),
        ("status", "What the agent in a terminal does, and its last answer.", terminal, &["terminal"]),
    ];
    let tool = |(name, about, properties, required): (&'static str, &'static str, Value, &[&str])| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let schema: Map<String, Value> = schema.as_object().cloned().unwrap_or_default();
        Tool::new(name, about, schema)
    };
    table.into_iter().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_content_is_an_object_or_nothing() {
        assert_eq!(structured("An answer."), None);
        assert_eq!(structured(r#"{"a": 1}"#), Some(json!({"a": 1})));
        for text in ["42", "[1]", "null", "\"a\"", "true"] {
            assert_eq!(structured(text), Some(json!({"text": text})));
        }
    }
}
