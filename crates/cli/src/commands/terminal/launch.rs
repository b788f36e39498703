//! `alhena terminal launch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_model::Hint;
use alhena_model::options::{Resume, RunOptions, time};
use alhena_terminal::mcp::McpScope;
use alhena_terminal::profile::{Places, Profile, ProfileBy};
use alhena_terminal::screen::Status;
use alhena_terminal::{
    Launch, Layout, TerminalError, TerminalErrorKind, Terminals, Unready, usual_tmux_conf,
};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};

use super::Described;
use crate::commands::install;
use crate::commands::options::{Given, OfTerminal};
use crate::output::{print, print_json, say};
use crate::style::with_flags;

/// Launch an interactive agent and wait until it is ready; prints its name.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to call it; made up by default.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    given: Given<OfTerminal>,
    /// Who the agent is: a profile's path, or its name.
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// How it learns that: home (a context file of its own), or document (a first message, and GEMINI.md).
    #[arg(long, value_name = "WAY", default_value = "home")]
    profile_by: ProfileBy,
    /// Where its MCP servers are written down: terminal (only it sees them), or user (the user's settings).
    #[arg(long, value_name = "SCOPE", default_value = "terminal")]
    mcp_scope: McpScope,
    /// How it lies in tmux: in a window of its own, or in one pane beside others that were launched so.
    #[arg(long, value_name = "LAYOUT", default_value = "windows", value_parser = layout())]
    layout: Layout,
    /// What to do when it waits for somebody: `bell`, or a command for a shell, which finds ALHENA_TERMINAL, ALHENA_STATUS
    /// and ALHENA_QUESTION in its environment and may take 30 s.
    #[arg(long, value_name = "bell|COMMAND", value_parser = NonEmptyStringValueParser::new())]
    notify: Option<String>,
    /// Use your own configuration of tmux, or this file, for Alhena's server.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    tmux_conf: Option<Option<PathBuf>>,
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

/// By name, so that shells can complete it.
fn layout() -> impl TypedValueParser<Value = Layout> {
    PossibleValuesParser::new(["windows", "tiled", "columns", "rows"])
        .map(|name| name.parse().unwrap_or_default())
}

pub fn execute(mut args: Args, terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    if let Some(name) = args.name.as_deref() {
        let options = &mut args.given.options;
        if options.resume.is_some() {
            go_on(options, terminals, name)?;
        }
        terminals.check_name(name, options.resume.is_some())?;
    }
    let terminal = terminals.launch(launch(args)?)?;
    let record = terminal.record()?;
    if json {
        let reading = terminal.status()?;
        return Ok(print_json(&Described { record, reading }));
    }
    for warning in &record.warnings {
        say(with_flags(warning));
    }
    Ok(print(terminal.name()))
}

/// Goes on as an agent of that name that has gone: where it was, with its session, model and mode, where nothing else is said.
fn go_on(options: &mut RunOptions, terminals: &Terminals, name: &str) -> Result<(), TerminalError> {
    let Ok(gone) = terminals.find(name) else { return Ok(()) };
    let has_gone = gone.status_now().is_ok_and(|reading| reading.status == Status::Exited);
    if !has_gone {
        return Ok(());
    }
    gone.wait_until_gone()?;
    let record = gone.record()?;
    let session = gone.session_id();
    if options.resume == Some(Resume::Latest) && session.is_none() {
        // The latest is that of another.
        let message = format!("{name} has gone, and had no session to go on with");
        let hint = format!("`{}` forgets it; then launch it anew.", gone.command_line("exit", &[]));
        return Err(TerminalError::new(TerminalErrorKind::Usage, message).with_hint(hint));
    }
    if options.resume == Some(Resume::Latest) {
        options.resume = session.map(Resume::Id);
    }
    options.dir.get_or_insert(record.dir);
    options.gemini.get_or_insert(record.gemini);
    options.model = options.model.take().or(record.model);
    options.approval = options.approval.or_else(|| record.approval.parse().ok());
    Ok(())
}

pub fn launch(args: Args) -> Result<Launch, TerminalError> {
    let usage =
        |message: String, hint: &str| TerminalError::new(TerminalErrorKind::Usage, message).with_hint(hint);
    let mut options = args.given.options;
    if let Some(version) = options.gemini.as_deref().and_then(install::as_version) {
        let fetched = install::fetched(Some(version), &Environment::of_process(), false);
        let missing = |error: alhena_agent::RunError| {
            TerminalError::new(TerminalErrorKind::NotInstalled, error.to_string())
                .with_hint(error.hint().unwrap_or_default())
        };
        options.gemini = Some(fetched.map_err(missing)?.path);
    }
    options.args = args.cli_arg;
    let project = options.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let places = Places::usual(&Environment::of_process(), &project, options.trust.unwrap_or_default());
    let profile = args.profile.map(|name| Profile::load(&name, &places)).transpose();
    let profile = profile.map_err(|error| usage(error.to_string(), &places.hint(&error)))?;
    Ok(Launch {
        name: args.name,
        prompt: args.prompt.join(" "),
        options,
        mcp_servers: Vec::new(),
        profile,
        profile_by: args.profile_by,
        mcp_scope: args.mcp_scope,
        supervisor: None,
        layout: args.layout,
        tmux_conf: args.tmux_conf.map(conf).transpose()?,
        notify: args.notify,
        columns: args.columns,
        rows: args.rows,
        timeout: args.timeout,
        unready: if args.keep { Unready::Keep } else { Unready::End },
    })
}

/// The configuration that was named, or the usual one.
fn conf(named: Option<PathBuf>) -> Result<PathBuf, TerminalError> {
    let found = named.or_else(|| usual_tmux_conf(&Environment::of_process()));
    let file = found.and_then(|file| std::path::absolute(file).ok());
    file.ok_or_else(|| {
        TerminalError::new(TerminalErrorKind::Usage, "there is no configuration of tmux in your home")
            .with_hint("Name it with --tmux-conf=FILE.")
    })
}
