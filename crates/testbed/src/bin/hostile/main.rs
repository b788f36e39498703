//! A stand-in for `gemini` that does what its script says (`HOSTILE`, see `alhena_testbed::script`) and ignores its flags.
//!
//! Like the CLI (0.61.0) it reads stdin before it writes anything, waits at most half a second for it to begin, and exits
//! 0 when the reader of its stdout is gone. Every process of it dies by itself after `HOSTILE_LIFETIME` seconds.

mod arguments;
mod children;
mod os;
mod output;
mod session;

use std::process::ExitCode;
use std::time::Duration;

use alhena_testbed::script::{
    BROKEN_SCRIPT, DEFAULT_VERSION, DUMP_VARIABLE, Ending, SCRIPT_VARIABLE, Script, Step, VERSION_VARIABLE,
};

use arguments::Arguments;
use output::Output;

fn main() -> ExitCode {
    if let Some(child) = children::as_program() {
        children::live(&child);
    }
    match perform() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("hostile: {message}");
            ExitCode::from(BROKEN_SCRIPT as u8)
        }
    }
}

fn perform() -> Result<(), String> {
    os::limit_lifetime();
    os::forbid_core_dumps();
    children::record_own_pid()?;
    let arguments = Arguments::of_this_process();
    let script = if arguments.version { version_script() } else { run_script()? };
    let reads_stdin = !arguments.version && script.steps.first() != Some(&Step::IgnoreStdin);
    let stdin = if reads_stdin { os::read_stdin() } else { Vec::new() };
    if let Some(path) = std::env::var_os(DUMP_VARIABLE) {
        arguments::dump(path.as_ref(), reads_stdin.then_some(stdin.as_slice()))?;
    }
    let mut out = Output::new(arguments.with_stdin(&stdin));
    for step in script.steps {
        take(step, &mut out)?;
    }
    Ok(())
}

fn run_script() -> Result<Script, String> {
    match std::env::var(SCRIPT_VARIABLE) {
        Ok(text) => Script::from_json(&text),
        Err(_) => Ok(Script::normal()),
    }
}

fn version_script() -> Script {
    Script::new([Step::Line(std::env::var(VERSION_VARIABLE).unwrap_or_else(|_| DEFAULT_VERSION.to_owned()))])
}

fn take(step: Step, out: &mut Output) -> Result<(), String> {
    match step {
        Step::IgnoreStdin => {}
        Step::Init => out.init(),
        Step::User => out.user(),
        Step::Text(text) => out.text(&text),
        Step::Tool { name, parameters, output } => out.tool(&name, &parameters, &output),
        Step::Error { severity, message } => out.error(&severity, &message),
        Step::Result => out.result(),
        Step::ResultError(message) => out.result_error(&message),
        Step::Normal => {
            out.init();
            out.user();
            out.text("Hello from fake Gemini.");
            out.result();
        }
        Step::Line(text) => out.line(text.as_bytes()),
        Step::Bytes(bytes) => out.bytes(&bytes),
        Step::Garbage => out.garbage(),
        Step::InvalidUtf8 => out.invalid_utf8(),
        Step::LineSeparators => out.text("one\u{2028}two\u{2029}three\u{85}four"),
        Step::LongLine(bytes) => out.long_line(bytes),
        Step::EndlessLine(bytes) => out.endless_line(bytes),
        Step::Deltas(bytes) => out.deltas(bytes),
        Step::Mixed(bytes) => out.mixed(bytes),
        Step::DieAtByte { bytes, ending } => out.die_at(bytes, ending),
        Step::Stderr(text) => os::write_all(2, text.as_bytes()),
        Step::StderrFlood(bytes) => output::flood_stderr(bytes),
        Step::CloseStdout => os::close(1),
        Step::Session => session::write(out.session_id(), out.prompt()),
        Step::WipeSession => session::wipe(),
        Step::Reveal(name) => out.reveal(&name),
        Step::Touch(path) => {
            // On a full disk the name at least is there.
            let _ = std::fs::File::create(path);
        }
        Step::WaitFor(path) => {
            while !std::path::Path::new(&path).exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Step::Sleep(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
        Step::Hang => os::hang(),
        Step::IgnoreSignals(signals) => signals.iter().for_each(|signal| os::ignore(*signal)),
        Step::ExitOnSignals { signals, code } => os::exit_on(&signals, code),
        Step::Spawn(child) => children::spawn(&child)?,
        Step::ForkStorm { processes, for_ms, every_ms } => {
            children::storm(processes, Duration::from_millis(for_ms), Duration::from_millis(every_ms))?
        }
        Step::End(ending) => end(ending),
    }
    Ok(())
}

/// Ends the process; comes back only after a signal that did not end it.
fn end(ending: Ending) {
    match ending {
        Ending::Exit(code) => os::exit(code),
        Ending::Signal(signal) => os::kill_self(signal),
    }
}
