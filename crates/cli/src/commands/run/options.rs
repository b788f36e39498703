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
use crate::signals::Interrupts;
use crate::stdin::{self, Expect, Piped, Unread};
use crate::views::Name;

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
    let source = Source { text: given, file: args.prompt_file, by: args.prompt_by, wait: args.stdin };
    let (prompt, notice) = source.prompt(beside).map_err(|error| match (error, taken_for_session) {
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
    /// Whether stdin is waited for, though there is a prompt.
    wait: bool,
}

impl Source {
    /// The prompt from wherever it was given with what is piped in beside it, and what people should know of that.
    fn prompt(self, beside: Beside<'_>) -> Result<(Prompt, Option<String>), RunError> {
        let usage =
            |message: &str, hint: &str| RunError::Usage { message: message.into(), hint: hint.into() };
        let hint = "Give a prompt as an argument, by --prompt-file or on stdin.";
        let Source { text, file, by, wait } = self;
        let (given, piped, left_open) = match beside {
            Beside::Stdin(interrupts) => {
                let given = text.as_deref().is_some_and(|text| text != "-") || file.is_some();
                if text.is_none() && !given && io::stdin().is_terminal() {
                    return Err(usage("there is no prompt", hint));
                }
                let expect = if given && !wait { Expect::Perhaps } else { Expect::Everything };
                let (piped, left_open) = from_stdin(expect, interrupts)?;
                (given, piped, left_open)
            }
            Beside::Nothing if text.is_none() && file.is_none() => {
                return Err(usage("there is no prompt", "Give a prompt, or a prompt_file."));
            }
            Beside::Nothing => (true, String::new(), false),
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
            _ => Ok((prompt, left_open.then(|| NOT_READ.to_owned()))),
        }
    }
}

/// Hosts and CI leave pipes open that nobody writes to, but behind `cargo test |` it is the very thing that was meant.
const NOT_READ: &str = "stdin is a pipe that was silent for half a second, so it was not read; --stdin waits for it, `< /dev/null` says that there is nothing";

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
