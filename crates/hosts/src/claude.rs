//! What programs on the Claude Agent SDK expect of the `claude` command: its arguments, its stream-json and its control
//! protocol.
//!
//! The SDKs (Python 0.2.182, JavaScript 0.3.325) start any executable and speak with it by lines of JSON on stdin and stdout.
//! Both sides ask and answer: the program asks to initialize, to interrupt, to change the mode or the model; the executable asks
//! whether a tool may be used, and calls hooks. All of that is read and written here, without any I/O.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`options`] | the command line, each option with what becomes of it |
//! | [`control`] | a line that the program writes |
//! | [`hooks`] | which hooks there are, and what they say |
//! | [`permission`] | a question about a tool, and what is answered |
//! | [`lines`] | the lines that the program reads |

pub mod control;
pub mod hooks;
pub mod lines;
pub mod options;
pub mod permission;

use alhena_model::Approval;

/// The version of the `claude` command whose protocol this is. Programs ask for it and warn about older ones.
pub const VERSION: &str = "2.1.325";

/// What the model may do without asking, as Claude has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Ask before anything is changed or run.
    #[default]
    Default,
    /// Files may be edited.
    AcceptEdits,
    /// Everything.
    BypassPermissions,
    /// Read, and plan.
    Plan,
    /// As the default, but nobody is asked: what is not allowed beforehand is denied.
    DontAsk,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 5] =
        [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions, Mode::Plan, Mode::DontAsk];

    /// The mode of that name.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| match name {
            "auto" => "the permission mode auto is a classifier of Claude's: Gemini CLI has none".to_owned(),
            _ => {
                let known: Vec<&str> = Self::ALL.into_iter().map(Mode::name).collect();
                format!("unknown permission mode {name:?}; there are {}", known.join(", "))
            }
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::BypassPermissions => "bypassPermissions",
            Mode::Plan => "plan",
            Mode::DontAsk => "dontAsk",
        }
    }

    /// The mode of Gemini CLI that does the same.
    pub fn approval(self) -> Approval {
        match self {
            Mode::Default | Mode::DontAsk => Approval::Default,
            Mode::AcceptEdits => Approval::AutoEdit,
            Mode::BypassPermissions => Approval::Yolo,
            Mode::Plan => Approval::Plan,
        }
    }
}

/// The model of Gemini's that a name means: none for Claude's own names, which leave the choice to Gemini CLI.
pub fn model(name: &str) -> Option<&str> {
    let alias = matches!(name, "" | "default" | "inherit" | "sonnet" | "opus" | "haiku" | "opusplan");
    (!alias && !name.starts_with("claude-") && !name.starts_with("anthropic")).then_some(name)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests;
