//! `alhena chat`.

pub(super) mod asked;
mod driven;
pub(super) mod editor;
pub(super) mod input;
mod interrupt;
mod scripted;
mod terminal;
mod undo;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use alhena::agent::env::Environment;
use alhena::agent::{AcpAgent, Talk, Whom};
use alhena::{Request, RunError};

use self::interrupt::Interrupts;
use super::agent::Agent;
use super::hooking::Hooking;
use super::limits::Limits;
use super::permissions::Permissions;
use super::spending::Spending;
use crate::command_error::Done;
use crate::config::Config;
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
    /// Use the scripted model on this machine instead of Gemini; with a file, that scenario.
    #[arg(long, value_name = "SCENARIO", num_args = 0..=1, require_equals = true)]
    offline: Option<Option<PathBuf>>,
    /// Talk to another agent that speaks ACP by this command, such as 'qwen --acp'.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["gemini", "offline"])]
    agent_command: Option<String>,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    permissions: Permissions,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    spending: Spending,
    #[command(flatten)]
    hooking: Hooking,
    /// Print events as JSON, one a line, and take each line of stdin as a prompt.
    #[arg(long)]
    json: bool,
    /// Let a program hold it: requests as JSON lines on stdin, messages as they grow on stdout.
    #[arg(long, conflicts_with_all = ["json", "prompt"])]
    control: bool,
    /// Leave the defaults in files alone; `alhena help config` explains them.
    #[arg(long)]
    no_config: bool,
    /// More arguments for Gemini CLI itself.
    #[arg(last = true, value_name = "ARGS")]
    extra: Vec<OsString>,
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
    let _by_mark_only = alhena::agent::supervise::adoption::every_child_is_a_runs();
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
    mut args: Args,
    holder: Holder,
    interrupts: &signals::Interrupts,
) -> Result<(Talk, Option<String>, Option<offline::Offline>), RunError> {
    let mut environment = Environment::of_process();
    let dir = args.agent.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let other = args.agent_command.as_deref().map(AcpAgent::new).transpose()?;
    let mut config = Config::of_run(&dir, args.agent.said_trust(), args.no_config, &environment)?;
    if other.is_some() {
        config = config.for_other_agents();
    }
    args.agent.fill(&config);
    let (gemini, approval) = (args.agent.gemini.clone(), args.agent.approval);
    let prompt = args.prompt.or_else(|| args.agent.prompt_behind_resume());
    let mut request = Request::new("");
    request.trust = config.trust.unwrap_or_default();
    args.agent.describe(&mut request)?;
    request.notices.extend(config.notice());
    args.permissions.describe(&mut request)?;
    args.spending.describe(&mut request)?;
    args.hooking.describe(&mut request);
    args.limits.describe(&config, &mut request);
    request.extra_args = args.extra;
    request.conversation = holder == Holder::Program;
    if holder == Holder::Script {
        // Nobody is there.
        request.permission_timeout = Some(std::time::Duration::ZERO);
    }
    let offline = match &args.offline {
        Some(scenario) => {
            let offline = offline::prepare(scenario.as_deref(), approval, &mut request, &mut environment)?;
            // It is the questions that one wants to see.
            request.approval = approval.unwrap_or_default();
            say(format_args!("{}.", offline::NOTICE));
            Some(offline)
        }
        None => None,
    };
    let who = match (other, gemini, offline.is_some()) {
        (Some(agent), ..) => Whom::Other(agent),
        (None, None, true) => Whom::Gemini(super::install::fetched(None, &environment, false)?),
        (None, path, _) => {
            Whom::Gemini(super::run::find(path, &mut request, &environment, false, interrupts)?)
        }
    };
    request.began = None;
    Ok((Talk::begin(who, request, environment)?, prompt, offline))
}
