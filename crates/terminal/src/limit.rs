//! A limit on approval modes, for those who use a terminal on somebody's behalf, as the HTTP server does.
//!
//! A person at the keyboard changes the mode at any time, and a dialog hides it. So the mode is read from the screen whenever somebody
//! looks, what was seen last is kept beside the record, and it is checked again after everything else has been waited for.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use alhena_agent::Approval;
use alhena_sys::files;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Waiting, WaitingFor};
use crate::terminal::{History, Live, Terminal};

/// How long a prompt that does not name a mode may take to be drawn.
const DRAWN: Duration = Duration::from_secs(2);

impl Terminal {
    /// The same terminal for somebody who may use no mode above this one: in another mode nothing is sent or answered, and neither is
    /// an answer given that allows as much as such a mode.
    #[must_use]
    pub fn at_most(mut self, limit: Approval) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The approval mode: what the screen shows, or else showed last, or else what it was launched with. A prompt that does not name
    /// its mode may be one in which edits are accepted.
    pub fn approval(&self) -> Result<Approval, TerminalError> {
        let known = self.known_approval()?;
        let Ok(live) = self.live() else { return Ok(known) };
        live.watch(Instant::now() + DRAWN, DRAWN / 10, |late| {
            let look = live.capture_pane(History::None)?;
            let capture = look.capture();
            Ok(match (capture.approval(), capture.draft()) {
                (Some(mode), _) => {
                    self.note_approval(mode);
                    Some(mode)
                }
                (None, Some(_)) if late && known.rank() < Approval::AutoEdit.rank() => {
                    Some(Approval::AutoEdit)
                }
                (None, Some(_)) if !late => None,
                (None, _) => Some(known),
            })
        })
    }

    fn approval_file(&self) -> PathBuf {
        self.record_path().with_extension("mode")
    }

