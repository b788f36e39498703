//! `alhena run`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena::env::Environment;
use alhena::home::McpServer;
use alhena::{
    Approval, Finder, Gemini, Item, Outcome, Prompt, PromptBy, Request, Resume, Run, RunError, Sandbox,
    SystemPrompt, Trust,
};
use clap::ValueEnum;

use super::complain;
use crate::offline;
use crate::signals::Interrupts;
use crate::views::{self, Claims, Name, Target};

/// Run Gemini CLI on a prompt and tell the truth about how it went.
///
/// The exit code says how it ended; `alhena help exit-codes` explains them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena run \"Explain this repository\"
  alhena run --approval auto-edit --trust \"Fix the failing test\"
  git diff | alhena run --as outcome -
  alhena run --offline \"Write a haiku about rivers into haiku.txt\"")]
pub struct Args {
    /// The prompt; `-`, or none with something on stdin, reads it from there.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// Read the prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// How the prompt gets to the CLI.
    #[arg(long, value_enum, default_value = "auto")]
    prompt_by: By,
    /// Use the scripted model on this machine instead of Gemini; with a file, that scenario.
    #[arg(long, value_name = "SCENARIO", num_args = 0..=1, require_equals = true)]
    offline: Option<Option<PathBuf>>,
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
    /// A policy file of Gemini CLI; can be repeated.
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// An MCP server for this run: 'NAME=COMMAND ARGS', 'NAME=URL' or a JSON file; can be repeated.
    #[arg(long, value_name = "SERVER")]
    mcp_server: Vec<String>,
    /// Instructions for the model beside the prompt.
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Whether the instructions come after the CLI's own or replace them.
    #[arg(long, value_enum, default_value = "append", requires = "system_prompt")]
    system_prompt_mode: PromptMode,
    /// Set a variable for the CLI (NAME=VALUE), or insist that it is set (NAME); can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Go on with a session: its id, or the latest.
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "latest")]
    resume: Option<String>,
    /// The id for the new session.
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Stop the run after this time, such as 90s or 10m.
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// Stop it when nothing comes within this time.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    first_event_timeout: Duration,
    /// Stop it when it is silent for this long while no tool runs.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5m")]
    stall_timeout: Duration,
    /// How many turns the model may take.
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// How often a failing request to the API is tried.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// What to print; pretty on a terminal, text otherwise.
    #[arg(long = "as", value_enum, value_name = "VIEW")]
    view: Option<Name>,
    /// Print into this file instead.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep everything that the CLI wrote in this directory, for `alhena parse DIR`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    quiet: bool,
    /// More arguments for Gemini CLI itself.
    #[arg(last = true, value_name = "ARGS")]
    extra: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Auto,
    Flag,
    Stdin,
    File,
    Positional,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TrustArg {
    Settings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PromptMode {
    Append,
    Replace,
}

/// `90s`, `10m`, `1h`, `500ms`, `2.5` (seconds).
pub fn time(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no time; write 90s, 10m, 1h or 500ms");
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let number: f64 = number.trim().parse().map_err(|_| bad())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" | "sec" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(bad)
}

pub fn execute(args: Args) -> ExitCode {
    let view = args.view.unwrap_or_else(|| match args.output.is_none() && io::stdout().is_terminal() {
        true => Name::Pretty,
        false => Name::Text,
    });
    let (target, file) = match target(args.output.as_ref()) {
        Ok(opened) => opened,
        Err(error) => {
            complain(&error, "Give a file that can be written to.");
            return ExitCode::from(2);
        }
    };
    let quiet = args.quiet;
    let interrupts = Interrupts::catch();
    let started = begin(args, view);
    if started.is_ok() || view.says_failures() {
        empty(file.as_ref());
    }
    let outcome = match started {
        Ok((run, offline)) => {
            if offline.is_some() {
                // Said whatever else is quiet: nobody may take the scripted model for a real one.
                eprintln!("{}.", offline::NOTICE);
            }
            let outcome = follow(run, &interrupts, view, target, quiet);
            drop(offline);
            outcome
        }
        Err(error) => {
            let code = error.exit_status();
            if !view.says_failures() || !quiet {
                complain(&error, error.hint());
            }
            // Whoever reads the outcome gets one also when nothing could be started.
            let outcome = Outcome { failure: Some(error.into_failure()), ..Outcome::default() };
            views::failed_to_start(view, outcome, target);
            return ExitCode::from(code);
        }
    };
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => {
            complain(&error, "");
            ExitCode::FAILURE
        }
    }
}

