//! The options of `alhena run`, and the request that they make.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use alhena_agent::{Prompt, PromptBy, Resume, RunError};
use alhena_hosts::dialect::with_stdin;

use super::asked::Asked;
use super::cancelled;
use crate::commands::options::{Given, OfRun, prompt_behind_resume};
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
    #[command(flatten)]
    pub(super) given: Given<OfRun>,
    /// Ask on the terminal before this tool runs, with its diff or command: NAME, or run_shell_command(PREFIX); can be repeated.
    #[arg(long, value_name = "TOOL", conflicts_with = "agent_command")]
    confirm: Vec<String>,
    /// What to print; pretty on a terminal, text otherwise.
    #[arg(long = "as", value_enum, value_name = "VIEW")]
    pub(super) view: Option<Name>,
    /// Print into this file instead; `-` is stdout.
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Print what Gemini CLI says on its stderr while it says it, too.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(super) verbose: bool,
}

/// Text that may belong to the prompt, beside the options.
#[derive(Clone, Copy)]
pub enum Beside<'a> {
    Stdin(&'a Interrupts),
    Nothing,
}

/// What the command line asks for; where it says nothing, the files with defaults count.
pub(super) fn asked(
    mut args: Args,
    view: Name,
    config: &Config,
    interrupts: &Interrupts,
) -> Result<Asked, RunError> {
    let mut options = args.given.options;
    let given = args.prompt.take().or(args.prompt_option);
    let given = match (given, &args.prompt_file) {
        (None, None) => prompt_behind_resume(&mut options),
        (given, _) => given,
    };
    let taken_for_session = match &options.resume {
        Some(Resume::Id(word)) if given.is_none() && !word.is_empty() => Some(word.clone()),
        _ => None,
    };
    let beside = match args.no_stdin {
        true if given.as_deref() == Some("-") => {
            return Err(RunError::usage(
                "the prompt - is read from stdin, and --no-stdin forbids that",
                "Leave out one of them.",
            ));
        }
        true => Beside::Nothing,
        false => Beside::Stdin(interrupts),
    };
    let by = options.prompt_by.unwrap_or_default();
    let source = Source { text: given, file: args.prompt_file, by, quiet: args.quiet };
    let prompt = source.prompt(beside).map_err(|error| match (error, taken_for_session) {
        (RunError::Usage { message, .. }, Some(word)) => RunError::usage(
            format!("{message}: {word:?} behind --resume was taken for the session"),
            format!("If it is the prompt, write --resume=latest {word:?}; if not, give a prompt too."),
        ),
        (error, _) => error,
    })?;
    let mut asked = super::asked::asked(prompt, options, config)?;
    let request = &mut asked.request;
    super::confirm::add(&args.confirm, request)?;
    if request.schema.is_none() && view == Name::Data {
        return Err(RunError::usage(
            "--as data prints an answer that fits a schema, and there is none",
            "Give a schema with --schema FILE.",
        ));
    }
    request.raw_lines = view.wants_lines();
    request.conversation = view.wants_conversation();
    Ok(asked)
}

/// Where the prompt is.
struct Source {
    text: Option<String>,
    file: Option<PathBuf>,
    by: PromptBy,
    /// Whether to wait for stdin without saying so.
    quiet: bool,
}

impl Source {
    /// Joins the prompt and the input that is piped in beside it.
    fn prompt(self, beside: Beside<'_>) -> Result<Prompt, RunError> {
        let usage = |message: &str, hint: &str| RunError::usage(message, hint);
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
            (_, Some(_)) if by == PromptBy::File => {
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
        RunError::usage(unread.to_string(), hint.to_owned())
    })?;
    String::from_utf8(bytes).map_err(|_| {
        RunError::usage(
            "what came on stdin is not UTF-8 text",
            "Gemini CLI takes text; put other data into a file and name it in the prompt.",
        )
    })
}
