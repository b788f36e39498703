//! `alhena claude ARGS...`, also when the binary is called `claude`: for programs on the Claude Agent SDK.
//!
//! It takes the SDK's arguments and speaks its protocol on stdin and stdout, and holds a conversation with Gemini CLI behind
//! it. The SDKs take the path of one executable: a link to this program under the name `claude` is one.

pub(super) mod ask;
mod hook;
pub(super) mod pending;
mod serve;
mod start;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use alhena_hosts::claude::control::{Fault, Incoming};
use alhena_hosts::claude::options::{Fate, Invocation, Refusal, TABLE};
use alhena_hosts::claude::{VERSION, lines};
use serde_json::Value;

use crate::command_error::{Done, complain};
use crate::output;

/// Stand in for the `claude` command: programs on the Claude Agent SDK run on Gemini.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What the SDK passes to `claude`; `--help` lists what is understood.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

pub fn execute(args: Args) -> Done {
    Ok(stand_in(args.arguments))
}

/// The whole command.
pub fn stand_in(arguments: Vec<OsString>) -> ExitCode {
    let arguments: Vec<String> =
        arguments.into_iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    match Invocation::read(&arguments) {
        Ok(Invocation::Version) => output::print(&format!(
            "{VERSION} (Claude Code's protocol, alhena {})",
            env!("CARGO_PKG_VERSION")
        )),
        Ok(Invocation::Help) => output::print(&help()),
        Ok(Invocation::Serve(options)) => serve::serve(*options),
        Err(refusal) => refuse(&refusal),
    }
}

/// Says what is wrong: on stderr, and to the program, which waits for the answer to its first request.
fn refuse(refusal: &Refusal) -> ExitCode {
    complain(refusal, &refusal.hint);
    let mut first = String::new();
    if !io::IsTerminal::is_terminal(&io::stdin()) && io::stdin().read_line(&mut first).is_ok() {
        let said = Incoming::read(first.as_bytes());
        let id = match said {
            Ok(Incoming::Request { id, .. }) => Some(id),
            Err(fault) => fault.id,
            Ok(_) => None,
        };
        if let Some(id) = id {
            let _gone = write(&lines::refusal(&id, &format!("{refusal}. {}", refusal.hint)));
        }
    }
    ExitCode::from(2)
}

/// Says what is wrong with a line, also to the program if it waits for an answer.
pub(super) fn tell_of(fault: &Fault) -> io::Result<()> {
    complain(&fault.message, "");
    match &fault.id {
        Some(id) => write(&lines::refusal(id, &fault.message)),
        None => Ok(()),
    }
}

/// Writes a line.
pub(super) fn write(line: &Value) -> io::Result<()> {
    output::write_json(|out| writeln!(out, "{line}"))
}

/// What becomes of the options of `claude`, from the table that they are read by.
fn help() -> String {
    let mut text = "Stand in for the `claude` command: programs on the Claude Agent SDK run on Gemini.\n\n\
        Usage: alhena claude [OPTIONS]\n\n\
        Give the SDK a link to this program under the name `claude`: cli_path in Python,\n\
        pathToClaudeCodeExecutable in JavaScript. It speaks stream-json on stdin and stdout.\n\n\
        Understood:\n"
        .to_owned();
    let names = |names: &[&str]| {
        let dashed =
            names.iter().map(|name| if name.len() == 1 { format!("-{name}") } else { format!("--{name}") });
        dashed.collect::<Vec<_>>().join(", ")
    };
    let wanted = |text: &mut String, pick: &dyn Fn(&Fate) -> Option<&'static str>| {
        for row in TABLE {
            if let Some(why) = pick(&row.fate) {
                text.push_str(format!("  {:<38} {why}", names(row.names)).trim_end());
                text.push('\n');
            }
        }
    };
    wanted(&mut text, &|fate| matches!(fate, Fate::Means(_)).then_some(""));
    text.push_str("\nTaken, and of no effect:\n");
    wanted(&mut text, &|fate| if let Fate::Nothing(why) = fate { Some(why) } else { None });
    text.push_str("\nRefused:\n");
    wanted(&mut text, &|fate| if let Fate::Refused(why) = fate { Some(why) } else { None });
    text.trim_end().to_owned()
}
