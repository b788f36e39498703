//! `alhena run`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use alhena::agent::Place;
use alhena::agent::env::Environment;
use alhena::agent::hooks::{Hooks, Moment};
use alhena::hosts::dialect::with_stdin;
use alhena::{
    AcpAgent, Failure, FailureKind, Finder, Gemini, Hint, NotFound, Outcome, Prompt, PromptBy, Request, Run,
    RunError, Status, Transport,
};
use clap::ValueEnum;

use super::agent::Agent;
use super::limits::Limits;
use super::permissions::Permissions;
use super::spending::Spending;

use crate::cassette::{self, CassetteArgs};
use crate::command_error::{CommandError, Done, complain};
use crate::config::Config;
use crate::echo::Echo;
use crate::limit;
use crate::listener;
use crate::offline;
use crate::output::{self, Stream, say};
use crate::signals::{self, Interrupts};
use crate::stdin::{self, Expect, Piped, Unread};
use crate::views::{self, Claims, Name, Target};

/// Run Gemini CLI on a prompt and tell the truth about how it went.
///
/// The exit code says how it ended; `alhena help exit-codes` explains them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena run \"Explain this repository\"
  alhena run --approval auto-edit --trust \"Fix the failing test\"
  git diff | alhena run \"Review this\"
  cargo test 2>&1 | alhena run --stdin \"Explain\"
  alhena run --prompt=\"-v is which option of ls?\"
  alhena run --offline \"Write a haiku about rivers into haiku.txt\"
  alhena run --agent-command 'qwen --acp' \"Explain this repository\"
  alhena run --cassette greeting.json \"Say hello\"   (the first time recorded, from then on played back)")]
pub struct Args {
    /// The prompt. `-`, or none, reads it from stdin; what is piped in beside a prompt is sent before it.
    ///
    /// A pipe that stays silent for half a second adds nothing, unless --stdin says to wait for it; `< /dev/null` keeps a
    /// loop's input from being read.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// The prompt, also one that begins with a dash: --prompt=TEXT.
    #[arg(
        long = "prompt",
        short = 'p',
        value_name = "TEXT",
        conflicts_with = "prompt",
        allow_hyphen_values = true
    )]
    prompt_option: Option<String>,
    /// Read the prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "prompt_option"])]
    prompt_file: Option<PathBuf>,
    /// Wait for what is piped in beside the prompt, to its end and however long it is silent.
    #[arg(long)]
    stdin: bool,
    /// How the prompt gets to the CLI.
    #[arg(long, value_enum, default_value = "auto")]
    prompt_by: By,
    /// How Gemini CLI is talked to; over ACP it may edit build files, which it refuses headless [default: headless].
    #[arg(long, value_enum)]
    transport: Option<Way>,
    /// Run another agent that speaks ACP by this command, such as 'qwen --acp'.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["gemini", "offline", "cassette"])]
    agent_command: Option<String>,
    /// Use the scripted model on this machine instead of Gemini; with a file, that scenario.
    #[arg(long, value_name = "SCENARIO", num_args = 0..=1, require_equals = true, conflicts_with = "cassette")]
    offline: Option<Option<PathBuf>>,
    #[command(flatten)]
    cassette: CassetteArgs,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    permissions: Permissions,
    /// The id for the new session.
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    spending: Spending,
    /// The answer has to fit this JSON schema, in a file or given as it is; `alhena help schema` explains it.
    #[arg(long, value_name = "FILE|JSON")]
    schema: Option<String>,
    /// How often the model may try again when its answer does not fit [default: 2].
    #[arg(long, value_name = "N", requires = "schema")]
    schema_attempts: Option<u32>,
    /// A shell command that decides: EVENT is before-tool, after-tool or before-model; `alhena help hooks` explains it.
    #[arg(long = "hook", value_name = "EVENT=COMMAND")]
    hooks: Vec<HookCommand>,
    /// How long such a command may take; then the answer is no.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = limit::time)]
    hook_timeout: Duration,
    /// What to print; pretty on a terminal, text otherwise.
    #[arg(long = "as", value_enum, value_name = "VIEW")]
    view: Option<Name>,
    /// Print into this file instead; `-` is stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep everything that the CLI wrote in this directory, for `alhena parse DIR`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    quiet: bool,
    /// Print what Gemini CLI says on its stderr while it says it, too.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Leave the defaults in files alone; `alhena help config` explains them.
    #[arg(long)]
    no_config: bool,
    /// More arguments for Gemini CLI itself.
    #[arg(last = true, value_name = "ARGS")]
    extra: Vec<OsString>,
}

