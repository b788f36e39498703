//! `alhena acp`: for editors that speak the Agent Client Protocol.
//!
//! It takes the protocol's requests on stdin and answers on stdout, and holds a conversation with Gemini CLI behind each session.

mod serve;
mod session;
mod start;
mod stored;
mod turns;

use std::io::IsTerminal;

use self::start::Starter;
use super::options::{Given, OfAcp};
use crate::command_error::{CommandError, Done};
use crate::output::say;
use crate::signals;

/// Be an agent for editors: the Agent Client Protocol on stdin and stdout, with Gemini CLI behind it.
///
/// Each session has an agent of its own, in a private home and under a keeper. What Gemini CLI does over ACP that nobody would
/// expect is cured; sessions can be listed and loaded, and usage is told. The editor is asked before anything is done that the
/// mode and the rules do not allow.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dir", |dir| dir.hide(true)), mut_arg("resume", |resume| resume.hide(true)))]
#[command(after_help = "Examples:
  alhena acp --approval auto-edit --deny 'edit(.env)'
  acpx --agent 'alhena acp' exec \"Explain this repository\"
  Zed, in settings.json:
    {\"agent_servers\": {\"Gemini by Alhena\": {\"type\": \"custom\", \"command\": \"alhena\", \"args\": [\"acp\"]}}}")]
pub struct Args {
    #[command(flatten)]
    given: Given<OfAcp>,
}

pub fn execute(args: Args) -> Done {
    let hint = "Leave it out: the editor names the directory of each session, and the session to go on with.";
    if args.given.options.dir.is_some() {
        return Err(CommandError::usage("-C makes no sense here", hint));
    }
    if args.given.options.resume.is_some() {
        return Err(CommandError::usage("--resume makes no sense here", hint));
    }
    if std::io::stdin().is_terminal() {
        say("This is for editors: it speaks the Agent Client Protocol on stdin and stdout. ^D ends it.");
    }
    let interrupts = signals::Interrupts::catch();
    // What is left of an agent whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let (starter, _offline) = Starter::new(args, &interrupts)?;
    Ok(serve::serve(starter))
}
