//! Values of options: read from JSON and from text, and written as JSON.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::choice::{Approval, CassetteMode, Choice, PromptBy, PromptMode, Transport};
use super::env::EnvVar;
use super::error::BadValue;
use super::hook::HookSpec;
use super::limit::{TimeLimit, dollars, time, written};
use super::rate_limit::OnRateLimit;

/// The number of values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None: it is given or not.
    Nothing,
    /// One.
    One,
    /// One or none.
    Perhaps,
    /// Any number.
    Many,
}

/// The names and the meaning of each value of an option.
type Choices = Vec<(&'static [&'static str], &'static str)>;

/// The value of an option: absent, one, or several.
pub(super) trait OptionValue: Clone + Default {
    const TAKES: Takes;

    fn is_absent(&self) -> bool;
    /// Reads JSON that is not null.
    fn read(value: &Value) -> Result<Self, BadValue>;
    fn write(&self) -> Result<Option<Value>, BadValue>;
    /// Takes a text of the command line; none is the option without a value.
    fn add(&mut self, text: Option<&OsStr>) -> Result<(), BadValue>;
    fn value_of_text(text: &str) -> Value;
    fn schema() -> Value;

    fn choices() -> Choices {
        Vec::new()
    }
}

/// One value.
pub(super) trait OneValue: Clone {
    /// Can be given without a value.
    const PERHAPS: bool = false;
    /// Accepts an object with a text for each name.
    const PAIRS: bool = false;
    /// Accepts an object as it is.
    const OBJECT: bool = false;

    fn parse(text: &OsStr) -> Result<Self, BadValue>;
    fn write(&self) -> Result<Value, BadValue>;

    /// The value of the option that is given without one.
    fn alone() -> Option<Self> {
        None
    }

    /// The value for `false`; none leaves the option absent.
    fn off() -> Option<Self> {
        None
    }

    fn of_object(_: &Map<String, Value>) -> Option<Self> {
        None
    }

    fn choices() -> Choices {
        Vec::new()
    }
}

impl OptionValue for bool {
    const TAKES: Takes = Takes::Nothing;

    fn is_absent(&self) -> bool {
        !self
    }

    fn read(value: &Value) -> Result<Self, BadValue> {
        value.as_bool().ok_or_else(|| BadValue::new("true or false is needed"))
    }

    fn write(&self) -> Result<Option<Value>, BadValue> {
        Ok(self.then_some(Value::Bool(true)))
    }

    fn add(&mut self, _: Option<&OsStr>) -> Result<(), BadValue> {
        *self = true;
        Ok(())
    }

    fn value_of_text(text: &str) -> Value {
        truth(text)
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl<T: OneValue> OptionValue for Option<T> {
    const TAKES: Takes = if T::PERHAPS { Takes::Perhaps } else { Takes::One };

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn read(value: &Value) -> Result<Self, BadValue> {
        let perhaps = Self::TAKES == Takes::Perhaps;
        match value {
            Value::Bool(true) if perhaps => Ok(T::alone()),
            Value::Bool(false) if perhaps => Ok(T::off()),
            Value::Object(object) if T::OBJECT => Ok(T::of_object(object)),
            _ => one(value).map(Some).map_err(|bad| {
                match perhaps && bad.fix.is_empty() && !T::choices().is_empty() {
                    true => bad.fix("Give true or one of these."),
                    false => bad,
                }
            }),
        }
    }

    fn write(&self) -> Result<Option<Value>, BadValue> {
        self.as_ref().map(T::write).transpose()
    }

    fn add(&mut self, text: Option<&OsStr>) -> Result<(), BadValue> {
        *self = match text {
            Some(text) => Some(T::parse(text)?),
            None => T::alone(),
        };
        Ok(())
    }

    fn value_of_text(text: &str) -> Value {
        match Self::TAKES {
            Takes::Perhaps => truth(text),
            _ if T::OBJECT && text.starts_with('{') => json_or_text(text),
            _ => text.into(),
        }
    }

    fn schema() -> Value {
        let names: Vec<&str> =
            T::choices().into_iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let one = match names.is_empty() {
            true if T::OBJECT => json!({ "type": ["string", "object"] }),
            true => json!({ "type": ["string", "number"] }),
            false => json!({ "enum": names }),
        };
        match Self::TAKES {
            Takes::Perhaps => json!({ "anyOf": [{ "type": "boolean" }, one] }),
            _ => one,
        }
    }

    fn choices() -> Choices {
        T::choices()
    }
}

impl<T: OneValue> OptionValue for Vec<T> {
    const TAKES: Takes = Takes::Many;

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn read(value: &Value) -> Result<Self, BadValue> {
        match value {
            Value::Array(values) => values.iter().map(one).collect(),
            Value::Object(pairs) if T::PAIRS => {
                if let Some(name) = pairs.keys().find(|name| name.is_empty() || name.contains('=')) {
                    return Err(BadValue::new(format!("the name {name:?} is empty or has a = in it")));
                }
                let texts = pairs.iter().map(|(name, value)| Ok(format!("{name}={}", plain(value)?)));
                texts.map(|text| T::parse(OsStr::new(&text?))).collect()
            }
            Value::String(_) | Value::Number(_) => Ok(vec![one(value)?]),
            _ if T::PAIRS => Err(BadValue::new("a list of texts, or an object with texts, is needed")),
            _ => Err(BadValue::new("a text, or a list of texts, is needed")),
        }
    }

    fn write(&self) -> Result<Option<Value>, BadValue> {
        let values: Vec<Value> = self.iter().map(T::write).collect::<Result<_, _>>()?;
        Ok((!values.is_empty()).then_some(Value::Array(values)))
    }

    fn add(&mut self, text: Option<&OsStr>) -> Result<(), BadValue> {
        self.push(T::parse(text.unwrap_or_default())?);
        Ok(())
    }

    fn value_of_text(text: &str) -> Value {
        match text.starts_with('[') || T::PAIRS && text.starts_with('{') {
            true => json_or_text(text),
            false => text.into(),
        }
    }

    fn schema() -> Value {
        let one = json!({ "type": ["string", "number"] });
        let list = json!({ "type": "array", "items": one });
        match T::PAIRS {
            true => json!({ "anyOf": [list, one, { "type": "object", "additionalProperties": one }] }),
            false => json!({ "anyOf": [list, one] }),
        }
    }
}

fn one<T: OneValue>(value: &Value) -> Result<T, BadValue> {
    T::parse(OsStr::new(&plain(value)?))
}

/// A text or a number, as it would be typed.
fn plain(value: &Value) -> Result<String, BadValue> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(BadValue::new("a text with a zero character cannot be given"))
        }
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(BadValue::new("a text or a number is needed")),
    }
}