/// `EVENT=COMMAND`.
#[derive(Clone, Debug)]
struct HookCommand {
    moment: Moment,
    command: String,
}

impl FromStr for HookCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Moment::ALL.map(Moment::name).join(", ");
        let (name, command) = text.split_once('=').ok_or("write EVENT=COMMAND")?;
        let moment = Moment::named(name)
            .ok_or_else(|| format!("there is no event {name:?}; there are {}", known()))?;
        match command.trim().is_empty() {
            true => Err(format!("{name} has no command")),
            false => Ok(Self { moment, command: command.to_owned() }),
        }
    }
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
enum Way {
    /// A process for the prompt, that writes stream-json.
    Headless,
    /// The Agent Client Protocol: what would need a yes is decided by rules and --approval.
    Acp,
    /// The first that can do what is asked.
    Auto,
}

pub fn execute(args: Args) -> Done {
    let config = config(&args);
    let chosen = args.view.or_else(|| config.as_ref().ok()?.view);
    let view = chosen.unwrap_or_else(|| {
        match args.output.as_ref().is_none_or(|path| path.as_os_str() == "-") && Stream::Out.is_terminal() {
            true => Name::Pretty,
            false if args.schema.is_some() => Name::Data,
            false => Name::Text,
        }
    });
    let (target, file) = target(args.output.as_ref())
        .map_err(|error| CommandError::usage(error, "Give a file that can be written to."))?;
    let (quiet, verbose) = (args.quiet, args.verbose);
    let interrupts = Interrupts::catch();
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena::agent::supervise::adoption::every_child_is_a_runs();
    let started = config.and_then(|config| begin(args, view, config, &interrupts));
    if started.is_ok() || view.says_failures() {
        empty(file.as_ref());
    }
    let outcome = match started {
        Ok((run, offline, cassette)) => {
            if offline.is_some() && !quiet {
                // Said whatever the view: nobody may take the scripted model for a real one.
                say(format_args!("{}.", offline::NOTICE));
            }
            match &file {
                Some(file) => listener::stop_when_gone(file, run.stopper()),
                None => listener::stop_when_gone(rustix::stdio::stdout(), run.stopper()),
            }
            // A run that is over already has nothing more to say.
            let echo = verbose.then(|| Echo::of(&run.about().stderr).ok());
            let outcome = follow(run, &interrupts, view, target, quiet);
            drop(echo);
            drop(offline);
            let stopped = outcome.as_ref().is_ok_and(|outcome| {
                matches!(outcome.status, Status::Cancelled | Status::Timeout | Status::Stalled)
            });
            cassette.into_iter().flat_map(|cassette| cassette.take_out(stopped)).for_each(say);
            outcome
        }
        Err(error) => {
            let code = error.exit_status();
            if !view.says_failures() || !quiet {
                complain(&error, &error.hint().unwrap_or_default());
            }
            // Whoever reads the outcome gets one also when nothing could be started.
            let outcome = Outcome::not_begun(error.into_failure());
            views::failed_to_start(view, outcome, target);
            return Ok(ExitCode::from(code));
        }
    };
    Ok(match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => output::written(Err(error)),
    })
}

