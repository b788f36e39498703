//! `alhena gemini ARGS...`, also when the binary is called `gemini`: the drop-in.
//!
//! It takes the command line of any host, runs the real CLI under Alhena's supervision, and writes the CLI's own formats,
//! its own lines verbatim, but truthful. Hosts expect to run, so it does in a folder that is not trusted, without that
//! folder's own settings. What it changed is told on stderr with `ALHENA_EXPLAIN=1`.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use alhena_agent::env::{self, Environment};
use alhena_agent::{
    Approval, Finder, Gemini, Item, Resume, Run, RunError, RunExtras, Sandbox, Trust, programs,
};
use alhena_hosts::dialect::{self, DropIn, Invocation, Stream, Surroundings};
use alhena_hosts::native::{self, Format, JsonReport, StreamJson, TextOutput};
use alhena_model::options::TimeLimit;
use alhena_model::{Hint, Outcome, RunOptions, Timestamp};
use alhena_sys::handles;
use alhena_sys::processes::become_program;

use crate::command_error::{Done, complain};
use crate::listener;
use crate::output::{self, Stream as Standard, say, say_part};
use crate::signals::Interrupts;
use crate::stdin::{self, Silence, Unread};

/// Stand in for the `gemini` command: any host's arguments, truthful output.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What the host passes to `gemini`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

pub fn execute(args: Args) -> Done {
    Ok(stand_in(args.arguments))
}

/// The whole drop-in.
pub fn stand_in(arguments: Vec<OsString>) -> ExitCode {
    let environment = Environment::of_process();
    let explain = environment.filled(env::ALHENA_EXPLAIN).is_some();
    let gemini = match Finder::new().env(environment.clone()).find() {
        Ok(gemini) => gemini,
        Err(error) => {
            complain(&error, &error.hint().unwrap_or_default());
            // What a shell says when there is no such command, and what hosts look for.
            return ExitCode::from(127);
        }
    };
    let texts: Option<Vec<String>> =
        arguments.iter().map(|argument| argument.to_str().map(str::to_owned)).collect();
    let invocation = texts.map(|texts| dialect::read(&texts, surroundings()));
    match invocation {
        Some(Invocation::Run(drop_in)) => {
            if explain {
                drop_in.explanations.iter().for_each(|line| say(format_args!("alhena: {line}")));
            }
            run(&gemini, *drop_in, &environment)
        }
        Some(Invocation::PassThrough(reason)) => {
            if explain {
                say(format_args!("alhena: handed to {} as it is: {reason}", gemini.path.display()));
            }
            hand_over(&gemini, &arguments)
        }
        None => hand_over(&gemini, &arguments),
    }
}

fn surroundings() -> Surroundings {
    let stream = |terminal: bool| if terminal { Stream::Terminal } else { Stream::Other };
    Surroundings {
        stdin: stream(io::stdin().is_terminal()),
        stdout: stream(Standard::Out.is_terminal()),
        ci: ["CI", "GITHUB_ACTIONS"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| value == "true")),
    }
}

/// Becomes the real CLI: same process, same terminal.
fn hand_over(gemini: &Gemini, arguments: &[OsString]) -> ExitCode {
    let mut environment = Environment::of_process();
    programs::leave_out_relative(&mut environment);
    let mut command = Command::new(&gemini.path);
    let error = become_program(command.args(arguments).env_clear().envs(environment.iter()));
    complain(&format_args!("{}: {error}", gemini.path.display()), "");
    ExitCode::from(126)
}

fn run(gemini: &Gemini, drop_in: DropIn, environment: &Environment) -> ExitCode {
    let format = drop_in.output_format.unwrap_or_default();
    let interrupts = Interrupts::catch();
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let started =
        prompt(&drop_in, &interrupts).and_then(|prompt| start(gemini, &drop_in, prompt, format, environment));
    let mut writer = Writer::new(format);
    let (outcome, written) = match started {
        Ok(run) => follow(run, &mut writer, &interrupts),
        Err(error) => {
            let outcome = Outcome::not_begun(error.into_failure());
            let _closed = writer.close(&outcome);
            return ExitCode::from(42);
        }
    };
    if let Err(error) = written.or_else(|error| if output::is_gone(&error) { Ok(()) } else { Err(error) }) {
        return output::written(Err(error));
    }
    match interrupts.caught().filter(|_| !outcome.is_success()) {
        None => ExitCode::from(native::exit_code(&outcome)),
        Some(signal) => ExitCode::from(128 + signal as u8),
    }
}

