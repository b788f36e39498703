//! Errors in the values of options.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use super::Setting;
use crate::{Failure, FailureKind, Hint};

/// A text that is not a value of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadValue {
    /// What is wrong.
    pub problem: String,
    /// What to do; may be empty.
    pub fix: String,
}

impl BadValue {
    /// A problem without a fix.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), fix: String::new() }
    }

    /// The same with a fix.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl Error for BadValue {}

impl From<BadValue> for String {
    fn from(bad: BadValue) -> Self {
        bad.problem
    }
}

impl Hint for BadValue {
    fn hint(&self) -> Option<Cow<'_, str>> {
        (!self.fix.is_empty()).then(|| self.fix.as_str().into())
    }
}

/// A problem with one option, or with several together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The option; none if the name is unknown.
    pub setting: Option<Setting>,
    /// What is wrong.
    pub problem: String,
    /// What to do; may be empty.
    pub fix: String,
}

impl SettingError {
    /// A problem that is not with one option alone, and what to do.
    pub fn new(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { setting: None, problem: problem.into(), fix: fix.into() }
    }

    /// A bad value of this option.
    pub fn of(setting: Setting, BadValue { problem, fix }: BadValue) -> Self {
        Self { setting: Some(setting), problem, fix }
    }

    pub(super) fn unknown(name: &str, also_known: &[&str]) -> Self {
        let fields = Setting::ALL.iter().map(|setting| setting.name());
        let known = fields.filter(|name| !matches!(*name, "prompt" | "prompt_file"));
        let fix =
            match nearest(&name.replace('-', "_").to_lowercase(), known.chain(also_known.iter().copied())) {
                Some(meant) => format!("Did you mean `{meant}`?"),
                None => "Names are those of the options of `alhena run`, with underscores.".to_owned(),
            };
        Self { setting: None, problem: format!("there is no option `{name}`"), fix }
    }

    pub(super) fn exclusive(one: Setting, other: Setting) -> Self {
        let problem = format!("{one} and {other} cannot be given together");
        Self { setting: Some(one), problem, fix: "Leave one of them out.".to_owned() }
    }

    pub(super) fn dependent(setting: Setting, needed: &[Setting]) -> Self {
        let needed: Vec<String> = needed.iter().map(ToString::to_string).collect();
        let needed = needed.join(" or ");
        let fix = format!("Give {needed}, or leave {setting} out.");
        Self { setting: Some(setting), problem: format!("{setting} needs {needed}"), fix }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.setting {
            Some(setting) if !self.problem.contains(&setting.to_string()) => {
                write!(f, "{setting}: {}", self.problem)
            }
            _ => f.write_str(&self.problem),
        }
    }
}

impl Error for SettingError {}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Self {
        Failure::new(FailureKind::Input, error.to_string()).with_hint(error.fix)
    }
}

impl Hint for SettingError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        (!self.fix.is_empty()).then(|| self.fix.as_str().into())
    }
}

/// How close two names are when one is probably meant by the other.
const CLOSE: f64 = 0.7;

/// Returns the name that is closest to the written one, if one is close.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = names.into_iter().map(|name| (strsim::jaro_winkler(written, name), name));
    let (closeness, name) = close.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (closeness > CLOSE).then_some(name)
}
