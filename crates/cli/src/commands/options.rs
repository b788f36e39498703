//! Options of runs on the command line, made from the table of settings. Each command offers some of them.

use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;

use alhena_agent::Approval;
use alhena_model::options::{BadValue, Choice, Resume, RunOptions, Setting, Takes};
use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, ValueHint};

/// The options that a command offers.
pub trait Offer: Clone + Send + Sync + 'static {
    /// In the order of the help text.
    const SETTINGS: &[&[Setting]];
}

/// The options of a command that were given.
#[derive(Clone)]
pub struct Given<O> {
    pub options: RunOptions,
    offer: PhantomData<O>,
}

use Setting::{
    AgentCommand, Allow, AllowTool, Args, Ask, Cassette, CassetteMode, Deny, DenyTool, Dir, Env,
    FirstEventTimeout, Gemini, Hook, HookTimeout, IncludeDir, MaxAttempts, MaxCalls, MaxCost, MaxTokens,
    MaxTurns, McpServer, Model, NoConfig, Offline, OnRateLimit, PermissionTimeout, Policy, Prices, PromptBy,
    Record, Rules, Sandbox, Schema, SchemaAttempts, SessionId, StallTimeout, SystemPrompt, SystemPromptFile,
    SystemPromptMode, Timeout, Transport, Trust,
};

/// Of an agent, headless or in a terminal.
const AGENT: &[Setting] = &[
    Dir,
    Gemini,
    Model,
    Setting::Approval,
    Trust,
    Sandbox,
    IncludeDir,
    AllowTool,
    DenyTool,
    Policy,
    McpServer,
    SystemPrompt,
    SystemPromptFile,
    SystemPromptMode,
    Env,
    Setting::Resume,
];
/// Of agents that can be asked.
const PERMISSIONS: &[Setting] = &[Allow, Deny, Ask, Rules, PermissionTimeout];
const LIMITS: &[Setting] = &[
    Timeout,
    FirstEventTimeout,
    StallTimeout,
    MaxTurns,
    MaxAttempts,
    MaxTokens,
    MaxCost,
    MaxCalls,
    OnRateLimit,
    Prices,
];
const HOOKS: &[Setting] = &[Hook, HookTimeout];

macro_rules! offers {
    ($($name:ident: $settings:expr,)+) => {$(
        #[derive(Clone, Copy)]
        pub struct $name;

        impl Offer for $name {
            const SETTINGS: &[&[Setting]] = $settings;
        }
    )+};
}

offers! {
    OfRun: &[
        &[PromptBy, Transport, AgentCommand, Offline, Cassette, CassetteMode], AGENT, PERMISSIONS, &[SessionId], LIMITS,
        &[Schema, SchemaAttempts], HOOKS, &[Record, NoConfig, Args],
    ],
    OfChat: &[&[Offline, AgentCommand], AGENT, PERMISSIONS, LIMITS, HOOKS, &[NoConfig, Args]],
    OfAcp: &[&[Offline], AGENT, PERMISSIONS, HOOKS, &[NoConfig]],
    OfTerminal: &[AGENT],
    OfDetect: &[&[Trust, NoConfig]],
    OfMock: &[&[Cassette, CassetteMode]],
    OfPrices: &[&[Prices]],
}

impl<O: Offer> Given<O> {
    fn settings() -> impl Iterator<Item = Setting> {
        O::SETTINGS.iter().flat_map(|group| group.iter().copied())
    }
}

impl<O> fmt::Debug for Given<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

impl<O: Offer> clap::Args for Given<O> {
    fn augment_args(command: Command) -> Command {
        Self::settings().fold(command, |command, setting| {
            let others =
                Self::settings().filter(|other| setting.excludes().any(|excluded| excluded == *other));
            let arg = arg(setting).conflicts_with_all(others.map(Setting::name));
            match setting.needs() {
                [] => command.arg(arg),
                [needed] => command.arg(arg.requires(needed.name())),
                several => {
                    let name = format!("{}_needs", setting.name());
                    let group = ArgGroup::new(name.clone()).args(several.iter().map(|needed| needed.name()));
                    command.arg(arg.requires(name)).group(group)
                }
            }
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: Offer> clap::FromArgMatches for Given<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self { options: RunOptions::default(), offer: PhantomData };
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let wrong = |bad: BadValue| clap::Error::raw(clap::error::ErrorKind::ValueValidation, bad);
        for setting in Self::settings() {
            let name = setting.name();
            match setting.takes() {
                Takes::Nothing if matches.get_flag(name) => self.options.add(setting, None).map_err(wrong)?,
                Takes::Nothing => {}
                _ if !matches.contains_id(name) => {}
                _ => {
                    let mut values = matches.get_raw(name).into_iter().flatten().peekable();
                    if values.peek().is_none() {
                        self.options.add(setting, None).map_err(wrong)?;
                    }
                    values.try_for_each(|value| self.options.add(setting, Some(value))).map_err(wrong)?;
                }
            }
        }
        Ok(())
    }
}

fn arg(setting: Setting) -> Arg {
    let name = setting.name();
    let arg = Arg::new(name).help(setting.help());
    let arg = match setting {
        Args => {
            let arg = arg.last(true).num_args(1..).action(ArgAction::Append);
            return arg.value_name("ARGS").value_parser(OsStringValueParser::new());
        }
        Dir => arg.short('C'),
        Model => arg.short('m'),
        _ => arg,
    };
    let arg = arg.long(name.replace('_', "-"));
    let arg = match setting.takes() {
        Takes::Nothing => return arg.action(ArgAction::SetTrue),
        Takes::One => arg.action(ArgAction::Set),
        Takes::Many => arg.action(ArgAction::Append),
        // A session may follow as a word of its own; what follows the others is the prompt.
        Takes::Perhaps => {
            arg.action(ArgAction::Set).num_args(0..=1).require_equals(setting != Setting::Resume)
        }
    };
    let arg = match setting.value_name() {
        "FILE" | "DIR" | "PATH|VERSION" | "SCENARIO" => arg.value_hint(ValueHint::AnyPath),
        _ => arg,
    };
    arg.value_name(setting.value_name()).value_parser(values(setting))
}

/// Refuses what the setting does not take.
fn values(setting: Setting) -> ValueParser {
    let choices = setting.choices();
    if !choices.is_empty() {
        return PossibleValuesParser::new(choices.into_iter().filter_map(possible)).into();
    }
    let check = move |text: OsString| {
        let checked = RunOptions::default().add(setting, Some(&text));
        checked.map(|()| text).map_err(|BadValue { problem, fix }| match fix.is_empty() {
            true => problem,
            false => format!("{problem}. {fix}"),
        })
    };
    OsStringValueParser::new().try_map(check).into()
}

fn possible((names, help): (&[&'static str], &'static str)) -> Option<PossibleValue> {
    let (name, others) = names.split_first()?;
    Some(PossibleValue::new(*name).help(help).aliases(others.iter().copied()))
}

/// The names of the approval modes, for the help and the completions; other hosts' names are accepted, too.
pub fn approval() -> impl TypedValueParser<Value = Approval> {
    let values = Approval::ALL.iter().filter_map(|approval| possible((approval.names(), approval.help())));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Approval>())
}

/// Takes the prompt that follows `--resume` and was taken for its value: no id has a space in it.
pub fn prompt_behind_resume(options: &mut RunOptions) -> Option<String> {
    match options.resume.replace(Resume::Latest) {
        Some(Resume::Id(text)) if text.contains(char::is_whitespace) => Some(text),
        other => {
            options.resume = other;
            None
        }
    }
}
