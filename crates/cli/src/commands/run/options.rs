//! The options of `alhena run`, and the request that they make.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use alhena::agent::{Prompt, PromptBy, Transport};
use alhena::hosts::dialect::with_stdin;
use alhena::{Request, RunError};
use clap::ValueEnum;

use super::asked::Beside;
use super::cancelled;
use crate::cassette::CassetteArgs;
use crate::commands::agent::Agent;
use crate::commands::hooking::Hooking;
use crate::commands::limits::Limits;
use crate::commands::permissions::Permissions;
use crate::commands::spending::Spending;
use crate::config::Config;
use crate::output::say;
use crate::signals::Interrupts;
use crate::stdin::{self, Silence, Unread};
use crate::views::Name;

/// Run Gemini CLI on a prompt and tell the truth about how it went.
///
/// The exit code says how it ended; `alhena help exit-codes` explains them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena run \"Explain this repository\"
  alhena run --approval auto-edit --trust \"Fix the failing test\"
  git diff | alhena run \"Review this\"
  cargo test 2>&1 | alhena run \"Explain\"
  alhena run --prompt=\"-v is which option of ls?\"
  alhena run --offline \"Write a haiku about rivers into haiku.txt\"
  alhena run --agent-command 'qwen --acp' \"Explain this repository\"
  alhena run --cassette greeting.json \"Say hello\"   (the first time recorded, from then on played back)")]
