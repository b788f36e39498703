//! A server for a shell: it is started, tells what to export, and ends with the shell.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_sys::processes::{self, Process, Signal};
use alhena_sys::{handles, poll};
use serde_json::{Value, json};

use super::told::{self, InShell, Told};
use super::{Args, asking};
use crate::cassette::CassetteArgs;
use crate::command_error::{CommandError, Done};
use crate::output::{print_json, say, write, written};

/// How long a server may take to end.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Starts the server, and prints what it tells. One that this shell has already is ended: its variables are gone.
pub fn start(args: &Args) -> Done {
    let pid = args.pid.or_else(asking).ok_or_else(|| {
        CommandError::failed(
            "it is not known which shell asks",
            "Say it: eval \"$(alhena mock --env --pid $$)\".",
        )
    })?;
    // One of another shell, from which this one has its environment, is not ours to end.
    let named = InShell::named().filter(|named| named.shell == Some(pid));
    let before = named.filter(|before| before.server.alive());
    if before.is_some() && CassetteArgs::of(&args.cassette.options).is_recording()? {
        return Err(CommandError::usage(
            "this shell has a server, and a cassette would record that instead of the API",
            "End it first: eval \"$(alhena mock --stop)\".",
        ));
    }
    // Both cannot listen on the same port.
    let (first, last) = if args.port == 0 { (None, before) } else { (before, None) };
    let ended = |before: Option<InShell>| {
        if let Some(Err(error)) = before.map(|before| end(before.server)) {
            say(format_args!("The server that this shell had is still there: {error}."));
        }
    };
    ended(first);
    let said = answer(args, pid)
        .map_err(|error| CommandError::failed(format!("the server could not be started: {error}"), ""))?;
    let mut told: Told = serde_json::from_slice(&said).map_err(|_| refusal(&said))?;
    ended(last);
    if before.is_some() {
        told.in_place_of_another();
    }
    // What is set now is that of a server, and what was before is remembered.
    if named.is_none() {
        told.remember(&Environment::of_process());
    }
    Ok(written(match args.json {
        true => told.print_json(),
        false => write(|out| out.write_all(told.shell().as_bytes())),
    }))
}

/// What the server says before it falls silent.
fn answer(args: &Args, pid: u32) -> io::Result<Vec<u8>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["mock", "--background", "--json", "--pid", &pid.to_string()]);
    command.args(["--port", &args.port.to_string()]);
    if args.trust {
        command.arg("--trust");
    }
    if let Some(log) = &args.log {
        command.arg("--log").arg(log);
    }
    CassetteArgs::of(&args.cassette.options).pass_on(&mut command);
    command.arg("--").args(&args.scenarios);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut said = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut said)?;
    }
    Ok(said)
}

/// Why there is no server, in its own words.
fn refusal(said: &[u8]) -> CommandError {
    let said: Value = serde_json::from_slice(said).unwrap_or_default();
    let text =
        |name: &str| said.pointer(&format!("/error/{name}")).and_then(Value::as_str).unwrap_or_default();
    match text("message") {
        "" => CommandError::failed("the server ended before it served", ""),
        message => CommandError::failed(message.to_owned(), text("hint")),
    }
}

/// Lets go of whoever waits for the end of the output.
pub fn fall_silent() -> io::Result<()> {
    handles::drop_stdout()?;
    handles::drop_stderr()
}

/// Ends the server of this shell, and prints what gives it its variables back.
pub fn stop(json: bool) -> Done {
    let Some(InShell { server, .. }) = InShell::named() else {
        return Err(CommandError::usage(
            "this shell has no server: ALHENA_MOCK does not name one",
            "`eval \"$(alhena mock --env)\"` starts one; others end by ^C or SIGTERM.",
        ));
    };
    let ran = end(server).map_err(|error| CommandError::failed(error, ""))?;
    if json {
        return Ok(print_json(&json!({ "pid": server.pid, "ran": ran })));
    }
    if !ran {
        say("The server was not running any more.");
    }
    Ok(written(write(|out| out.write_all(told::restored().as_bytes()))))
}

/// Whether it ran.
fn end(server: Process) -> io::Result<bool> {
    let Some(end) = processes::end_of(server.pid).ok().filter(|_| server.alive()) else { return Ok(false) };
    server.signal(Signal::TERM);
    match poll::is_readable(end, LONGEST_END)? {
        true => Ok(true),
        false => Err(io::Error::other(format!("the server, process {}, does not end", server.pid))),
    }
}