/// The prompt of the command line with that of standard input.
fn prompt(drop_in: &DropIn, interrupts: &Interrupts) -> Result<String, RunError> {
    // With a prompt the CLI's own rule counts. Without one it does too, but the CLI begins to count its 0.5 s only when it has started,
    // seconds later (0.61.0), and fails then. Counted from now, they would lose a prompt that the CLI takes.
    let silence = match drop_in.prompt {
        Some(_) => Silence::OF_GEMINI_CLI,
        None => Silence::Ignore(stdin::LIMIT),
    };
    let stdin = match stdin::read(silence, interrupts, || {}) {
        Ok(bytes) => bytes,
        Err(unread @ Unread::TooMuch) => {
            let hint = "Put the material into files and name them in the prompt.".to_owned();
            return Err(RunError::usage(unread.to_string(), hint));
        }
        // The CLI runs without input that it cannot read, too.
        Err(Unread::Interrupted | Unread::Silent(_) | Unread::Failed(_)) => Vec::new(),
    };
    let prompt = drop_in.with_stdin(&String::from_utf8_lossy(&stdin));
    if prompt.trim().is_empty() {
        // The CLI's own words (0.61.0): those of `alhena run` name options that this one has not.
        return Err(RunError::usage(
            "No input provided via stdin.",
            "Input can be provided by piping data into gemini or using the --prompt option.",
        ));
    }
    Ok(prompt)
}

fn start(
    gemini: &Gemini,
    drop_in: &DropIn,
    prompt: String,
    format: Format,
    environment: &Environment,
) -> Result<Run, RunError> {
    let options = RunOptions {
        dir: drop_in.dir.as_ref().map(Into::into),
        model: drop_in.model.clone(),
        approval: Some(match drop_in.approval {
            None | Some(dialect::Approval::Default) => Approval::Default,
            Some(dialect::Approval::AutoEdit) => Approval::AutoEdit,
            Some(dialect::Approval::Yolo) => Approval::Yolo,
            Some(dialect::Approval::Plan) => Approval::Plan,
        }),
        // Whoever calls `gemini` expects it to run; what the folder brings along still needs the user's word.
        trust: Some(Trust::Run),
        sandbox: Some(match &drop_in.sandbox {
            dialect::Sandbox::Inherit => Sandbox::Inherit,
            dialect::Sandbox::Off => Sandbox::Off,
            dialect::Sandbox::On => Sandbox::On,
            dialect::Sandbox::Engine(engine) => Sandbox::Engine(engine.clone()),
        }),
        include_dir: drop_in.include_dirs.iter().map(Into::into).collect(),
        allow_tool: drop_in.allow_tools.clone(),
        deny_tool: drop_in.deny_tools.clone(),
        policy: drop_in.policies.iter().map(Into::into).collect(),
        resume: drop_in
            .resume
            .as_ref()
            .map(|id| if id == "latest" { Resume::Latest } else { Resume::Id(id.clone()) }),
        session_id: drop_in.session_id.clone(),
        args: drop_in.extra.iter().map(Into::into).collect(),
        // The host has its own clock and its own idea of retries.
        first_event_timeout: Some(TimeLimit::Never),
        stall_timeout: Some(TimeLimit::Never),
        ..RunOptions::default()
    };
    let raw_lines = format == Format::StreamJson;
    gemini.run_with(prompt, &options, RunExtras { raw_lines, ..RunExtras::of(environment.clone()) })
}

fn follow(mut run: Run, writer: &mut Writer, interrupts: &Interrupts) -> (Arc<Outcome>, io::Result<()>) {
    interrupts.stop(run.stopper());
    listener::stop_when_gone(handles::stdout(), run.stopper());
    let mut written = Ok(());
    while let Some(item) = run.next_item_blocking() {
        if written.is_ok() {
            written = writer.item(&item);
            if written.is_err() {
                run.stop();
            }
        }
    }
    let outcome = run.outcome_blocking();
    let written = written.and_then(|()| writer.close(&outcome));
    (outcome, written)
}

/// One of the CLI's three formats.
enum Writer {
    Text(TextOutput),
    Json(JsonReport),
    StreamJson(StreamJson),
}

impl Writer {
    fn new(format: Format) -> Self {
        match format {
            Format::Text => Writer::Text(TextOutput::default()),
            Format::Json => Writer::Json(JsonReport::default()),
            Format::StreamJson => Writer::StreamJson(StreamJson::default()),
        }
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        output::write(|out| match (self, item) {
            (Writer::Text(text), Item::Event(event)) => out.write_all(text.event(event).as_bytes()),
            (Writer::Json(report), Item::Event(event)) => {
                report.event(event);
                Ok(())
            }
            (Writer::StreamJson(stream), Item::Line(line)) => {
                let mut lines = stream.line(line);
                lines.try_for_each(|line| out.write_all(&line).and_then(|()| out.write_all(b"\n")))
            }
            _ => Ok(()),
        })
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        // Hosts look for the reason on stderr, whatever the format.
        say_part(TextOutput::complaint(outcome));
        output::write(|out| match self {
            Writer::Text(_) => Ok(()),
            Writer::Json(report) => out.write_all(report.print(outcome).as_bytes()),
            Writer::StreamJson(stream) => {
                if let Some(line) = stream.rest(outcome) {
                    out.write_all(&line)?;
                    out.write_all(b"\n")?;
                }
                stream.close(outcome, Timestamp::now()).iter().try_for_each(|line| writeln!(out, "{line}"))
            }
        })
    }
}