pub struct Args {
    /// The prompt. `-`, or none, reads it from stdin; input that is piped in beside a prompt is sent before it.
    ///
    /// Piped input is read to its end. A pipe that sends nothing for 30 seconds is refused; `< /dev/null` or --no-stdin runs
    /// without it, also in a loop whose input must not be read.
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
    /// Do not read stdin
    #[arg(long)]
    no_stdin: bool,
    /// How the prompt gets to the CLI.
    #[arg(long, value_enum, default_value = "auto")]
    prompt_by: By,
    /// How Gemini CLI is talked to; over ACP it may edit build files, which it refuses headless [default: headless].
    #[arg(long, value_enum)]
    pub(super) transport: Option<Way>,
    /// Run another agent that speaks ACP by this command, such as 'qwen --acp'.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["gemini", "offline", "cassette"])]
    pub(super) agent_command: Option<String>,
    /// Use the scripted model on this machine instead of Gemini; with a file, that scenario.
    #[arg(long, value_name = "SCENARIO", num_args = 0..=1, require_equals = true, conflicts_with = "cassette")]
    pub(super) offline: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(super) cassette: CassetteArgs,
    #[command(flatten)]
    pub(super) agent: Agent,
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
    pub(super) schema: Option<String>,
    /// How often the model may try again when its answer does not fit [default: 2].
    #[arg(long, value_name = "N", requires = "schema")]
    schema_attempts: Option<u32>,
    #[command(flatten)]
    hooking: Hooking,
    /// Ask on the terminal before this tool runs, with its diff or command: NAME, or run_shell_command(PREFIX); can be repeated.
    #[arg(long, value_name = "TOOL", conflicts_with = "agent_command")]
    confirm: Vec<String>,
    /// What to print; pretty on a terminal, text otherwise.
    #[arg(long = "as", value_enum, value_name = "VIEW")]
    pub(super) view: Option<Name>,
    /// Print into this file instead; `-` is stdout.
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Keep everything that the CLI wrote in this directory, for `alhena parse DIR`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Print what Gemini CLI says on its stderr while it says it, too.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Leave the defaults in files alone; `alhena help config` explains them.
    #[arg(long)]
    pub(super) no_config: bool,
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
pub(super) enum Way {
    /// A process for the prompt, that writes stream-json.
    Headless,
    /// The Agent Client Protocol: what would need a yes is decided by rules and --approval.
    Acp,
    /// The first that can do what is asked.
    Auto,
}

impl From<Way> for Transport {
    fn from(way: Way) -> Self {
        match way {
            Way::Headless => Transport::Headless,
            Way::Acp => Transport::Acp,
            Way::Auto => Transport::Auto,
        }
    }
}

/// The request that the options make.
pub(super) fn request(
    mut args: Args,
    view: Name,
    config: &Config,
    beside: Beside<'_>,
) -> Result<Request, RunError> {
    let given = args.prompt.or(args.prompt_option);
    let given =
        if given.is_none() && args.prompt_file.is_none() { args.agent.prompt_behind_resume() } else { given };
    let taken_for_session = args.agent.word_behind_resume().filter(|_| given.is_none()).map(str::to_owned);
    let beside = match args.no_stdin {
        true if given.as_deref() == Some("-") => {
            return Err(RunError::Usage {
                message: "the prompt - is read from stdin, and --no-stdin forbids that".to_owned(),
                hint: "Leave out one of them.".to_owned(),
            });
        }
        true => Beside::Nothing,
        false => beside,
    };
    let source = Source { text: given, file: args.prompt_file, by: args.prompt_by, quiet: args.quiet };
    let prompt = source.prompt(beside).map_err(|error| match (error, taken_for_session) {
        (RunError::Usage { message, .. }, Some(word)) => RunError::Usage {
            message: format!("{message}: {word:?} behind --resume was taken for the session"),
            hint: format!("If it is the prompt, write --resume=latest {word:?}; if not, give a prompt too."),
        },
        (error, _) => error,
    })?;
    let mut request = Request::with_prompt(prompt);
    request.prompt_by = match args.prompt_by {
        By::Auto => PromptBy::Auto,
        By::Flag => PromptBy::Flag,
        By::Stdin => PromptBy::Stdin,
        By::File => PromptBy::File,
        By::Positional => PromptBy::Positional,
    };
    request.transport = args.transport.map_or(Transport::Headless, Transport::from);
    request.trust = config.trust.unwrap_or_default();
    args.agent.describe(&mut request)?;
    args.permissions.describe(&mut request)?;
    request.session_id = args.session_id;
    args.limits.describe(config, &mut request);
    request.notices.extend(config.notice());
    args.spending.describe(&mut request)?;
    args.hooking.describe(&mut request);
    super::confirm::add(&args.confirm, &mut request)?;
    if let Some(schema) = args.schema {
        request.schema = Some(crate::commands::schema::read(&schema)?);
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
    /// Whether to wait for stdin without saying so.
    quiet: bool,
}

impl Source {
    /// Joins the prompt and the input that is piped in beside it.
    fn prompt(self, beside: Beside<'_>) -> Result<Prompt, RunError> {
        let usage =
            |message: &str, hint: &str| RunError::Usage { message: message.into(), hint: hint.into() };
        let hint = "Give a prompt as an argument, by --prompt-file or on stdin.";
        let Source { text, file, by, quiet } = self;
        let dash = text.as_deref() == Some("-");
        let mut given = file.is_some() || text.is_some();
        let piped = match beside {
            Beside::Stdin(interrupts) => {
                given &= !dash;
                let terminal = io::stdin().is_terminal();
                if !given && !dash && terminal {
                    return Err(usage("there is no prompt", hint));
                }
                // A person may take any time to type.
                let silence = if dash && terminal { Silence::Wait } else { Silence::OF_RUN };
                from_stdin(silence, interrupts, quiet)?
            }
            Beside::Nothing if !given => {
                return Err(usage("there is no prompt", "Give a prompt, or a --prompt-file."));
            }
            Beside::Nothing => String::new(),
        };
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
            _ => Ok(prompt),
        }
    }
}

/// Reads standard input as text.
fn from_stdin(silence: Silence, interrupts: &Interrupts, quiet: bool) -> Result<String, RunError> {
    let notice = || {
        if !quiet {
            say("Waiting for input on stdin; `< /dev/null` or --no-stdin runs without it.");
        }
    };
    let bytes = stdin::read(silence, interrupts, notice).map_err(|unread| {
        let hint = match unread {
            Unread::Interrupted => return cancelled(&unread.to_string()),
            Unread::Silent(_) => {
                "Put `< /dev/null` behind the command or use --no-stdin to run without input; save the output of a slow command to a file and pass it by `< FILE`."
            }
            Unread::TooMuch => "Put the material into files and name them in the prompt.",
            Unread::Failed(_) => "Give the prompt as an argument or by --prompt-file.",
        };
        RunError::Usage { message: unread.to_string(), hint: hint.to_owned() }
    })?;
    String::from_utf8(bytes).map_err(|_| RunError::Usage {
        message: "what came on stdin is not UTF-8 text".to_owned(),
        hint: "Gemini CLI takes text; put other data into a file and name it in the prompt.".to_owned(),
    })
}
