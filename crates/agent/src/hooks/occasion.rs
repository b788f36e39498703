//! What the CLI runs our command for: somebody decides, or an answer of a wanted shape is looked at.

use alhena_model::hook::UNDECIDED;
use serde_json::json;

use super::Moment;
use super::settings::{FAILED, PROGRAM, SOCKET};
use crate::budget;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// Somebody decides.
    Decision(Moment),
    /// The budget decides about a tool that calls a model.
    ModelTool(Moment),
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
            Occasion::Decision(moment) | Occasion::ModelTool(moment) => Word::Decision(*moment),
            Occasion::Submission(_) => Word::Submission,
            Occasion::Answer => Word::Answer,
        }
    }

    /// The CLI's name of it.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Occasion::Decision(moment) | Occasion::ModelTool(moment) => moment.event(),
            Occasion::Submission(_) => Moment::AfterTool.event(),
            Occasion::Answer => "AfterAgent",
        }
    }

    /// For which tools, where not for all.
    pub(super) fn matcher(&self) -> Option<String> {
        match self {
            Occasion::Submission(tool) => Some(format!("^{tool}$")),
            Occasion::ModelTool(_) => {
                Some(format!("^({})$", budget::model_tools().collect::<Vec<_>>().join("|")))
            }
            Occasion::Decision(_) | Occasion::Answer => None,
        }
    }

    /// Returns the shell command that asks. The CLI takes a command that ends without a word for consent, also after exit code 2
    /// and when its shell was killed; with exit code 2, and after JSON, it takes what was said for a denial (0.61.0).
    pub(super) fn command(&self) -> String {
        let ask = format!("\"${PROGRAM}\" hook \"${SOCKET}\" {}", self.word().name());
        let denial = format!("{UNDECIDED}the hook was ended before it decided");
        match self {
            // Standard error counts where nothing is on standard output.
            Occasion::Decision(Moment::BeforeTool | Moment::AfterTool) | Occasion::ModelTool(_) => {
                let said = json!({"decision": "deny", "reason": denial});
                format!("printf %s '{said}' >&2; exec 2>/dev/null; {ask} || exit 2")
            }
            // A model call that is denied ends the run as a success: Alhena has to know that there was no decision.
            Occasion::Decision(Moment::BeforeModel) => {
                format!("{ask} || {{ : >\"${FAILED}\"; echo '{denial}' >&2; exit 2; }}")
            }
            // The answer is checked at the end of the run. Blocking here would only make the model continue.
            Occasion::Submission(_) | Occasion::Answer => format!("{ask} || exit 0"),
        }
    }
}
