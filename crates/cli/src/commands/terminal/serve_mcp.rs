//! `alhena terminal serve-mcp`: what an agent needs to lead others, as tools.
//!
//! Gemini CLI 0.61.0 starts one such server per agent, offers its tools as `mcp_<server>_<tool>`, and runs several calls at
//! once.

mod server;
mod team;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use alhena_terminal::{Options, TerminalError, TerminalErrorKind};
use serde_json::{Map, Value, json};

use self::server::{Done, Tools};
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
    approval: Option<alhena_agent::Approval>,
    /// Let workers run in a folder that is not trusted.
    #[arg(long)]
    trust: bool,
    /// The model of workers; as their supervisor by default.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub fn execute(args: Args, options: Options) -> Result<ExitCode, TerminalError> {
    let team = Arc::new(Team::new(args, options)?);
    let post = std::thread::spawn({
        let team = Arc::clone(&team);
        move || team.deliver()
    });
    let served = server::serve(team, std::io::stdin().lock(), crate::output::stdout(), GRACE);
    let _panicked = post.join();
    served.map(|()| ExitCode::SUCCESS).map_err(|error| {
        TerminalError::new(TerminalErrorKind::Usage, error.to_string())
            .with_hint("An MCP client has to start it and speak first.")
    })
}

impl Tools for Team {
    const INSTRUCTIONS: &'static str = "Hand work to other agents. `handoff` waits for the answer; `assign` does not, and the \
         worker reports by `send_message`.";

    fn list(&self) -> Value {
        tools()
    }

    fn call(&self, name: &str, arguments: &Map<String, Value>, unwanted: &dyn Fn() -> bool) -> Done {
        self.call(name, arguments, unwanted)
    }

    fn close(&self) {
        self.close();
    }
}

/// A name, what it is for, its arguments.
fn tools() -> Value {
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
        json!({"name": name, "description": about, "inputSchema": schema})
    };
    table.into_iter().map(tool).collect()
}