    /// What was seen last, or what it was launched with. A mode that cannot be read may be any.
    fn known_approval(&self) -> Result<Approval, TerminalError> {
        let file = self.approval_file();
        let seen = files::read_if_there(&file).map_err(|error| TerminalError::io(file.display(), &error))?;
        let name = match seen {
            Some(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            None => self.record()?.approval,
        };
        Ok(name.parse().unwrap_or(Approval::Yolo))
    }

    /// Notes what a screen shows, for the time when it does not.
    pub(crate) fn note_approval(&self, mode: Approval) {
        if self.known_approval() != Ok(mode) {
            let _noted_by_the_next_look = files::replace_own(&self.approval_file(), mode.flag().as_bytes());
        }
    }

    pub(crate) fn check_approval(&self) -> Result<(), TerminalError> {
        match self.limit {
            Some(limit) if limit != Approval::Yolo => self.check(limit, self.approval()?),
            _ => Ok(()),
        }
    }

    /// The same where the prompt holds a text, which may hide the mode: only one that is shown counts.
    pub(crate) fn check_shown_approval(&self, live: &Live) -> Result<(), TerminalError> {
        let Some(limit) = self.limit else { return Ok(()) };
        match live.capture_pane(History::None)?.capture().approval() {
            Some(mode) => self.check(limit, mode),
            None => Ok(()),
        }
    }

    pub(crate) fn check_option(&self, waiting: &Waiting, label: &str) -> Result<(), TerminalError> {
        let Some(limit) = self.limit else { return Ok(()) };
        let granted = granted(waiting, label);
        match granted.rank() <= limit.rank() {
            true => Ok(()),
            false => Err(above(format!(
                "the option {label:?} allows as much as the approval mode {granted}, and the limit is {limit}"
            ))
            .with_hint("Choose an option that allows it once, or answer at the terminal itself.")),
        }
    }

    fn check(&self, limit: Approval, mode: Approval) -> Result<(), TerminalError> {
        match mode.rank() <= limit.rank() {
            true => Ok(()),
            false => {
                let message = format!("{} may be in the approval mode {mode}", self.name());
                Err(above(format!("{message}, and the limit is {limit}"))
                    .with_hint("Change the mode at the terminal itself: Shift+Tab, or Ctrl+Y for yolo."))
            }
        }
    }
}

fn above(message: String) -> TerminalError {
    TerminalError::new(TerminalErrorKind::AboveLimit, message)
}

/// The mode that allows as much as an option of a dialog. An option that is not known to allow one thing once may allow everything.
fn granted(waiting: &Waiting, label: &str) -> Approval {
    let is = |words: &[&str]| words.iter().any(|words| label.starts_with(words));
    // The labels are the CLI's own, and no other dialog has this one.
    let is_edit =
        waiting.options.iter().any(|option| option.label.starts_with("Modify with external editor"));
    match waiting.kind {
        WaitingFor::ToolApproval
            if is(&["Allow once", "Yes, allow once", "No", "Modify with external editor"]) =>
        {
            Approval::Plan
        }
        WaitingFor::ToolApproval if is_edit && is(&["Allow for this session", "Yes, allow always"]) => {
            Approval::AutoEdit
        }
        WaitingFor::Trust | WaitingFor::Other if is(&["No", "Don't", "Cancel"]) => Approval::Plan,
        WaitingFor::ToolApproval | WaitingFor::Trust | WaitingFor::Other => Approval::Yolo,
        // A question of the model's own has no such option; an approval that was taken for one has.
        WaitingFor::Question if is(&["Allow "]) && !is(&["Allow once"]) => Approval::Yolo,
        WaitingFor::Question if is(&["Yes, automatically accept edits"]) => Approval::AutoEdit,
        WaitingFor::Question if is(&["Yes, manually accept edits"]) => Approval::Default,
        WaitingFor::Question
        | WaitingFor::Authentication
        | WaitingFor::Quota
        | WaitingFor::Model
        | WaitingFor::Loop => Approval::Plan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn an_option_that_allows_more_than_one_thing_once_needs_a_mode_that_does() {
        use Approval::{AutoEdit, Default, Plan, Yolo};
        let cases: &[(WaitingFor, &[(&str, Approval)])] = &[
            (
                WaitingFor::ToolApproval,
                &[
                    ("Allow once", Plan),
                    ("Allow for this session", Yolo),
                    ("Allow this command for all future sessions", Yolo),
                    ("No, suggest changes (esc)", Plan),
                ],
            ),
            (
                WaitingFor::ToolApproval,
                &[
                    ("Allow once", Plan),
                    ("Allow for this session", AutoEdit),
                    ("Allow for this file in all future sessions", Yolo),
                    ("Modify with external editor", Plan),
                    ("No, suggest changes (esc)", Plan),
                ],
            ),
            (
                WaitingFor::ToolApproval,
                &[
                    ("Allow once", Plan),
                    ("Allow tool for this session", Yolo),
                    ("Allow all server tools for this session", Yolo),
                    ("Allow tool for all future sessions", Yolo),
                ],
            ),
            (
                WaitingFor::Question,
                &[
                    ("Yes, automatically accept edits", AutoEdit),
                    ("Yes, manually accept edits", Default),
                    ("Blue", Plan),
                    ("Allow once", Plan),
                    ("Allow for this session", Yolo),
                ],
            ),
            (
                WaitingFor::Trust,
                &[("Trust folder (project)", Yolo), ("Trust parent folder (w)", Yolo), ("Don't trust", Plan)],
            ),
            (WaitingFor::Other, &[("Yes", Yolo), ("No", Plan)]),
            (WaitingFor::Quota, &[("Keep trying", Plan), ("Stop", Plan)]),
        ];
        for (kind, options) in cases {
            let labels: Vec<&str> = options.iter().map(|(label, _)| *label).collect();
            let dialog = Waiting::asking(*kind, &labels, None);
            for (label, mode) in *options {
                assert_eq!(granted(&dialog, label), *mode, "{label}");
            }
        }
    }
}
