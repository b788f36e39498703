//! What the session file added to the stream, until the outcome.

use crate::outcome::{Outcome, Text};
use crate::usage::{Tokens, Usage};

/// Facts of the session file that go into the outcome.
#[derive(Default)]
pub(super) struct Joined {
    pub usage: Usage,
    answers: Vec<String>,
    size: usize,
}

impl Joined {
    /// The text of one answer, whole.
    pub fn text(&mut self, text: String) {
        self.size += text.len();
        // Only needed where the stream may have repeated itself, and never more than an outcome holds.
        if self.size <= Text::LIMIT / 4 {
            self.answers.push(text);
        }
    }

    /// Puts the better facts into the outcome.
    pub fn settle(self, outcome: &mut Outcome) {
        self.settle_usage(outcome);
        self.settle_text(outcome);
    }

    /// The stream counts everything but does not tell thoughts and tool prompts apart; without its figures the session's
    /// are all there is.
    fn settle_usage(&self, outcome: &mut Outcome) {
        if self.usage.all.total == 0 {
            return;
        }
        if outcome.usage.all.total == 0 {
            outcome.usage = self.usage.clone();
            outcome.models = self.usage.models.keys().cloned().collect();
            return;
        }
        for (name, tokens) in &mut outcome.usage.models {
            if let Some(known) = self.usage.models.get(name) {
                settle_tokens(tokens, known);
            }
        }
        settle_tokens(&mut outcome.usage.all, &self.usage.all);
    }

    /// After a retry in mid-stream the stream says the beginning of an answer again; the session has each answer once.
    fn settle_text(&self, outcome: &mut Outcome) {
        let Some(last) = self.answers.last() else { return };
        if self.size > Text::LIMIT / 4 || outcome.text.truncated() {
            return;
        }
        let streamed = outcome.text.all();
        // The session trims what it stores; that alone is no repetition.
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let told: usize = self.answers.iter().map(|answer| letters(answer)).sum();
        let repeated = streamed.trim_end().ends_with(last.as_str()) && letters(streamed) > told;
        let Some(pieces) = self.pieces(streamed).filter(|_| repeated) else { return };
        let is_final = outcome.text.last().contains(last.as_str());
        let mut text = Text::default();
        for (index, piece) in pieces.iter().enumerate() {
            if is_final && index + 1 == pieces.len() {
                text.start_over();
            }
            text.push(piece);
        }
        outcome.text = text;
    }

    /// Each answer where the stream said it last, with the white space behind it, which the session does not keep. None
    /// when the stream said something else.
    fn pieces<'a>(&self, streamed: &'a str) -> Option<Vec<&'a str>> {
        let mut rest = streamed;
        let mut pieces = Vec::new();
        for answer in self.answers.iter().rev() {
            let start = rest.rfind(answer.as_str())?;
            let behind = rest.get(start + answer.len()..)?;
            let space = behind.len() - behind.trim_start().len();
            pieces.push(rest.get(start..start + answer.len() + space)?);
            rest = rest.get(..start)?;
        }
        pieces.reverse();
        Some(pieces)
    }
}

/// The derived figure holds thoughts and tool prompts together, of everything that the process asked; the session's are
/// those of the conversation alone.
fn settle_tokens(tokens: &mut Tokens, known: &Tokens) {
    tokens.tool = known.tool;
    tokens.thoughts = known.thoughts.max(tokens.thoughts.saturating_sub(known.tool));
}
