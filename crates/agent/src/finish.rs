//! How the answers of a turn ended: the last one decides whether the turn succeeded, the others are worth a warning.

use alhena_model::judge::finish;

/// The finish reasons of a turn's answers, in the API's words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Finishes {
    /// The reason of the last answer in the conversation; none inside if the API gave none.
    last: Option<Option<String>>,
    warnings: Vec<String>,
    /// Nothing is known of the last answer, although there was one.
    unreadable: bool,
}

impl Finishes {
    /// Takes an answer in the conversation.
    pub(crate) fn answer(&mut self, reason: Option<String>) {
        self.unreadable = false;
        let earlier = self.last.replace(reason).flatten();
        self.aside(earlier.as_deref());
    }

    /// Takes an answer that the conversation does not end with.
    pub(crate) fn aside(&mut self, reason: Option<&str>) {
        let warning = reason.and_then(finish::warning);
        self.warnings.extend(warning.filter(|warning| self.warnings.last() != Some(warning)));
    }

    /// Takes an answer of which nothing is known.
    pub(crate) fn unknown(&mut self) {
        self.answer(None);
        self.last = None;
        self.unreadable = true;
    }

    /// Whether it is known how the last answer ended.
    pub(crate) fn knows_last(&self) -> bool {
        self.last.is_some()
    }

    /// Whether there was a last answer, and nothing is known of it.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Returns the reason of the last answer, where it is known, and the warnings about the others.
    pub(crate) fn take(&mut self) -> (Option<Option<String>>, Vec<String>) {
        let Self { last, warnings, .. } = std::mem::take(self);
        (last, warnings)
    }

    /// Returns the warnings about all answers: for a turn that was judged before its reasons were known.
    pub(crate) fn take_late(&mut self) -> Vec<String> {
        self.unknown();
        std::mem::take(self).warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_decides_and_those_before_are_warned_of_once() {
        let mut finishes = Finishes::default();
        for reason in ["MAX_TOKENS", "MAX_TOKENS", "STOP", "SAFETY"] {
            finishes.answer(Some(reason.to_owned()));
        }
        let (last, warnings) = finishes.take();
        assert_eq!(last, Some(Some("SAFETY".to_owned())));
        assert_eq!(warnings, ["An answer was cut off at the limit of output tokens (MAX_TOKENS)"]);
        assert_eq!(finishes, Finishes::default());
    }

    #[test]
    fn a_turn_that_was_judged_before_is_warned_of_afterwards() {
        let mut finishes = Finishes::default();
        finishes.answer(Some("SAFETY".to_owned()));
        assert_eq!(finishes.take_late(), ["An answer was cut off by a content filter (SAFETY)"]);
        assert_eq!(finishes, Finishes::default());
    }

    #[test]
    fn an_answer_that_cannot_be_read_leaves_the_end_unknown() {
        let mut finishes = Finishes::default();
        finishes.answer(Some("STOP".to_owned()));
        finishes.unknown();
        assert!(!finishes.knows_last() && finishes.is_unreadable());
        finishes.answer(Some("STOP".to_owned()));
        assert!(finishes.knows_last() && !finishes.is_unreadable());
    }
}
