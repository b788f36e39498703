//! `text`: the model's words as they come, every turn on lines of its own.

use alhena_model::{Event, EventKind, Outcome};

/// Knows where the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOutput {
    at_line_start: bool,
}

impl Default for TextOutput {
    fn default() -> Self {
        Self { at_line_start: true }
    }
}

impl TextOutput {
    /// What to print for an event; often nothing.
    pub fn event(&mut self, event: &Event) -> String {
        match &event.kind {
            EventKind::Text { delta } if !delta.is_empty() => {
                self.at_line_start = delta.ends_with('\n');
                delta.clone()
            }
            // A turn is over when its tools have run; the next one starts on a new line, as in the CLI.
            EventKind::ToolResult { .. } | EventKind::Finished { .. } => self.end_line(),
            _ => String::new(),
        }
    }

    fn end_line(&mut self) -> String {
        let newline = if self.at_line_start { "" } else { "\n" };
        self.at_line_start = true;
        newline.to_owned()
    }

    /// What to say on standard error when the run is over: what went wrong, and what to do. Empty for a success.
    pub fn complaint(outcome: &Outcome) -> String {
        match &outcome.failure {
            Some(failure) => format!("{}\n{}\n", failure.message, failure.hint),
            None => String::new(),
        }
    }
}
