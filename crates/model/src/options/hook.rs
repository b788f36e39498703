//! Shell commands that decide while an agent works.

use std::fmt;
use std::str::FromStr;

use super::error::BadValue;

/// When a hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// A tool is about to run.
    BeforeTool,
    /// A tool ran, and the model has not seen its result yet.
    AfterTool,
    /// The model is about to be asked.
    BeforeModel,
}

impl Moment {
    /// All of them.
    pub const ALL: [Moment; 3] = [Moment::BeforeTool, Moment::AfterTool, Moment::BeforeModel];

    /// The CLI's name of it.
    pub fn event(self) -> &'static str {
        match self {
            Moment::BeforeTool => "BeforeTool",
            Moment::AfterTool => "AfterTool",
            Moment::BeforeModel => "BeforeModel",
        }
    }

    /// Its name in options and for programs.
    pub fn name(self) -> &'static str {
        match self {
            Moment::BeforeTool => "before-tool",
            Moment::AfterTool => "after-tool",
            Moment::BeforeModel => "before-model",
        }
    }

    /// Returns the one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|moment| moment.name() == name)
    }
}

/// A shell command that decides: `EVENT=COMMAND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSpec {
    /// When it is asked.
    pub moment: Moment,
    /// The command.
    pub command: String,
}

impl FromStr for HookSpec {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let known = || Moment::ALL.map(Moment::name).join(", ");
        let (name, command) = text.split_once('=').ok_or_else(|| BadValue::new("write EVENT=COMMAND"))?;
        let moment = Moment::named(name)
            .ok_or_else(|| BadValue::new(format!("there is no event {name:?}; there are {}", known())))?;
        match command.trim().is_empty() {
            true => Err(BadValue::new(format!("{name} has no command"))),
            false => Ok(Self { moment, command: command.to_owned() }),
        }
    }
}

impl fmt::Display for HookSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.moment.name(), self.command)
    }
}
