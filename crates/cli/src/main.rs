//! The `alhena` binary: commands in `commands`, what they print of a run in `views`.

// Everything is printed by `output`.
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

mod cassette;
mod command_error;
mod commands;
mod config;
mod echo;
mod launcher;
mod listener;
mod mock_home;
mod nats;
mod offline;
mod output;
mod prices;
mod signals;
mod stdin;
mod style;
mod views;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use alhena_model::{Failure, FailureKind, Outcome, Setting};
use clap::error::{ContextKind, ContextValue};
use clap::{Parser, ValueEnum};

use crate::commands::Cli;
use crate::output::Stream;
use crate::style::{Colours, Paint};

fn main() -> ExitCode {
    alhena_sys::signals::outlive_file_limits();
    // The keeper starts with every run, and a tool waits for its hook: nothing else may delay them.
    alhena_agent::keeper::run_if_keeper();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    start_log();
    if called(&arguments, &["gemini"]) {
        return commands::gemini::stand_in(arguments.into_iter().skip(1).collect());
    }
    if called(&arguments, &["claude", "alhena-claude"]) {
        return commands::claude::stand_in(arguments.into_iter().skip(1).collect());
    }
    if wants_json(&arguments) {
        command_error::complain_in_json();
    }
    let is_run = arguments.get(1).is_some_and(|command| command == "run");
    let view = if is_run { requested_view(&arguments) } else { None };
    match Cli::try_parse_from(with_scenario(arguments)) {
        Ok(cli) => cli.execute(),
        Err(error) => refuse(&if is_run { with_true_tips(error) } else { error }, view),
    }
}

/// Prints the error of the argument parser, or the help that was asked for. A program that reads the outcome of a run gets a failed one.
fn refuse(error: &clap::Error, view: Option<views::Name>) -> ExitCode {
    let text = error.render();
    if !error.use_stderr() {
        // All of the help is ours, so its colours are too.
        return match Colours::of(Stream::Out) {
            Colours::On => output::print(output::adopt(&text.ansi().to_string()).trim_end()),
            Colours::Off => output::print(text.to_string().trim_end()),
        };
    }
    // It quotes the arguments.
    let text = text.to_string();
    if command_error::complains_in_json() {
        command_error::complain(&with_setting(error, &text).trim_end(), "");
        return ExitCode::from(2);
    }
    if let Some(view) = view {
        let reason = with_setting(error, text.split("\n\n").next().unwrap_or_default());
        let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut failure = Failure::new(FailureKind::Input, reason);
        failure.hint = "`alhena run --help` describes all options.".to_owned();
        let outcome = Outcome::not_begun(failure);
        views::failed_to_start(view, outcome, views::Target::stdout());
    }
    let painted = Colours::of(Stream::Err).paint(Paint::Red, "error:");
    match text.strip_prefix("error:") {
        Some(rest) => output::say_part(format_args!("{painted}{rest}")),
        None => output::say_part(text),
    }
    ExitCode::from(2)
}

/// The text of an error with the setting in place of the option that it is about.
fn with_setting(error: &clap::Error, text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return text.to_owned();
    };
    let name = option.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
    match Setting::named(&name.replace('-', "_")) {
        Some(setting) => text.replace(&format!("'{option}'"), &setting.to_string()),
        None => text.to_owned(),
    }
}

/// The view that the arguments ask for, known even where others of them are wrong.
fn requested_view(arguments: &[OsString]) -> Option<views::Name> {
    let mut words = arguments.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let name = loop {
        let word = words.next()?;
        match word.strip_prefix("--as=") {
            Some(name) => break name,
            None if word == "--as" => break words.next()?,
            None => {}
        }
    };
    views::Name::from_str(name, false).ok()
}

/// Whether a command is asked for JSON; known before its arguments are understood, because those may be wrong.
fn wants_json(arguments: &[OsString]) -> bool {
    let foreign = arguments.get(1).is_some_and(|command| command == "gemini" || command == "claude");
    !foreign && arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// Whether this is a drop-in: the binary itself, or a link to it, under one of these names.
fn called(arguments: &[OsString], names: &[&str]) -> bool {
    let called = arguments.first().and_then(|name| Path::new(name).file_stem());
    called.is_some_and(|called| names.iter().any(|name| called == *name))
}

/// `--offline scenario.json` is `--offline=scenario.json`. Only a word that ends in `.json` is a scenario: what follows
/// otherwise is the prompt.
fn with_scenario(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_scenario = argument
            .to_str()
            .is_some_and(|text| text.ends_with(".json") && !text.contains(char::is_whitespace));
        match out.last_mut() {
            Some(last) if is_scenario && last == "--offline" => {
                last.push("=");
                last.push(argument);
            }
            _ => out.push(argument),
        }
    }
    out
}

/// Replaces tips of clap that would mislead. Behind the `--` of `run` stand arguments for Gemini CLI, not a prompt. And
/// `--no-stdin` is the opposite of the earlier `--stdin`.
fn with_true_tips(mut error: clap::Error) -> clap::Error {
    if matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(name)) if name == "--stdin") {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tips = vec!["piped input is always read to its end; leave --stdin out".into()];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        return error;
    }
    let tip = "a prompt that begins with a dash is given by --prompt=TEXT";
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let tips = tips.into_iter().map(|one| match one.to_string().contains("as a value, use") {
            true => tip.into(),
            false => one,
        });
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips.collect()));
    }
    error
}

/// The log goes to stderr, and only when `ALHENA_LOG` asks for it.
fn start_log() {
    if let Ok(filter) = std::env::var(alhena_agent::env::ALHENA_LOG) {
        let filter = tracing_subscriber::EnvFilter::new(filter);
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Stream::Err.open());
        let _set_before = log.try_init();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_may_follow_offline_and_a_prompt_may_too() {
        let merged = |words: &[&str]| {
            let words = words.iter().map(OsString::from).collect();
            with_scenario(words).iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(merged(&["run", "--offline", "s.json", "hi"]), ["run", "--offline=s.json", "hi"]);
        assert_eq!(merged(&["run", "--offline", "Write a.json"]), ["run", "--offline", "Write a.json"]);
        assert_eq!(merged(&["run", "s.json", "--offline"]), ["run", "s.json", "--offline"]);
    }
}
