//! What Alhena says to people, with the names of fields: whoever asks over HTTP gives no options of a command line.
//!
//! Only its own words are changed. What the model, the CLI and tools say goes to the log as it is.

use std::collections::HashMap;

use alhena_batch::meaning::Meaning;
use alhena_model::{Event, EventKind, Failure, Outcome, Source};

/// Renames options in what is said of one run or turn.
pub struct InFields<'a> {
    meaning: &'a dyn Meaning,
    /// What was said in an event and is said again in the outcome.
    renamed: HashMap<String, String>,
}

impl<'a> InFields<'a> {
    /// By the names that this one knows.
    pub fn new(meaning: &'a dyn Meaning) -> Self {
        Self { meaning, renamed: HashMap::new() }
    }

    /// An event on its way to the log.
    pub fn event(&mut self, event: &mut Event) {
        if event.source != Source::Derived {
            return;
        }
        if let EventKind::Warning { message } | EventKind::Error { message } = &mut event.kind
            && message.contains("--")
        {
            let renamed = self.meaning.in_names(message);
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
        failure.message = self.meaning.in_names(&failure.message);
        failure.hint = self.meaning.in_names(&failure.hint);
    }

    /// What else people should know, all of it ours.
    pub fn warnings(&self, warnings: Vec<String>) -> Vec<String> {
        warnings.iter().map(|warning| self.meaning.in_names(warning)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::unimplemented)]
mod tests {
    use std::path::Path;

    use alhena_batch::meaning::{Ask, Checked, Fault, Options};
    use alhena_model::Timestamp;
    use serde_json::Value;

    use super::*;

    struct Names;

    impl Meaning for Names {
        fn is_option(&self, _: &str) -> bool {
            true
        }

        fn value_of_text(&self, _: &str, text: &str) -> Value {
            text.into()
        }

        fn in_names(&self, text: &str) -> String {
            text.replace("--trust", "trust")
        }

        fn check(&self, _: &Options) -> Result<Checked, Vec<Fault>> {
            Ok(Checked::default())
        }

        fn ask(&self, _: &Options, _: Option<&Path>) -> Result<Ask, alhena_agent::RunError> {
            unimplemented!("nothing is run")
        }
    }

    fn told(fields: &mut InFields<'_>, source: Source, kind: EventKind) -> Value {
        let mut event = Event { seq: 0, at: Timestamp::now(), source, kind };
        fields.event(&mut event);
        serde_json::to_value(event).unwrap()
    }

    #[test]
    fn only_what_alhena_itself_says_is_renamed_in_events_and_in_the_outcome() {
        let mut fields = InFields::new(&Names);
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