/// The file as well, which still holds what it held: a request that is refused costs nothing.
fn target(output: Option<&PathBuf>) -> io::Result<(Target, Option<File>)> {
    let Some(path) = output else { return Ok((Target::stdout(), None)) };
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .and_then(|file| Ok((Target::file(BufWriter::new(file.try_clone()?)), Some(file))))
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

fn empty(file: Option<&File>) {
    // What is no plain file, such as a pipe, has nothing to lose.
    let _not_a_file = file.map(|file| file.set_len(0));
}

/// Everything up to the start.
fn begin(args: Args, view: Name) -> Result<(Run, Option<offline::Offline>), RunError> {
    let mut environment = Environment::of_process();
    let (scenario, gemini, approval, quiet) =
        (args.offline.clone(), args.gemini.clone(), args.approval, args.quiet);
    let mut request = request(args, view)?;
    let offline = match &scenario {
        Some(scenario) => {
            Some(offline::prepare(scenario.as_deref(), approval, &mut request, &mut environment)?)
        }
        None => None,
    };
    let gemini = match (gemini, offline.is_some()) {
        (None, true) => super::install::pinned(&environment, quiet)?,
        (path, _) => find(path, &request, &environment)?,
    };
    let run = gemini.run_in(request, &environment)?;
    Ok((run, offline))
}

fn find(path: Option<PathBuf>, request: &Request, environment: &Environment) -> Result<Gemini, RunError> {
    let mut finder = Finder::new().env(environment.clone());
    if let Some(dir) = &request.dir {
        finder = finder.dir(dir);
    }
    if let Some(path) = path {
        finder = finder.path(path);
    }
    finder.find().map_err(|error| super::detect::not_found(&error))
}

fn request(args: Args, view: Name) -> Result<Request, RunError> {
    let usage = |message: String, hint: &str| RunError::Usage { message, hint: hint.to_owned() };
    let prompt = match (args.prompt, args.prompt_file) {
        (_, Some(file)) => Prompt::File(file),
        (Some(text), None) if text != "-" => Prompt::Text(text),
        (dash, None) => Prompt::Text(from_stdin(dash.is_some())?),
    };
    // Wrong usage is said before anything is looked for or fetched.
    if matches!(&prompt, Prompt::Text(text) if text.trim().is_empty()) {
        return Err(usage(
            "the prompt is empty".to_owned(),
            "Give a prompt as an argument, by --prompt-file or on stdin.",
        ));
    }
    if let Some(dir) = args.dir.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(usage(format!("{} is not a directory", dir.display()), "Give a directory that exists."));
    }
    let mut request = Request::with_prompt(prompt);
    request.prompt_by = match args.prompt_by {
        By::Auto => PromptBy::Auto,
        By::Flag => PromptBy::Flag,
        By::Stdin => PromptBy::Stdin,
        By::File => PromptBy::File,
        By::Positional => PromptBy::Positional,
    };
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
    request.policies = args.policy;
    for server in &args.mcp_server {
        let servers = McpServer::from_argument(server).map_err(|error| {
            usage(error.to_string(), "Write 'NAME=COMMAND ARGS', 'NAME=URL', or give a JSON file.")
        })?;
        request.mcp_servers.extend(servers);
    }
    request.system_prompt = args.system_prompt.map(|text| match args.system_prompt_mode {
        PromptMode::Append => SystemPrompt::Append(text),
        PromptMode::Replace => SystemPrompt::Replace(text),
    });
    for variable in args.env {
        match variable.split_once('=') {
            Some((name, value)) => request.env.push((name.into(), value.into())),
            None if std::env::var_os(&variable).is_some() => {}
            None => return Err(usage(format!("{variable} is not set"), "Set it, or write NAME=VALUE.")),
        }
    }
    request.resume = args.resume.map(|id| if id == "latest" { Resume::Latest } else { Resume::Id(id) });
    request.session_id = args.session_id;
    request.timeout = args.timeout;
    request.first_event_timeout = Some(args.first_event_timeout);
    request.stall_timeout = Some(args.stall_timeout);
    request.max_turns = args.max_turns;
    request.max_attempts = args.max_attempts;
    request.record = args.record;
    request.extra_args = args.extra;
    request.raw_lines = view.wants_lines();
    Ok(request)
}

fn from_stdin(asked: bool) -> Result<String, RunError> {
    let none = || RunError::Usage {
        message: "there is no prompt".to_owned(),
        hint: "Give it as an argument, by --prompt-file, or on stdin.".to_owned(),
    };
    if !asked && io::stdin().is_terminal() {
        return Err(none());
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|_| none())?;
    String::from_utf8(bytes).map_err(|_| RunError::Usage {
        message: "the prompt on stdin is not UTF-8 text".to_owned(),
        hint: "Gemini CLI takes text; put other data into a file and name it in the prompt.".to_owned(),
    })
}

/// Prints the run until it is over. ^C and the like stop it; the outcome then says so.
fn follow(
    mut run: Run,
    interrupts: &Interrupts,
    view: Name,
    target: Target,
    quiet: bool,
) -> io::Result<std::sync::Arc<Outcome>> {
    interrupts.stop(run.stopper());
    let mut view = views::open(view, target, quiet, Claims::Checked);
    let mut written = Ok(());
    while let Some(item) = run.next_item_blocking() {
        if written.is_ok() {
            written = match &item {
                Item::Event(event) => view.event(event),
                Item::Line(line) => view.line(line),
            };
            if run.caught_up() {
                written = written.and_then(|()| view.caught_up());
            }
            if written.is_err() {
                // Nobody reads any more: what the agent does from here on nobody asked for.
                run.stop();
            }
        }
    }
    view.sessions(&run.session_files());
    let outcome = run.outcome_blocking();
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => {
            view.close(&outcome).or_else(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(()),
                _ => Err(error),
            })?;
            Ok(outcome)
        }
    }
}
