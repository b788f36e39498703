//! Options with a few values, each with a name and a meaning.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{BadValue, nearest};

/// An option with a few values.
pub trait Choice: Copy + PartialEq + Sized + 'static {
    /// All values.
    const ALL: &'static [Self];

    /// The name of the value, and then every other that is accepted for it.
    fn names(self) -> &'static [&'static str];

    /// What the value means.
    fn help(self) -> &'static str;

    /// The name of the value.
    fn name(self) -> &'static str {
        self.names().first().copied().unwrap_or_default()
    }

    /// Returns the value with this name.
    fn parse(text: &str) -> Result<Self, BadValue> {
        Self::ALL.iter().copied().find(|choice| choice.names().contains(&text)).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|choice| choice.name()).collect();
            let meant = nearest(text, Self::ALL.iter().flat_map(|choice| choice.names().iter().copied()));
            BadValue::new(format!("{text:?} is none of {}", names.join(", ")))
                .fix(meant.map(|meant| format!("Did you mean {meant}?")).unwrap_or_default())
        })
    }
}

macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+ $(#[derive($derive:ident)])? $name:ident {
            $($(#[doc = $help:literal])+ $(#[$default:ident])? $value:ident = $($text:literal)|+,)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash $(, $derive)?)]
        pub enum $name {
            $($(#[doc = $help])+ $(#[$default])? $value,)+
        }

        impl Choice for $name {
            const ALL: &'static [Self] = &[$($name::$value,)+];

            fn names(self) -> &'static [&'static str] {
                match self {
                    $($name::$value => &[$($text),+],)+
                }
            }

            fn help(self) -> &'static str {
                let help = match self {
                    $($name::$value => concat!($($help,)+),)+
                };
                help.trim().trim_end_matches('.')
            }
        }

        impl FromStr for $name {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                Choice::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )+};
}

choices! {
    /// The actions that the model may take without asking. In headless mode nobody can be asked: tools that would need it are missing.
    #[derive(Default)]
    Approval {
        /// Read only.
        #[default]
        Default = "default" | "suggest",
        /// Files may be edited.
        AutoEdit = "auto-edit" | "auto_edit" | "autoEdit" | "acceptEdits",
        /// Everything, shell commands too.
        Yolo = "yolo" | "full_auto" | "full-auto" | "bypassPermissions",
        /// Read only, and plans.
        Plan = "plan",
    }

    /// How Gemini CLI is talked to.
    #[derive(Default)]
    Transport {
        /// A process for the prompt, that writes stream-json.
        #[default]
        Headless = "headless",
        /// The Agent Client Protocol: what would need a yes is decided by rules and the approval mode.
        Acp = "acp",
        /// The first that can do what is asked.
        Auto = "auto",
    }

    /// How a prompt gets to the CLI.
    #[derive(Default)]
    PromptBy {
        /// As an argument when it is short, on standard input when it is long.
        #[default]
        Auto = "auto",
        /// As the value of an argument.
        Flag = "flag",
        /// On standard input.
        Stdin = "stdin",
        /// The model is told to read the file itself.
        File = "file",
        /// As the last argument.
        Positional = "positional",
    }

    /// The place of the instructions beside the prompt.
    #[derive(Default)]
    PromptMode {
        /// After the CLI's own system prompt.
        #[default]
        Append = "append",
        /// Instead of it.
        Replace = "replace",
    }

    /// Recording or playback.
    #[derive(Default)]
    CassetteMode {
        /// Record, in place of the cassette that is there; errors of the API too.
        Record = "record",
        /// Play back, errors too; a request that was not recorded fails with what differs.
        Replay = "replay",
        /// Play back if the file is there and the API had answered, record if not; nothing is kept that ends with an error.
        #[default]
        Auto = "auto",
    }
}

impl Approval {
    /// How much it lets the model do: a mode with a higher number allows more.
    pub fn rank(self) -> u8 {
        match self {
            Approval::Plan => 0,
            Approval::Default => 1,
            Approval::AutoEdit => 2,
            Approval::Yolo => 3,
        }
    }

    /// Returns the mode that allows less.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        if self.rank() <= other.rank() { self } else { other }
    }

    /// The value of Gemini CLI's `--approval-mode`.
    pub fn flag(self) -> &'static str {
        match self {
            Approval::Default => "default",
            Approval::AutoEdit => "auto_edit",
            Approval::Yolo => "yolo",
            Approval::Plan => "plan",
        }
    }
}
