//! A whole turn in one call, and waiting for whichever agent is first.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::answer::Source;
use crate::control::GLANCE;
use crate::error::{TerminalError, TerminalErrorKind, WAITING};
use crate::screen::{Reading, Status, Waiting};
use crate::terminal::{TICK, Terminal, Until};
use crate::terminals::Terminals;
use crate::turn::How;
use crate::typing::{Force, Sent};
use crate::wording::At;

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// The turn of that question and no other.
    pub turn: u64,
    /// What the agent does now.
    pub status: Status,
    /// How the turn ended. None while it goes on: the agent waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<How>,
    /// Its answer, all of it or what there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where the text comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What people should know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What the agent has to be told before it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Waiting>,
    /// What was changed in the question so that the CLI takes it for text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Asked {
    /// The exit code of `alhena` for it: only a whole answer is a success.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self.ended {
            Some(How::Answered) => 0,
            Some(How::Cancelled) => alhena_model::FailureKind::Cancelled.exit_status(),
            Some(How::Empty | How::Blocked | How::CutOff | How::Error | How::Lost | How::Exited) => 1,
            None => WAITING,
        }
    }
}

impl Terminal {
    /// Sends a message, waits for the end of its turn, and gives its answer. Comes back early when the agent has to be told
    /// something first; how it ended is told by the result, not by an error. What was sent is told at once, whatever comes
    /// of it.
    pub fn ask(
        &self,
        text: &str,
        (force, at): (Force, At),
        timeout: Duration,
        tell: impl FnOnce(&Sent),
    ) -> Result<Asked, TerminalError> {
        let deadline = Instant::now() + timeout;
        if self.status()?.status == Status::Starting {
            // One that was just brought back draws its history more than once.
            self.wait(Until::Settled, timeout)?;
        }
        let sent = self.send_with(text, force, at)?;
        tell(&sent);
        let turn = sent.turn.unwrap_or_default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let reading = self.wait(Until::Settled, left).map_err(|error| TerminalError {
                notices: sent.notices(),
                ..self.goes_on(error, turn, timeout)
            })?;
            if let Some(asked) = self.outcome(turn, reading) {
                return Ok(Asked { notices: sent.notices(), ..asked });
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// What became of a turn, given what the agent does. None while it goes on.
    fn outcome(&self, turn: u64, reading: Reading) -> Option<Asked> {
        let turns = self.turn_records();
        let own = turns.iter().find(|one| one.id == turn)?;
        // A message that somebody else sent behind it is the last turn now, and only that is followed.
        let overtaken = turns.last().is_some_and(|last| last.id > turn);
        let ended = own.ended.as_ref().map(|end| end.how);
        let waits = ended.is_none() && reading.status == Status::Waiting;
        if ended.is_none() && !waits && !overtaken {
            return None;
        }
        self.wait_for_session();
        let answer = self.answer_of(turn);
        let ended = match (ended, &answer) {
            (None, Ok(_)) if overtaken && !waits => Some(How::Answered),
            (None, Err(_)) if overtaken && !waits => Some(How::Empty),
            (ended, _) => ended,
        };
        let warning = own.ended.as_ref().and_then(|end| end.warning.clone());
        let (text, source, why) = match answer {
            Ok(answer) => (Some(answer.text), Some(answer.source), answer.warning),
            Err(error) => (None, None, Some(error.message).filter(|_| !waits)),
        };
        Some(Asked {
            turn,
            status: reading.status,
            ended,
            text,
            source,
            warning: warning.or(why),
            waiting_for: reading.waiting_for,
            notices: Vec::new(),
        })
    }

    /// A wait that was too short says what becomes of the turn.
    fn goes_on(&self, error: TerminalError, turn: u64, timeout: Duration) -> TerminalError {
        if error.kind != TerminalErrorKind::Timeout {
            return error;
        }
        let message =
            format!("{} had not finished turn {turn} after {:.1} s", self.name(), timeout.as_secs_f64());
        TerminalError::new(error.kind, message).with_hint(format!(
            "It goes on: `{}` waits for it, `{}` reads its answer.",
            self.command_line("wait", &[]),
            self.command_line("read", &[])
        ))
    }
}

impl Terminals {
    /// Waits until one of several agents does something, and says which. Without any, those are meant that do not do it yet.
    pub fn wait_any(
        &self,
        among: Vec<Terminal>,
        until: Until,
        timeout: Duration,
    ) -> Result<(Terminal, Reading), TerminalError> {
        let among = if among.is_empty() { self.all_but(until)? } else { among };
        let deadline = Instant::now() + timeout;
        loop {
            let control = self.inner.control()?;
            let news = control.news();
            let mut there = 0;
            for terminal in &among {
                // Somebody may end one meanwhile.
                let Ok(reading) = terminal.status_now() else { continue };
                there += 1;
                if until.is_met(reading.status) {
                    let sure = terminal.status()?;
                    if until.is_met(sure.status) {
                        return Ok((terminal.clone(), sure));
                    }
                }
            }
            if there == 0 {
                return Err(TerminalError::new(TerminalErrorKind::NotFound, "all of them have gone")
                    .with_hint(format!(
                        "Somebody ended them; `{}` shows what is there.",
                        self.command_line(&["list"])
                    )));
            }
            if Instant::now() >= deadline {
                let names: Vec<&str> = among.iter().map(Terminal::name).collect();
                let message =
                    format!("none of {} was done after {:.1} s", names.join(", "), timeout.as_secs_f64());
                return Err(TerminalError::new(TerminalErrorKind::Timeout, message)
                    .with_hint("Give them more time with `timeout`."));
            }
            control.wait_for_news(news, deadline.min(Instant::now() + TICK));
        }
    }

    /// The agents that do not do something yet; one that waits for somebody if there are none.
    pub fn all_but(&self, until: Until) -> Result<Vec<Terminal>, TerminalError> {
        let mut waiting = Vec::new();
        let mut others = Vec::new();
        for terminal in self.list()? {
            match terminal.status_now() {
                Ok(reading) if reading.status == Status::Exited => {}
                Ok(reading) if reading.status == Status::Waiting && until.is_met(Status::Waiting) => {
                    waiting.push(terminal);
                }
                Ok(reading) if !until.is_met(reading.status) => others.push(terminal),
                _ => {}
            }
        }
        let found = if waiting.is_empty() { others } else { waiting };
        if found.is_empty() {
            return Err(TerminalError::new(TerminalErrorKind::NotReady, "there is no agent to wait for")
                .with_hint(format!(
                    "None is at work; `{}` shows what they do.",
                    self.command_line(&["list"])
                )));
        }
        Ok(found)
    }
}
