//! `alhena chat`.

pub(super) mod asked;
mod driven;
pub(super) mod editor;
pub(super) mod input;
mod interrupt;
mod scripted;
mod terminal;
mod undo;

use std::io::IsTerminal;
use std::process::ExitCode;

use alhena_agent::env::Environment;
use alhena_agent::{RunError, Talk, Whom};

use self::interrupt::Interrupts;
use super::options::{Given, OfChat, prompt_behind_resume};
use super::run::asked::{Asked, Who, asked};
use crate::command_error::Done;
use crate::offline;
use crate::output::{Stream, say};
use crate::signals;

/// Hold a conversation with Gemini CLI in the terminal.
///
/// Answers are shown as they come. Before anything is done that the approval mode and the rules do not allow, the change or the
/// command is shown, and nothing happens without a yes. ^C cancels the turn, twice it ends the conversation.
///
/// Without a terminal each line of stdin is a prompt, and what would have to be asked is rejected. With --control a program is asked;
/// `alhena help control` explains how.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena chat
  alhena chat --approval auto-edit --allow 'shell(cargo *)' --deny 'edit(.env)'
  alhena chat --resume
  alhena chat --agent-command 'qwen --acp'
  alhena chat --offline \"Write a haiku about rivers into haiku.txt\"
  printf '%s\\n' \"Read a.txt\" \"Now summarise it\" | alhena chat --json")]
pub struct Args {
    /// What to say first.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    #[command(flatten)]
    given: Given<OfChat>,
    /// Print events as JSON, one a line, and take each line of stdin as a prompt.
    #[arg(long)]
    json: bool,
    /// Let a program hold it: requests as JSON lines on stdin, messages as they grow on stdout.
    #[arg(long, conflicts_with_all = ["json", "prompt"])]
    control: bool,
}

/// Who holds the conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// Somebody at a terminal.
    Person,
    /// Lines of stdin.
    Script,
    /// A program that is asked.
    Program,
}

pub fn execute(args: Args) -> Done {
    let json = args.json;
    let holder = match (args.control, std::io::stdin().is_terminal() && Stream::Out.is_terminal() && !json) {
        (true, _) => Holder::Program,
        (false, true) => Holder::Person,
        (false, false) => Holder::Script,
    };
    let first = signals::Interrupts::catch();
    // What is left of an agent whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let (talk, prompt, _offline) = match (begin(args, holder, &first), holder) {
        (Err(error), Holder::Program) => return Ok(ExitCode::from(driven::never_began(error))),
        (begun, _) => begun?,
    };
    let code = match holder {
        Holder::Person => terminal::hold(talk, prompt, &Interrupts::catch(true))?,
        Holder::Script => scripted::hold(talk, prompt, json, &Interrupts::catch(false))?,
        Holder::Program => driven::hold(talk, &first)?,
    };
    Ok(ExitCode::from(code))
}

/// Everything up to the start.
fn begin(
    args: Args,
    holder: Holder,
    interrupts: &signals::Interrupts,
) -> Result<(Talk, Option<String>, Option<offline::Offline>), RunError> {
    let mut environment = Environment::of_process();
    let mut options = args.given.options;
    let config = super::run::config(&options)?;
    let prompt = args.prompt.or_else(|| prompt_behind_resume(&mut options));
    let Asked { mut request, who, options } = asked(None, options, &config)?;
    request.conversation = holder == Holder::Program;
    if holder == Holder::Script {
        // Nobody is there.
        request.permission_timeout = Some(std::time::Duration::ZERO);
    }
    let offline = offline::prepare(&options, &mut request, &mut environment)?;
    if offline.is_some() {
        // It is the questions that one wants to see.
        request.approval = options.approval.unwrap_or_default();
        say(format_args!("{}.", offline::NOTICE));
    }
    let who = match (who, offline.is_some()) {
        (Who::Other(agent), _) => Whom::Other(agent),
        (Who::Gemini(None), true) => Whom::Gemini(super::install::fetched(None, &environment, false)?),
        (Who::Gemini(path), _) => {
            Whom::Gemini(super::run::find(path, &mut request, &environment, false, interrupts)?)
        }
    };
    request.began = None;
    Ok((Talk::begin(who, request, environment)?, prompt, offline))
}
