//! What became of a file over a whole run: one diff from its first state to its last, however often it was edited.
//!
//! The CLI gives a diff for each edit (0.61.0), from the state before that edit to the state after it. Its session file has
//! both states, so that of the first edit's and of the last one's a diff can be made.

use std::collections::HashMap;
use std::time::Duration;

use similar::{Algorithm, TextDiff};

/// So much of all first states together is kept.
const ALL_ORIGINALS: usize = 4 << 20;
/// The diff of very different texts takes long; one that is made in a hurry is true as well, only longer.
const HURRY: Duration = Duration::from_millis(500);
/// What the CLI writes around a change.
const CONTEXT: usize = 3;

/// The states of a file around one edit, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct States {
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The first states of the files that were edited, by their place in the outcome.
#[derive(Default)]
pub(super) struct Originals {
    by_file: HashMap<usize, String>,
    size: usize,
}

impl Originals {
    pub(super) fn first(&mut self, file: usize, states: States) {
        let Some(before) = states.before else { return };
        if self.size + before.len() <= ALL_ORIGINALS {
            self.size += before.len();
            self.by_file.insert(file, before);
        }
    }

    /// The diff from the first state to the one after a later edit, under the header of that edit's own diff. None when one
    /// of them is not known.
    pub(super) fn diff(&self, file: usize, states: &States, last: Option<&str>) -> Option<String> {
        let (first, after) = (self.by_file.get(&file)?, states.after.as_ref()?);
        let header = last.and_then(|diff| diff.find("\n@@ ").and_then(|at| diff.get(..=at))).unwrap_or("");
        let hunks = between(first, after);
        Some(if hunks.is_empty() { hunks } else { format!("{header}{hunks}") })
    }
}

/// The hunks of a unified diff from one text to another; nothing when they are equal.
pub(super) fn between(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(HURRY).diff_lines(before, after);
    diff.unified_diff().context_radius(CONTEXT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(before: &str, after: &str) -> States {
        States { before: Some(before.to_owned()), after: Some(after.to_owned()) }
    }

    #[test]
    fn two_edits_are_one_diff_under_the_header_of_the_last() {
        let mut originals = Originals::default();
        originals.first(0, states("one\ntwo\nthree\n", "1\ntwo\nthree\n"));
        let last = "Index: a\n===\n--- a\tCurrent\n+++ a\tProposed\n@@ -1,3 +1,3 @@\n one\n";
        let diff = originals.diff(0, &states("1\ntwo\nthree\n", "1\ntwo\n3\n"), Some(last)).unwrap();
        assert_eq!(
            diff,
            "Index: a\n===\n--- a\tCurrent\n+++ a\tProposed\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n-three\n+3\n"
        );
    }

    #[test]
    fn an_edit_that_was_taken_back_is_no_difference_and_an_unknown_state_is_no_diff() {
        let mut originals = Originals::default();
        originals.first(0, states("one", "two"));
        assert_eq!(originals.diff(0, &states("two", "one"), None), Some(String::new()));
        assert_eq!(
            originals.diff(0, &states("two", "three"), None).unwrap(),
            "@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+three\n\\ No newline at end of file\n"
        );
        assert_eq!(originals.diff(0, &States::default(), None), None);
        assert_eq!(originals.diff(1, &states("two", "one"), None), None);
        originals.first(2, States { before: Some("x".repeat(ALL_ORIGINALS)), after: None });
        assert_eq!(originals.diff(2, &states("two", "one"), None), None);
    }
}