fn truth(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text.into(),
    }
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_no_json| text.into())
}

fn text(text: &OsStr) -> Result<&str, BadValue> {
    text.to_str().ok_or_else(|| BadValue::new(format!("{text:?} is not UTF-8 text")))
}

fn parsed<T: FromStr>(given: &OsStr) -> Result<T, BadValue>
where
    T::Err: fmt::Display,
{
    text(given)?.parse().map_err(|error: T::Err| BadValue::new(error.to_string()))
}

/// Reads a number in a range, both ends included.
fn in_range(given: &OsStr, least: u32) -> Result<u32, BadValue> {
    let number: i64 = parsed(given)?;
    let in_range = u32::try_from(number).ok().filter(|number| *number >= least);
    in_range.ok_or_else(|| BadValue::new(format!("{number} is not in {least}..={}", u32::MAX)))
}

/// Implements [`OneValue`] for types that are read by `FromStr` and written by `Display`.
macro_rules! by_text {
    ($($name:ident $({ $($more:item)* })?),+ $(,)?) => {$(
        impl OneValue for $name {
            fn parse(given: &OsStr) -> Result<Self, BadValue> {
                text(given)?.parse()
            }

            fn write(&self) -> Result<Value, BadValue> {
                Ok(self.to_string().into())
            }

            $($($more)*)?
        }
    )+};
}

by_text! {
    TimeLimit,
    OnRateLimit,
    EnvVar { const PAIRS: bool = true; },
    HookSpec { const PAIRS: bool = true; },
}

/// The same for options with a few values.
macro_rules! by_choice {
    ($($name:ident),+) => {$(
        impl OneValue for $name {
            fn parse(given: &OsStr) -> Result<Self, BadValue> {
                Choice::parse(text(given)?)
            }

            fn write(&self) -> Result<Value, BadValue> {
                Ok(self.name().into())
            }

            fn choices() -> Choices {
                Self::ALL.iter().map(|choice| (choice.names(), choice.help())).collect()
            }
        }
    )+};
}

by_choice!(Approval, CassetteMode, PromptBy, PromptMode, Transport);

impl OneValue for String {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        text(given).map(str::to_owned)
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(self.as_str().into())
    }
}

impl OneValue for OsString {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        Ok(given.to_owned())
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(text(self)?.into())
    }
}

impl OneValue for PathBuf {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        Ok(given.into())
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(text(self.as_os_str())?.into())
    }
}

impl OneValue for u32 {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        in_range(given, 0)
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok((*self).into())
    }
}

impl OneValue for NonZeroU32 {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        in_range(given, 1).and_then(|number| Self::new(number).ok_or_else(BadValue::default))
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(self.get().into())
    }
}

impl OneValue for u64 {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        parsed(given)
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok((*self).into())
    }
}

/// US dollars.
impl OneValue for f64 {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        dollars(text(given)?)
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok((*self).into())
    }
}

impl OneValue for Duration {
    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        time(text(given)?)
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(written(*self).into())
    }
}

