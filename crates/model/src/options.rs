//! The options of a run: the one form in which they travel.
//!
//! Every entry point converts what it gets to [`RunOptions`] once: the command line, files with defaults, jobs, queue messages,
//! HTTP bodies. The table below yields the struct, the [`Setting`] that identifies each field in errors, and the descriptions
//! in help texts and schemas. The prompt is separate; so is all that is not data, such as callbacks.

mod choice;
mod env;
mod error;
mod hook;
mod limit;
mod prompt;
mod rate_limit;
mod schema;
mod value;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub use self::choice::{Approval, CassetteMode, Choice, PromptBy, PromptMode, Transport};
pub use self::env::EnvVar;
pub use self::error::{BadValue, SettingError, nearest};
pub use self::hook::{HookSpec, Moment};
pub use self::limit::{TimeLimit, dollars, time};
pub use self::prompt::Prompt;
pub use self::rate_limit::OnRateLimit;
pub use self::schema::properties;
use self::value::OptionValue;
pub use self::value::{AnswerSchema, Offline, Resume, Sandbox, Takes, Trust};

/// Makes the method of [`RunOptions`] that sets an option, or adds to it.
macro_rules! setter {
    ($(#[doc = $help:literal])+ $field:ident: bool) => {
        $(#[doc = $help])+
        #[must_use]
        pub fn $field(mut self) -> Self {
            self.$field = true;
            self
        }
    };
    ($(#[doc = $help:literal])+ $field:ident: Option<NonZeroU32>) => {
        setter! { @number $(#[doc = $help])+ $field: NonZeroU32 }
    };
    ($(#[doc = $help:literal])+ $field:ident: Option<u32>) => {
        setter! { @number $(#[doc = $help])+ $field: u32 }
    };
    ($(#[doc = $help:literal])+ $field:ident: Option<u64>) => {
        setter! { @number $(#[doc = $help])+ $field: u64 }
    };
    ($(#[doc = $help:literal])+ $field:ident: Option<f64>) => {
        setter! { @number $(#[doc = $help])+ $field: f64 }
    };
    (@number $(#[doc = $help:literal])+ $field:ident: $number:ident) => {
        $(#[doc = $help])+
        #[must_use]
        pub fn $field(mut self, number: $number) -> Self {
            self.$field = Some(number);
            self
        }
    };
    ($(#[doc = $help:literal])+ $field:ident: Vec<EnvVar>) => {
        $(#[doc = $help])+
        #[must_use]
        pub fn $field(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.$field.push(EnvVar { name: name.into(), value: Some(value.into()) });
            self
        }
    };
    ($(#[doc = $help:literal])+ $field:ident: Option<$one:ident>) => {
        $(#[doc = $help])+
        #[must_use]
        pub fn $field(mut self, value: impl Into<$one>) -> Self {
            self.$field = Some(value.into());
            self
        }
    };
    ($(#[doc = $help:literal])+ $field:ident: Vec<$one:ident>) => {
        $(#[doc = $help])+
        #[must_use]
        pub fn $field(mut self, one: impl Into<$one>) -> Self {
            self.$field.push(one.into());
            self
        }
    };
}

/// Makes the struct, the enum, and the functions that need to know every option.
macro_rules! options {
    ($($(#[doc = $help:literal])+ $setting:ident $field:ident: $kind:ident $(<$one:ident>)? = $value_name:literal,)+) => {
        /// The options of a run. An option that is absent was not given; its default is in its description.
        ///
        /// As JSON it is an object with these names. One value stands for a list of one, numbers stand for texts, and null is
        /// an option that was not given. An unknown name is an error.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct RunOptions {
            $($(#[doc = $help])+ pub $field: $kind $(<$one>)?,)+
        }

        /// An option of a run, by which errors refer to it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Setting {
            Prompt,
            PromptFile,
            $($setting,)+
        }

        impl Setting {
            /// All of them: the two forms of the prompt, and the fields of [`RunOptions`].
            pub const ALL: &[Setting] = &[Setting::Prompt, Setting::PromptFile, $(Setting::$setting,)+];

            /// The name of the field.
            pub fn name(self) -> &'static str {
                match self {
                    Setting::Prompt => "prompt",
                    Setting::PromptFile => "prompt_file",
                    $(Setting::$setting => stringify!($field),)+
                }
            }

            fn doc(self) -> &'static str {
                match self {
                    Setting::Prompt => "The prompt.",
                    Setting::PromptFile => "Read the prompt from a file.",
                    $(Setting::$setting => concat!($($help,)+),)+
                }
            }

            /// The placeholder of the value in help texts.
            pub fn value_name(self) -> &'static str {
                match self {
                    Setting::Prompt => "TEXT",
                    Setting::PromptFile => "FILE",
                    $(Setting::$setting => $value_name,)+
                }
            }

            /// The number of values.
            pub fn takes(self) -> Takes {
                match self {
                    Setting::Prompt => <Option<String> as OptionValue>::TAKES,
                    Setting::PromptFile => <Option<PathBuf> as OptionValue>::TAKES,
                    $(Setting::$setting => <$kind $(<$one>)? as OptionValue>::TAKES,)+
                }
            }

            /// The names and the meaning of each value, if only some are allowed.
            pub fn choices(self) -> Vec<(&'static [&'static str], &'static str)> {
                match self {
                    Setting::Prompt | Setting::PromptFile => Vec::new(),
                    $(Setting::$setting => <$kind $(<$one>)? as OptionValue>::choices(),)+
                }
            }

            fn schema(self) -> Value {
                match self {
                    Setting::Prompt => <Option<String> as OptionValue>::schema(),
                    Setting::PromptFile => <Option<PathBuf> as OptionValue>::schema(),
                    $(Setting::$setting => <$kind $(<$one>)? as OptionValue>::schema(),)+
                }
            }

            /// Returns the JSON value that a text stands for, where every value is a text: in tables and after `NAME=`.
            pub fn value_of_text(self, text: &str) -> Value {
                match self {
                    Setting::Prompt | Setting::PromptFile => text.into(),
                    $(Setting::$setting => <$kind $(<$one>)? as OptionValue>::value_of_text(text),)+
                }
            }
        }

        /// Each option has a method that sets it; one that can be repeated is added to.
        impl RunOptions {
            $(setter! { $(#[doc = $help])+ $field: $kind $(<$one>)? })+
        }

        impl RunOptions {
            /// Sets an option from JSON. Null leaves it absent.
            pub fn read(&mut self, setting: Setting, value: &Value) -> Result<(), BadValue> {
                match setting {
                    _ if value.is_null() => {}
                    Setting::Prompt | Setting::PromptFile => {}
                    $(Setting::$setting => self.$field = OptionValue::read(value)?,)+
                }
                Ok(())
            }

            /// Sets an option from the command line, or adds to it; none is the option without a value.
            pub fn add(&mut self, setting: Setting, text: Option<&OsStr>) -> Result<(), BadValue> {
                match setting {
                    Setting::Prompt | Setting::PromptFile => Ok(()),
                    $(Setting::$setting => self.$field.add(text),)+
                }
            }

            /// Returns true if the option was given.
            pub fn has(&self, setting: Setting) -> bool {
                match setting {
                    Setting::Prompt | Setting::PromptFile => false,
                    $(Setting::$setting => !self.$field.is_absent(),)+
                }
            }

            /// Takes one option from others, absent or not.
            pub fn replace(&mut self, from: &Self, setting: Setting) {
                match setting {
                    Setting::Prompt | Setting::PromptFile => {}
                    $(Setting::$setting => self.$field.clone_from(&from.$field),)+
                }
            }

            /// Returns the options that were given as a JSON object. A path that is no text cannot be in one.
            pub fn to_fields(&self) -> Result<Map<String, Value>, SettingError> {
                let mut fields = Map::new();
                $(
                    let value = self.$field.write().map_err(|bad| SettingError::of(Setting::$setting, bad))?;
                    fields.extend(value.map(|value| (stringify!($field).to_owned(), value)));
                )+
                Ok(fields)
            }
        }
    };
}

options! {
    /// How the prompt gets to the CLI [default: auto].
    PromptBy prompt_by: Option<PromptBy> = "PROMPT_BY",
    /// How Gemini CLI is talked to; over ACP it may edit build files, which it refuses headless [default: headless].
    Transport transport: Option<Transport> = "TRANSPORT",
    /// Run another agent that speaks ACP by this command, such as 'qwen --acp'.
    AgentCommand agent_command: Option<String> = "COMMAND",
    /// Use the scripted model on this machine instead of Gemini; with a file, that scenario.
    Offline offline: Option<Offline> = "SCENARIO",
    /// Record what passes between Gemini CLI and the API into this file, or play it back, without a network and a key.
    Cassette cassette: Option<PathBuf> = "FILE",
    /// Record the cassette or play it back; auto records a file that does not exist or ends with an error of the API [default: auto].
    CassetteMode cassette_mode: Option<CassetteMode> = "MODE",
    /// Work in this directory.
    Dir dir: Option<PathBuf> = "DIR",
    /// The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there.
    Gemini gemini: Option<PathBuf> = "PATH|VERSION",
    /// The model.
    Model model: Option<String> = "NAME",
    /// The actions that the model may take without asking.
    Approval approval: Option<Approval> = "MODE",
    /// Run in a folder that is not trusted; the value settings loads the folder's own settings too.
    Trust trust: Option<Trust> = "settings",
    /// The sandbox: on, off, inherit, docker, podman, sandbox-exec, runsc or lxc.
    Sandbox sandbox: Option<Sandbox> = "ENGINE",
    /// Another directory that the model may use; can be repeated.
    IncludeDir include_dir: Vec<PathBuf> = "DIR",
    /// Allow a tool: NAME, or run_shell_command(PREFIX); can be repeated.
    AllowTool allow_tool: Vec<String> = "TOOL",
    /// Deny a tool; can be repeated.
    DenyTool deny_tool: Vec<String> = "TOOL",
    /// A policy file of Gemini CLI; can be repeated.
    Policy policy: Vec<PathBuf> = "FILE",
    /// An MCP server: 'NAME=COMMAND ARGS', 'NAME=URL' or a JSON file; can be repeated.
    McpServer mcp_server: Vec<String> = "SERVER",
    /// Instructions for the model beside the prompt.
    SystemPrompt system_prompt: Option<String> = "TEXT",
    /// Read these instructions from a file.
    SystemPromptFile system_prompt_file: Option<PathBuf> = "FILE",
    /// Add the instructions to the CLI's own, or replace them [default: append].
    SystemPromptMode system_prompt_mode: Option<PromptMode> = "SYSTEM_PROMPT_MODE",
    /// Set a variable for the CLI (NAME=VALUE), or insist that it is set (NAME); can be repeated.
    Env env: Vec<EnvVar> = "NAME=VALUE",
    /// Continue a session: its id or the beginning of it, or the latest. A text with spaces is the prompt.
    Resume resume: Option<Resume> = "ID",
    /// Allow matching actions without asking, such as 'shell(git *)' or 'edit(src/**)'; can be repeated.
    Allow allow: Vec<String> = "RULE",
    /// Deny matching actions, whatever else allows them; a guard against accidents, not a sandbox; can be repeated.
    Deny deny: Vec<String> = "RULE",
    /// Ask about matching actions, also where they would be allowed; can be repeated.
    Ask ask: Vec<String> = "RULE",
    /// Rules in a file; can be repeated.
    Rules rules: Vec<PathBuf> = "FILE",
    /// Reject questions that are not answered within this time, or none [default: 5m].
    PermissionTimeout permission_timeout: Option<TimeLimit> = "TIME",
    /// The id for the new session.
    SessionId session_id: Option<String> = "ID",
    /// Stop after this time, such as 90s or 1h30m, or none [default: none].
    Timeout timeout: Option<TimeLimit> = "TIME",
    /// Stop when nothing arrives within this time, or none [default: 60s].
    FirstEventTimeout first_event_timeout: Option<TimeLimit> = "TIME",
    /// Stop after this long without output while no tool runs, or none [default: 5m].
    StallTimeout stall_timeout: Option<TimeLimit> = "TIME",
    /// Stop after this many turns of the model.
    MaxTurns max_turns: Option<NonZeroU32> = "N",
    /// How often a failing request to the API is tried.
    MaxAttempts max_attempts: Option<NonZeroU32> = "N",
    /// Stop after this many tokens; `alhena help budget` explains it.
    MaxTokens max_tokens: Option<u64> = "N",
    /// Stop once the run has cost this many US dollars.
    MaxCost max_cost: Option<f64> = "USD",
    /// Stop after this many model calls.
    MaxCalls max_calls: Option<u64> = "N",
    /// When the API limits requests: fail, wait[=TIME] as long as it says but in a row no longer than 5m, or model=NAME to continue
    /// with another model [default: fail].
    OnRateLimit on_rate_limit: Option<OnRateLimit> = "ACTION",
    /// A file with the prices of models, instead of ALHENA_PRICES and of the table that comes with Alhena.
    Prices prices: Option<PathBuf> = "FILE",
    /// Require an answer that fits this JSON schema, in a file or given as it is; `alhena help schema` explains it.
    Schema schema: Option<AnswerSchema> = "FILE|JSON",
    /// How often the model may try again when its answer does not fit [default: 2].
    SchemaAttempts schema_attempts: Option<u32> = "N",
    /// A shell command that decides: EVENT is before-tool, after-tool or before-model; `alhena help hooks` explains it.
    Hook hook: Vec<HookSpec> = "EVENT=COMMAND",
    /// How long such a command may take; then the answer is no [default: 60s].
    HookTimeout hook_timeout: Option<Duration> = "TIME",
    /// Keep everything that the CLI wrote in this directory, for `alhena parse DIR`.
    Record record: Option<PathBuf> = "DIR",
    /// Ignore the files with defaults; `alhena help config` explains them.
    NoConfig no_config: bool = "",
    /// More arguments for Gemini CLI itself.
    Args args: Vec<OsString> = "ARGS",
}

/// Options that exclude each other.
const EXCLUSIVE: &[(Setting, Setting)] = &[
    (Setting::AgentCommand, Setting::Gemini),
    (Setting::AgentCommand, Setting::Offline),
    (Setting::AgentCommand, Setting::Cassette),
    (Setting::Offline, Setting::Cassette),
    (Setting::SystemPrompt, Setting::SystemPromptFile),
];

/// Options that mean nothing without one of some others.
const DEPENDENT: &[(Setting, &[Setting])] = &[
    (Setting::CassetteMode, &[Setting::Cassette]),
    (Setting::SystemPromptMode, &[Setting::SystemPrompt, Setting::SystemPromptFile]),
    (Setting::SchemaAttempts, &[Setting::Schema]),
];

/// Returns an error for each pair that excludes each other, and for each option that lacks the one it needs.
fn contradictions(given: impl Fn(&Setting) -> bool) -> impl Iterator<Item = SettingError> {
    let both = EXCLUSIVE.iter().filter(|(one, other)| given(one) && given(other));
    let both = both.map(|(one, other)| SettingError::exclusive(*one, *other)).collect::<Vec<_>>();
    let alone = DEPENDENT.iter().filter(|(setting, needed)| given(setting) && !needed.iter().any(&given));
    let alone = alone.map(|(setting, needed)| SettingError::dependent(*setting, needed)).collect::<Vec<_>>();
    both.into_iter().chain(alone)
}

impl Setting {
    /// Returns the setting with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|setting| setting.name() == name)
    }

    /// The description, without a period at its end.
    pub fn help(self) -> &'static str {
        let text = self.doc().trim();
        text.strip_suffix('.').filter(|text| !text.ends_with('.')).unwrap_or(text)
    }

    /// The settings that cannot be given together with this one.
    pub fn excludes(self) -> impl Iterator<Item = Setting> {
        EXCLUSIVE.iter().filter_map(move |(one, other)| match () {
            () if *one == self => Some(*other),
            () if *other == self => Some(*one),
            () => None,
        })
    }

    /// The settings of which one is needed for this one.
    pub fn needs(self) -> &'static [Setting] {
        DEPENDENT.iter().find(|(setting, _)| *setting == self).map_or(&[], |(_, needed)| needed)
    }
}

/// The name of the field in backticks: how every text of the library refers to a setting. Front ends put their own form in its place.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

impl RunOptions {
    /// Reads the options of an object, or reports all that is wrong with it. `also_known` are names that the caller reads.
    pub fn from_fields(fields: &Map<String, Value>, also_known: &[&str]) -> Result<Self, Vec<SettingError>> {
        let (mut options, mut errors, mut unread) = (Self::default(), Vec::new(), Vec::new());
        for (name, value) in fields {
            match Setting::named(name) {
                _ if also_known.contains(&name.as_str()) => {}
                Some(Setting::Prompt | Setting::PromptFile) | None => {
                    errors.push(SettingError::unknown(name, also_known));
                }
                Some(setting) => {
                    if let Err(bad) = options.read(setting, value) {
                        errors.push(SettingError::of(setting, bad));
                        unread.push(setting);
                    }
                }
            }
        }
        errors.extend(contradictions(|setting| options.has(*setting) || unread.contains(setting)));
        match errors.is_empty() {
            true => Ok(options),
            false => Err(errors),
        }
    }

    /// Refuses options that exclude each other, or that mean nothing without another.
    pub fn check(&self) -> Result<(), SettingError> {
        contradictions(|setting| self.has(*setting)).next().map_or(Ok(()), Err)
    }

    /// Reads the prompt and the options of an object.
    pub fn with_prompt_from(
        fields: &Map<String, Value>,
        also_known: &[&str],
    ) -> Result<(Option<Prompt>, Self), Vec<SettingError>> {
        let known: Vec<&str> = also_known.iter().copied().chain(["prompt", "prompt_file"]).collect();
        let prompt = Prompt::from_fields(fields);
        match (prompt, Self::from_fields(fields, &known)) {
            (Ok(prompt), Ok(options)) => Ok((prompt, options)),
            (Err(error), Ok(_)) => Err(vec![error]),
            (Ok(_), Err(errors)) => Err(errors),
            (Err(error), Err(errors)) => Err(std::iter::once(error).chain(errors).collect()),
        }
    }

    /// Takes the defaults of these settings where nothing was given and nothing given excludes them.
    pub fn fill(&mut self, defaults: &Self, settings: &[Setting]) {
        for setting in settings {
            if !self.has(*setting) && !setting.excludes().any(|other| self.has(other)) {
                self.replace(defaults, *setting);
            }
        }
    }
}

#[cfg(feature = "schema")]
impl RunOptions {
    /// Requires an answer that is a value of this type; `Outcome::data_as` returns it.
    #[must_use]
    pub fn answer<T: schemars::JsonSchema>(self) -> Self {
        self.schema(schemars::schema_for!(T).to_value())
    }
}

impl Serialize for RunOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_fields().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        Self::from_fields(&fields, &[]).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            serde::de::Error::custom(errors.join("; "))
        })
    }
}

#[cfg(test)]
mod tests;
