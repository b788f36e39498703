//! `alhena terminal launch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena::Request;
use alhena::env::Environment;
use alhena::terminal::mcp::McpScope;
use alhena::terminal::profile::{Places, Profile, ProfileBy};
use alhena::terminal::{Launch, TerminalError, TerminalErrorKind, Terminals, Unready};

use super::Described;
use crate::commands::agent::Agent;
use crate::commands::install;
use crate::limit::time;
use crate::output::{print, print_json, say};

/// Launch an interactive agent and wait until it is ready; prints its name.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to call it; made up by default.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    agent: Agent,
    /// Who the agent is: a profile's path, or its name.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// How it learns that: home (a context file of its own), or document (a first message, and GEMINI.md).
    #[arg(long, value_name = "WAY", default_value = "home")]
    profile_by: ProfileBy,
    /// Where its MCP servers are written down: terminal (only it sees them), or user (the user's settings).
    #[arg(long, value_name = "SCOPE", default_value = "terminal")]
    mcp_scope: McpScope,
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
        say(warning);
    }
    Ok(print(terminal.name()))
}

pub fn launch(args: Args) -> Result<Launch, TerminalError> {
    let usage =
        |message: String, hint: &str| TerminalError::new(TerminalErrorKind::Usage, message).hint(hint);
    let mut request = Request::new(args.prompt.join(" "));
    let gemini = args.agent.gemini.clone();
    let gemini = match gemini.as_deref().and_then(install::as_version) {
        None => gemini,
        Some(version) => {
            let fetched = install::fetched(Some(version), &Environment::of_process(), false);
            let missing = |error: alhena::RunError| {
                TerminalError::new(TerminalErrorKind::NotInstalled, error.to_string()).hint(error.hint())
            };
            Some(fetched.map_err(missing)?.path)
        }
    };
    args.agent.describe(&mut request).map_err(|error| usage(error.to_string(), error.hint()))?;
    request.extra_args = args.cli_arg;
    let project = request.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let places = Places::usual(&Environment::of_process(), &project, request.trust);
    let profile = args.profile.map(|name| Profile::load(&name, &places)).transpose();
    let profile = profile.map_err(|error| usage(error.to_string(), ""))?;
    Ok(Launch {
        name: args.name,
        request,
        profile,
        profile_by: args.profile_by,
        mcp_scope: args.mcp_scope,
        supervisor: None,
        gemini,
        columns: args.columns,
        rows: args.rows,
        timeout: args.timeout,
        unready: if args.keep { Unready::Keep } else { Unready::End },
    })
}
