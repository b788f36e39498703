//! `alhena terminal launch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena::env::Environment;
use alhena::home::McpServer;
use alhena::terminal::mcp::McpScope;
use alhena::terminal::profile::{Places, Profile, ProfileBy};
use alhena::terminal::{Launch, TerminalError, TerminalErrorKind, Terminals, Unready};
use alhena::{Approval, Request, Resume, Sandbox, SystemPrompt, Trust};

use super::Described;
use crate::commands::run::{TrustArg, time};
use crate::commands::{print, print_json};

/// Launch an interactive agent and wait until it is ready; prints its name.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to call it; made up by default.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Work in this directory.
    #[arg(long, short = 'C', value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The Gemini CLI to run.
    #[arg(long, value_name = "PATH")]
    gemini: Option<PathBuf>,
    /// The model.
    #[arg(long, short, value_name = "NAME")]
    model: Option<String>,
    /// What the model may do without asking: default, auto-edit, yolo, plan.
    #[arg(long, value_name = "MODE")]
    approval: Option<Approval>,
    /// Run in a folder that is not trusted; `=settings` loads the folder's own settings too.
    #[arg(long, value_name = "settings", num_args = 0..=1, require_equals = true)]
    trust: Option<Option<TrustArg>>,
    /// The sandbox: on, off, inherit, docker, podman, ...
    #[arg(long, value_name = "ENGINE", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    sandbox: Option<Sandbox>,
    /// Another directory that the model may use; can be repeated.
    #[arg(long, value_name = "DIR")]
    include_dir: Vec<PathBuf>,
    /// Allow a tool: NAME, or run_shell_command(PREFIX); can be repeated.
    #[arg(long, value_name = "TOOL")]
    allow_tool: Vec<String>,
    /// Deny a tool; can be repeated.
    #[arg(long, value_name = "TOOL")]
    deny_tool: Vec<String>,
    /// Who the agent is: a profile's path, or its name.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// How it learns that: home (a context file of its own), or document (a first message, and GEMINI.md).
    #[arg(long, value_name = "WAY", default_value = "home")]
    profile_by: ProfileBy,
    /// Where its MCP servers are written down: terminal (only it sees them), or user (the user's settings).
    #[arg(long, value_name = "SCOPE", default_value = "terminal")]
    mcp_scope: McpScope,
    /// An MCP server for this terminal: 'NAME=COMMAND ARGS', 'NAME=URL' or a JSON file; can be repeated.
    #[arg(long, value_name = "SERVER")]
    mcp_server: Vec<String>,
    /// Instructions for the model beside its prompts.
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Set a variable for the CLI (NAME=VALUE); can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Go on with a session: its id, or the latest.
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "latest")]
    resume: Option<String>,
    /// How wide the terminal is.
    #[arg(long, value_name = "N", default_value = "150", value_parser = clap::value_parser!(u16).range(20..=1000))]
    columns: u16,
    /// How high the terminal is.
    #[arg(long, value_name = "N", default_value = "46", value_parser = clap::value_parser!(u16).range(5..=1000))]
    rows: u16,
    /// How long it may take until it is ready.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    timeout: Duration,
    /// Keep a terminal that asks for a login or for trust, so that somebody can answer.
    #[arg(long)]
    keep: bool,
    /// More arguments for Gemini CLI itself; can be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    cli_arg: Vec<OsString>,
    /// The first prompt.
    #[arg(last = true, value_name = "PROMPT")]
    prompt: Vec<String>,
}

pub fn execute(args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let terminal = terminals.launch(launch(args)?)?;
    let record = terminal.record()?;
    if json {
        let reading = terminal.status()?;
        return Ok(print_json(&Described { record, reading }));
    }
    for warning in &record.warnings {
        eprintln!("{warning}");
    }
    Ok(print(terminal.name()))
}

pub fn launch(args: Args) -> Result<Launch, TerminalError> {
    let usage =
        |message: String, hint: &str| TerminalError::new(TerminalErrorKind::Usage, message).hint(hint);
    let mut request = Request::new(args.prompt.join(" "));
    request.dir = args.dir;
    request.model = args.model;
    request.approval = args.approval.unwrap_or_default();
    request.trust = match args.trust {
        None => Trust::AsIs,
        Some(None) => Trust::Run,
        Some(Some(TrustArg::Settings)) => Trust::WithSettings,
    };
    request.sandbox = args.sandbox.unwrap_or_default();
    request.include_dirs = args.include_dir;
    request.allow_tools = args.allow_tool;
    request.deny_tools = args.deny_tool;
    for server in &args.mcp_server {
        let servers = McpServer::from_argument(server).map_err(|error| {
            usage(error.to_string(), "Write 'NAME=COMMAND ARGS', 'NAME=URL', or give a JSON file.")
        })?;
        request.mcp_servers.extend(servers);
    }
    request.system_prompt = args.system_prompt.map(SystemPrompt::Append);
    for variable in args.env {
        match variable.split_once('=') {
            Some((name, value)) => request.env.push((name.into(), value.into())),
            None => return Err(usage(format!("{variable:?} is not NAME=VALUE"), "Write NAME=VALUE.")),
        }
    }
    request.resume = args.resume.map(|id| if id == "latest" { Resume::Latest } else { Resume::Id(id) });
    request.extra_args = args.cli_arg;
    let project = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let places = Places::usual(&Environment::of_process(), &project);
    let profile = args.profile.map(|name| Profile::load(&name, &places)).transpose();
    let profile = profile.map_err(|error| usage(error.to_string(), ""))?;
    Ok(Launch {
        name: args.name,
        request,
        profile,
        profile_by: args.profile_by,
        mcp_scope: args.mcp_scope,
        gemini: args.gemini,
        columns: args.columns,
        rows: args.rows,
        timeout: args.timeout,
        unready: if args.keep { Unready::Keep } else { Unready::End },
    })
}