/// Running in a folder that is not trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// As the CLI has it; an untrusted folder is a failure that says so.
    #[default]
    AsIs,
    /// Run; with the folder's own settings only where the user trusts it.
    Run,
    /// Run, with the folder's own settings.
    WithSettings,
}

impl OneValue for Trust {
    const PERHAPS: bool = true;

    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        match text(given)? {
            "settings" => Ok(Trust::WithSettings),
            other => Err(BadValue::new(format!("{other:?} is none of settings"))),
        }
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(match self {
            Trust::AsIs => false.into(),
            Trust::Run => true.into(),
            Trust::WithSettings => "settings".into(),
        })
    }

    fn alone() -> Option<Self> {
        Some(Trust::Run)
    }

    fn choices() -> Choices {
        vec![(&["settings"], "Load the folder's own settings too")]
    }
}

/// The sandbox. The CLI's flag only switches it on; the engine is chosen by the environment (0.61.0).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// As the user's settings have it.
    #[default]
    Inherit,
    /// None.
    Off,
    /// The default engine.
    On,
    /// This engine: `docker`, `podman`, `sandbox-exec`, `runsc`, `lxc`.
    Engine(String),
}

impl FromStr for Sandbox {
    type Err = BadValue;

    fn from_str(name: &str) -> Result<Self, BadValue> {
        match name {
            "inherit" => Ok(Sandbox::Inherit),
            "off" | "none" | "false" | "no" => Ok(Sandbox::Off),
            "on" | "true" | "yes" => Ok(Sandbox::On),
            "docker" | "podman" | "sandbox-exec" | "runsc" | "lxc" | "windows-native" => {
                Ok(Sandbox::Engine(name.to_owned()))
            }
            _ => Err(BadValue::new(format!(
                "unknown sandbox {name:?}; use on, off, inherit, docker, podman, sandbox-exec, runsc or lxc"
            ))),
        }
    }
}

impl OneValue for Sandbox {
    const PERHAPS: bool = true;

    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        text(given)?.parse()
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(match self {
            Sandbox::Inherit => "inherit".into(),
            Sandbox::Off => false.into(),
            Sandbox::On => true.into(),
            Sandbox::Engine(engine) => engine.as_str().into(),
        })
    }

    fn alone() -> Option<Self> {
        Some(Sandbox::On)
    }

    fn off() -> Option<Self> {
        Some(Sandbox::Off)
    }
}

/// The session to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The one that was started last, as the CLI's own `latest`.
    Latest,
    /// The one with exactly this id; or, as for the CLI, a number that counts from the one that was started first; or the
    /// only one whose id begins like this.
    Id(String),
}

impl OneValue for Resume {
    const PERHAPS: bool = true;

    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        match text(given)? {
            "latest" => Ok(Resume::Latest),
            id => Ok(Resume::Id(id.to_owned())),
        }
    }

    fn write(&self) -> Result<Value, BadValue> {
        Ok(match self {
            Resume::Latest => true.into(),
            Resume::Id(id) => id.as_str().into(),
        })
    }

    fn alone() -> Option<Self> {
        Some(Resume::Latest)
    }
}

/// The scripted model in the place of Gemini.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offline {
    /// Its tour of what an agent can do.
    Tour,
    /// The scenario in this file.
    Scenario(PathBuf),
}

impl Offline {
    /// The file with the scenario, if one was named.
    pub fn scenario(&self) -> Option<&std::path::Path> {
        match self {
            Offline::Tour => None,
            Offline::Scenario(file) => Some(file),
        }
    }
}

impl OneValue for Offline {
    const PERHAPS: bool = true;

    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        Ok(Offline::Scenario(given.into()))
    }

    fn write(&self) -> Result<Value, BadValue> {
        self.scenario().map_or(Ok(true.into()), |file| Ok(text(file.as_os_str())?.into()))
    }

    fn alone() -> Option<Self> {
        Some(Offline::Tour)
    }
}

/// The JSON schema that an answer has to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerSchema {
    /// The schema itself.
    Json(Map<String, Value>),
    /// A file with the schema, or its text.
    FileOrText(OsString),
}

/// A value that is not an object is refused when the run starts.
impl From<Value> for AnswerSchema {
    fn from(schema: Value) -> Self {
        match schema {
            Value::Object(schema) => AnswerSchema::Json(schema),
            other => AnswerSchema::FileOrText(other.to_string().into()),
        }
    }
}

impl OneValue for AnswerSchema {
    const OBJECT: bool = true;

    fn parse(given: &OsStr) -> Result<Self, BadValue> {
        Ok(AnswerSchema::FileOrText(given.to_owned()))
    }

    fn write(&self) -> Result<Value, BadValue> {
        match self {
            AnswerSchema::Json(schema) => Ok(schema.clone().into()),
            AnswerSchema::FileOrText(given) => Ok(text(given)?.into()),
        }
    }

    fn of_object(schema: &Map<String, Value>) -> Option<Self> {
        Some(AnswerSchema::Json(schema.clone()))
    }
}
