//! What the CLI runs our command for: somebody decides, or an answer of a wanted shape is looked at.

use super::Moment;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Somebody decides.
    Decision(Moment),
    /// The tool of this name took an answer.
    Submission(String),
    /// The model has ended its turn.
    Answer,
}

/// The same without what the CLI is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Decision(Moment),
    Submission,
    Answer,
}

const SUBMISSION: &str = "submission";
const ANSWER: &str = "answer";

impl Word {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            SUBMISSION => Some(Word::Submission),
            ANSWER => Some(Word::Answer),
            name => Moment::named(name).map(Word::Decision),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Word::Decision(moment) => moment.name(),
            Word::Submission => SUBMISSION,
            Word::Answer => ANSWER,
        }
    }
}

impl Occasion {
    pub(super) fn word(&self) -> Word {
        match self {
            Occasion::Decision(moment) => Word::Decision(*moment),
            Occasion::Submission(_) => Word::Submission,
            Occasion::Answer => Word::Answer,
        }
    }

    /// The CLI's name of it.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Occasion::Decision(moment) => moment.event(),
            Occasion::Submission(_) => Moment::AfterTool.event(),
            Occasion::Answer => "AfterAgent",
        }
    }

    /// For which tools, where not for all.
    pub(super) fn matcher(&self) -> Option<String> {
        match self {
            Occasion::Submission(tool) => Some(format!("^{tool}$")),
            Occasion::Decision(_) | Occasion::Answer => None,
        }
    }

    /// The exit code when the command fails: 2 blocks, and silence is no consent. What is an answer is decided at the end
    /// whatever was asked on the way, and a block would only make the model go on.
    pub(super) fn exit_when_failed(&self) -> u8 {
        match self {
            Occasion::Decision(_) => 2,
            Occasion::Submission(_) | Occasion::Answer => 0,
        }
    }
}
