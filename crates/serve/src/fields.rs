//! What Alhena says to people, with the names of fields: whoever asks over HTTP gives no options of a command line.
//!
//! Only its own words are changed. What the model, the CLI and tools say goes to the log as it is.

use std::collections::HashMap;

use alhena_model::{Event, EventKind, Failure, Outcome, Setting, Source};

/// Renames options in what is said of one run or turn.
#[derive(Default)]
pub struct InFields {
    /// What was said in an event and is said again in the outcome.
    renamed: HashMap<String, String>,
}

impl InFields {
    /// An event on its way to the log.
    pub fn event(&mut self, event: &mut Event) {
        if event.source != Source::Derived {
            return;
        }
        if let EventKind::Warning { message } | EventKind::Error { message } = &mut event.kind
            && message.contains("--")
        {
            let renamed = Setting::in_fields(message);
            self.renamed.insert(std::mem::replace(message, renamed.clone()), renamed);
        }
    }

    /// How it ended, with the same words as its events.
    pub fn outcome(&self, outcome: &mut Outcome) {
        outcome.failure.iter_mut().for_each(|failure| self.failure(failure));
        for warning in &mut outcome.warnings {
            if let Some(renamed) = self.renamed.get(warning) {
                warning.clone_from(renamed);
            }
        }
    }

    /// Why something failed.
    pub fn failure(&self, failure: &mut Failure) {
        failure.message = Setting::in_fields(&failure.message);
        failure.hint = Setting::in_fields(&failure.hint);
    }

    /// What else people should know, all of it ours.
    pub fn warnings(&self, warnings: Vec<String>) -> Vec<String> {
        warnings.iter().map(|warning| Setting::in_fields(warning)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use alhena_model::Timestamp;
    use serde_json::Value;

    use super::*;

    fn told(fields: &mut InFields, source: Source, kind: EventKind) -> Value {
        let mut event = Event { seq: 0, at: Timestamp::now(), source, kind };
        fields.event(&mut event);
        serde_json::to_value(event).unwrap()
    }

    #[test]
    fn only_what_alhena_itself_says_is_renamed_in_events_and_in_the_outcome() {
        let mut fields = InFields::default();
        let warning = |text: &str| EventKind::Warning { message: text.to_owned() };
        let ours = told(&mut fields, Source::Derived, warning("ours: --trust"));
        assert_eq!(ours.get("message").unwrap(), "ours: trust");
        let theirs = told(&mut fields, Source::Stream, warning("theirs: --trust"));
        assert_eq!(theirs.get("message").unwrap(), "theirs: --trust");
        let text = told(&mut fields, Source::Derived, EventKind::Text { delta: "--trust".to_owned() });
        assert_eq!(text.get("delta").unwrap(), "--trust");
        let warnings = ["ours: --trust", "theirs: --trust"].map(str::to_owned).to_vec();
        let mut outcome = Outcome::default();
        outcome.warnings = warnings;
        fields.outcome(&mut outcome);
        assert_eq!(outcome.warnings, ["ours: trust", "theirs: --trust"]);
    }
}
