//! What the session file added to the stream, until the outcome.

use crate::outcome::{Outcome, Text};
use crate::usage::Usage;

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
            let Some(known) = self.usage.models.get(name) else { continue };
            // The derived figure holds both together.
            let tool = known.tool.min(tokens.thoughts);
            (tokens.tool, tokens.thoughts) = (tool, tokens.thoughts - tool);
        }
        let tool = self.usage.all.tool.min(outcome.usage.all.thoughts);
        outcome.usage.all.tool = tool;
        outcome.usage.all.thoughts -= tool;
    }

    /// After a retry in mid-stream the stream says the beginning of an answer again; the session has each answer once.
    fn settle_text(&self, outcome: &mut Outcome) {
        let Some(last) = self.answers.last() else { return };
        if self.size > Text::LIMIT / 4 || outcome.text.truncated() {
            return;
        }
        let whole: String = self.answers.concat();
        let streamed = outcome.text.all();
        // The session trims what it stores; that alone is no repetition.
        let words = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
        let repeated = streamed.trim_end().ends_with(last.as_str()) && words(streamed) > words(&whole);
        if repeated {
            let is_final = outcome.text.last().ends_with(last.as_str());
            let mut text = Text::default();
            let (before, after) = whole.split_at(whole.len() - last.len());
            text.push(before);
            if is_final {
                text.start_over();
            }
            text.push(after);
            outcome.text = text;
        }
    }
}
