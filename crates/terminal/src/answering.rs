//! Answering dialogs, and interrupting what an agent does.

use std::time::{Duration, Instant};

use alhena_model::Timestamp;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Reading, Status, Waiting, WaitingFor};
use crate::store::Phase;
use crate::terminal::{History, Live, Terminal, Until, status_name};
use crate::typing::{AFTER_PASTE, ATTEMPTS, OTHERS, not_taken, settle};
use crate::wording::cleaned;

/// How long a dialog may take to show that a key has reached it.
const TAKEN: Duration = Duration::from_millis(1500);
/// How long the CLI may take to start again, if it does.
const RESTART: Duration = Duration::from_secs(5);

impl Terminal {
    /// Answers a dialog: by the number of an option, by the beginning of its label, or, where text is asked for, by that.
    pub fn answer(&self, answer: &str) -> Result<Reading, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        let reading = self.status()?;
        let Some(waiting) = reading.waiting_for.filter(|_| reading.status == Status::Waiting) else {
            return Err(TerminalError::new(
                TerminalErrorKind::NotReady,
                format!("{} asks nothing: it is {}", self.name(), status_name(reading.status)),
            )
            .hint("`alhena terminal send` sends a message."));
        };
        let live = self.live()?;
        let started = self.record()?.started;
        match chosen(&waiting, answer)? {
            Some(number) => {
                self.choose(&live, &waiting, number)?;
                if waiting.kind == WaitingFor::Trust {
                    self.wait_for_restart(started)?;
                }
            }
            None => {
                let (text, _) = cleaned(answer);
                self.paste(&live, &text)?;
                std::thread::sleep(AFTER_PASTE);
                live.press("Enter")?;
                settle(&live);
            }
        }
        self.status()
    }

    /// After a decision about trust 0.61.0 shows its prompt for a moment, and starts again.
    fn wait_for_restart(&self, started: Option<Timestamp>) -> Result<(), TerminalError> {
        let deadline = Instant::now() + RESTART;
        while Instant::now() < deadline {
            let record = self.record()?;
            if record.started != started || record.phase == Phase::Ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn choose(&self, live: &Live, waiting: &Waiting, number: u32) -> Result<(), TerminalError> {
        for attempt in 0..ATTEMPTS {
            // A number alone chooses; where it only moves the mark, Enter does.
            let selected = self.dialog()?.filter(|now| now.question == waiting.question);
            let Some(now) = selected else { return Ok(()) };
            let marked = now.options.iter().any(|option| option.number == number && option.selected);
            match attempt > 0 && marked {
                true => live.press("Enter")?,
                false => live.press(&number.to_string())?,
            }
            let deadline = Instant::now() + TAKEN;
            while Instant::now() < deadline {
                settle(live);
                if self.dialog()?.as_ref() != Some(&now) {
                    break;
                }
            }
            let after = self.dialog()?;
            if after.is_none_or(|after| (after.question, after.detail) != (now.question, now.detail)) {
                return Ok(());
            }
        }
        Err(not_taken("the dialog does not take the answer").screen(&live.look(History::None)?.text))
    }

    fn dialog(&self) -> Result<Option<Waiting>, TerminalError> {
        Ok(self.glance()?.waiting_for)
    }

    /// Interrupts what the agent does, by Escape, and waits until it takes a prompt again. An agent that does nothing is
    /// left alone: there Escape means other things.
    pub fn interrupt(&self, timeout: Duration) -> Result<Reading, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        self.interrupt_unlocked(timeout)
    }

    pub(crate) fn interrupt_unlocked(&self, timeout: Duration) -> Result<Reading, TerminalError> {
        let deadline = Instant::now() + timeout;
        loop {
            let reading = self.status()?;
            if !matches!(reading.status, Status::Processing | Status::Waiting | Status::Starting) {
                return Ok(reading);
            }
            if Instant::now() >= deadline {
                return Err(TerminalError::new(
                    TerminalErrorKind::Timeout,
                    format!("{} does not stop", self.name()),
                )
                .hint(format!("`alhena terminal kill {}` ends it.", self.name())));
            }
            let live = self.live()?;
            match reading.waiting_for.as_ref().and_then(stop_of) {
                // Escape does nothing there.
                Some(number) => live.press(&number.to_string())?,
                None => live.press("Escape")?,
            }
            let patience = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(2));
            match self.wait(Until::Idle, patience) {
                Err(error) if error.kind != TerminalErrorKind::Timeout => return Err(error),
                _ => {}
            }
        }
    }
}

/// The option that an answer means. None where the dialog has none and takes text.
fn chosen(waiting: &Waiting, answer: &str) -> Result<Option<u32>, TerminalError> {
    if waiting.options.is_empty() {
        return Ok(None);
    }
    let wanted = answer.trim().to_lowercase();
    let by_number = wanted.parse::<u32>().ok();
    let mut fitting = waiting.options.iter().filter(|option| match by_number {
        Some(number) => option.number == number,
        None => !wanted.is_empty() && option.label.to_lowercase().starts_with(&wanted),
    });
    match (fitting.next(), fitting.next()) {
        (Some(option), None) => Ok(Some(option.number)),
        _ => {
            let options: Vec<String> =
                waiting.options.iter().map(|option| format!("{}. {}", option.number, option.label)).collect();
            Err(TerminalError::usage(
                format!("{answer:?} is not one of the options of {:?}", waiting.question),
                format!("Choose by number: {}.", options.join("; ")),
            ))
        }
    }
}

/// The option of a dialog about the model or its quota that gives the turn up.
fn stop_of(waiting: &Waiting) -> Option<u32> {
    let asks = matches!(waiting.kind, WaitingFor::Model | WaitingFor::Quota);
    waiting.options.iter().find(|option| asks && option.label == "Stop").map(|option| option.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Choice;

    #[test]
    fn an_answer_names_one_option() {
        let option = |number, label: &str| Choice { number, label: label.to_owned(), selected: false };
        let waiting = Waiting {
            kind: WaitingFor::ToolApproval,
            question: "Allow?".to_owned(),
            options: vec![
                option(1, "Allow once"),
                option(2, "Allow for this session"),
                option(3, "No (esc)"),
            ],
            detail: None,
        };
        assert_eq!(chosen(&waiting, " 2 "), Ok(Some(2)));
        assert_eq!(chosen(&waiting, "no"), Ok(Some(3)));
        for wrong in ["4", "allow", "", "yes"] {
            assert_eq!(chosen(&waiting, wrong).unwrap_err().kind, TerminalErrorKind::Usage, "{wrong}");
        }
        assert_eq!(chosen(&Waiting { options: Vec::new(), ..waiting }, "anything"), Ok(None));
    }
}