/// The file as well, which still holds what it held: a request that is refused costs nothing.
fn target(output: Option<&PathBuf>) -> io::Result<(Target, Option<File>)> {
    let Some(path) = output.filter(|path| path.as_os_str() != "-") else {
        return Ok((Target::stdout(), None));
    };
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

/// The defaults in files, for where this runs.
fn config(args: &Args) -> Result<Config, RunError> {
    let dir = args.agent.dir.as_deref().unwrap_or(Path::new("."));
    Config::of_run(dir, args.agent.said_trust(), args.no_config, &Environment::of_process())
}

/// Everything up to the start.
fn begin(
    mut args: Args,
    view: Name,
    config: Config,
    interrupts: &Interrupts,
) -> Result<(Run, Option<offline::Offline>, Option<cassette::OfRun>), RunError> {
    let mut environment = Environment::of_process();
    if let Some(agent) = args.agent_command.take() {
        let agent = AcpAgent::new(&agent)?;
        if matches!(args.transport, Some(Way::Headless)) {
            return Err(RunError::Usage {
                message: format!("{} speaks ACP, and --transport headless is for Gemini CLI", agent.name()),
                hint: "Leave out --transport.".to_owned(),
            });
        }
        args.transport = Some(Way::Acp);
        let config = config.for_other_agents();
        args.agent.fill(&config);
        let request = request(args, view, &config, interrupts)?;
        return Ok((agent.run_in(request, &environment)?, None, None));
    }
    args.agent.fill(&config);
    let (scenario, gemini, approval, quiet) =
        (args.offline.clone(), args.agent.gemini.clone(), args.agent.approval, args.quiet);
    let cassette = args.cassette.clone();
    let mut request = request(args, view, &config, interrupts)?;
    let offline = match &scenario {
        Some(scenario) => {
            Some(offline::prepare(scenario.as_deref(), approval, &mut request, &mut environment)?)
        }
        None => None,
    };
    let cassette = cassette::prepare(&cassette, &mut request, &mut environment)?;
    let gemini = match (gemini, offline.is_some()) {
        (None, true) => super::install::fetched(None, &environment, quiet)?,
        (path, _) => find(path, &mut request, &environment, quiet, interrupts)?,
    };
    let run = gemini.run_in(request, &environment)?;
    Ok((run, offline, cassette))
}

/// Looks for the CLI, on the run's own time: a command that has to be asked for its version may take long.
pub(super) fn find(
    path: Option<PathBuf>,
    request: &mut Request,
    environment: &Environment,
    quiet: bool,
    interrupts: &Interrupts,
) -> Result<Gemini, RunError> {
    if let Some(version) = path.as_deref().and_then(super::install::as_version) {
        return super::install::fetched(Some(version), environment, quiet);
    }
    let start = Instant::now();
    let deadline = request.timeout.and_then(|timeout| start.checked_add(timeout));
    let mut finder = Finder::new().env(environment.clone()).trust(request.trust);
    finder = finder.deadline(deadline).stop_when(signals::have_come);
    if let Some(dir) = &request.dir {
        finder = finder.dir(dir);
    }
    if let Some(path) = path {
        finder = finder.path(path);
    }
    let (found, tried) = finder.find_first();
    if interrupts.caught().is_some() {
        return Err(cancelled("Stopped before Gemini CLI was found"));
    }
    if let Some(timeout) = request.timeout.filter(|timeout| start.elapsed() >= *timeout) {
        let message = format!("the time limit of {timeout:?} was over before Gemini CLI told its version");
        return Err(RunError::Failed(Box::new(Failure::new(FailureKind::Timeout, message))));
    }
    request.began = Some(start);
    // Whoever has a CLI in the project expects that one.
    let passed_over = tried.iter().filter(|tried| tried.place == Place::Project && tried.is_worth_telling());
    request.notices.extend(passed_over.map(|tried| format!("{tried}; it was passed over")));
    found.ok_or_else(|| super::detect::not_found(&NotFound { tried }))
}

fn request(
    mut args: Args,
    view: Name,
    config: &Config,
    interrupts: &Interrupts,
) -> Result<Request, RunError> {
    let given = args.prompt.or(args.prompt_option);
    let given =
        if given.is_none() && args.prompt_file.is_none() { args.agent.prompt_behind_resume() } else { given };
    let taken_for_session = args.agent.word_behind_resume().filter(|_| given.is_none()).map(str::to_owned);
    let source = Source { text: given, file: args.prompt_file, by: args.prompt_by, wait: args.stdin };
    let (prompt, notice) = source.prompt(interrupts).map_err(|error| match (error, taken_for_session) {
        (RunError::Usage { message, .. }, Some(word)) => RunError::Usage {
            message: format!("{message}: {word:?} behind --resume was taken for the session"),
            hint: format!("If it is the prompt, write --resume=latest {word:?}; if not, give a prompt too."),
        },
        (error, _) => error,
    })?;
    let mut request = Request::with_prompt(prompt);
    request.notices.extend(notice);
    request.prompt_by = match args.prompt_by {
        By::Auto => PromptBy::Auto,
        By::Flag => PromptBy::Flag,
        By::Stdin => PromptBy::Stdin,
        By::File => PromptBy::File,
        By::Positional => PromptBy::Positional,
    };
    request.transport = match args.transport {
        None | Some(Way::Headless) => Transport::Headless,
        Some(Way::Acp) => Transport::Acp,
        Some(Way::Auto) => Transport::Auto,
    };
    request.trust = config.trust.unwrap_or_default();
    args.agent.describe(&mut request)?;
    args.permissions.describe(&mut request)?;
    request.session_id = args.session_id;
    args.limits.describe(config, &mut request);
    request.notices.extend(config.notice());
    args.spending.describe(&mut request)?;
    if !args.hooks.is_empty() {
        let commands = args.hooks.into_iter().map(|hook| (hook.moment, hook.command)).collect();
        request.hooks = Some(Hooks::of_commands(commands, args.hook_timeout));
    }
    if let Some(schema) = args.schema {
        request.schema = Some(super::schema::read(&schema)?);
    } else if view == Name::Data {
        return Err(RunError::Usage {
            message: "--as data prints an answer that fits a schema, and there is none".to_owned(),
            hint: "Give a schema with --schema FILE.".to_owned(),
        });
    }
    request.schema_attempts = args.schema_attempts.unwrap_or(request.schema_attempts);
    request.record = args.record;
    request.extra_args = args.extra;
    request.raw_lines = view.wants_lines();
    request.conversation = view.wants_conversation();
    Ok(request)
}

/// Where the prompt is.
struct Source {
    text: Option<String>,
    file: Option<PathBuf>,
    by: By,
    /// Whether stdin is waited for, though there is a prompt.
    wait: bool,
}

impl Source {
    /// The prompt from wherever it was given with what is piped in beside it, and what people should know of that.
    fn prompt(self, interrupts: &Interrupts) -> Result<(Prompt, Option<String>), RunError> {
        let usage =
            |message: &str, hint: &str| RunError::Usage { message: message.into(), hint: hint.into() };
        let hint = "Give a prompt as an argument, by --prompt-file or on stdin.";
        let Source { text, file, by, wait } = self;
        let given = text.as_deref().is_some_and(|text| text != "-") || file.is_some();
        if text.is_none() && !given && io::stdin().is_terminal() {
            return Err(usage("there is no prompt", hint));
        }
        let expect = if given && !wait { Expect::Perhaps } else { Expect::Everything };
        let (piped, left_open) = from_stdin(expect, interrupts)?;
        let prompt = match (text, file) {
            (_, Some(file)) if piped.is_empty() => Prompt::File(file),
            (_, Some(_)) if matches!(by, By::File) => {
                return Err(usage(
                    "there is something on stdin, and --prompt-by file sends only the file",
                    "Leave out --prompt-by, or put `< /dev/null` behind the command.",
                ));
            }
            (_, Some(file)) => {
                let text = std::fs::read_to_string(&file).map_err(|error| {
                    usage(&format!("{}: {error}", file.display()), "Give a text file that can be read.")
                })?;
                Prompt::Text(with_stdin(&text, &piped))
            }
            (Some(text), None) if given => Prompt::Text(with_stdin(&text, &piped)),
            _ => Prompt::Text(piped),
        };
        // Wrong usage is said before anything is looked for or fetched.
        match &prompt {
            Prompt::Text(text) if text.trim().is_empty() => Err(usage("the prompt is empty", hint)),
            _ => Ok((prompt, left_open.then(|| NOT_READ.to_owned()))),
        }
    }
}

/// Hosts and CI leave pipes open that nobody writes to, but behind `cargo test |` it is the very thing that was meant.
const NOT_READ: &str = "stdin is a pipe that was silent for half a second, so it was not read; --stdin waits for it, `< /dev/null` says that there is nothing";

fn cancelled(message: &str) -> RunError {
    RunError::Failed(Box::new(Failure::new(FailureKind::Cancelled, message)))
}

/// What came on stdin, and whether it was left open.
fn from_stdin(expect: Expect, interrupts: &Interrupts) -> Result<(String, bool), RunError> {
    let Piped { bytes, left_open } = stdin::read(expect, interrupts).map_err(|unread| match unread {
        Unread::Interrupted => cancelled(&unread.to_string()),
        Unread::TooMuch => RunError::Usage {
            message: unread.to_string(),
            hint: "Put the material into files and name them in the prompt.".to_owned(),
        },
        Unread::Failed(_) => RunError::Usage {
            message: unread.to_string(),
            hint: "Give the prompt as an argument or by --prompt-file.".to_owned(),
        },
    })?;
    let text = String::from_utf8(bytes).map_err(|_| RunError::Usage {
        message: "what came on stdin is not UTF-8 text".to_owned(),
        hint: "Gemini CLI takes text; put other data into a file and name it in the prompt.".to_owned(),
    })?;
    Ok((text, left_open))
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
            written = views::show(&mut *view, item);
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
        Err(error) if !output::is_gone(&error) => Err(error),
        _ => {
            view.close(&outcome)
                .or_else(|error| if output::is_gone(&error) { Ok(()) } else { Err(error) })?;
            Ok(outcome)
        }
    }
}
