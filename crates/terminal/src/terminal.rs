//! One terminal: its record, its pane, and waiting for what its agent does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use alhena_agent::Approval;
use alhena_agent::env::Environment;
use alhena_model::options::BadValue;
use alhena_sys::processes;
use serde::Serialize;

use crate::control::Control;
use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Capture, Reading, Status};
use crate::store::Record;
use crate::terminals::Terminals;
use crate::turn::{Journal, TurnRecord};

/// A frame takes the CLI less than this to write.
pub(crate) const FRAME: Duration = Duration::from_millis(20);
pub(crate) const LONGEST_FRAME: Duration = Duration::from_millis(80);
/// The records of other processes are looked at this often, news or not.
pub(crate) const TICK: Duration = Duration::from_millis(500);
/// As much history as a status usually needs.
pub(crate) const SOME_HISTORY: u32 = 200;

/// One interactive agent.
#[derive(Clone, Debug)]
pub struct Terminal {
    pub(crate) terminals: Terminals,
    id: String,
    name: String,
    /// The highest approval mode in which it may be used.
    pub(crate) limit: Option<Approval>,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It takes a prompt: idle, completed or error.
    Idle,
    /// The turn is over: completed or error.
    Completed,
    /// It waits for an answer to a dialog.
    Waiting,
    /// It works.
    Processing,
    /// It has ended.
    Exited,
    /// Somebody has to do something: it takes a prompt, waits for an answer or has ended.
    Settled,
}

impl Until {
    /// Whether a status is what is waited for.
    #[must_use]
    pub fn is_met(self, status: Status) -> bool {
        let free = matches!(status, Status::Idle | Status::Completed | Status::Error);
        match self {
            Until::Idle => free,
            Until::Completed => matches!(status, Status::Completed | Status::Error),
            Until::Waiting => status == Status::Waiting,
            Until::Processing => status == Status::Processing,
            Until::Exited => status == Status::Exited,
            Until::Settled => free || matches!(status, Status::Waiting | Status::Exited),
        }
    }
}

impl std::str::FromStr for Until {
    type Err = BadValue;

    fn from_str(name: &str) -> Result<Self, BadValue> {
        Ok(match name {
            "idle" => Until::Idle,
            "completed" => Until::Completed,
            "waiting" => Until::Waiting,
            "processing" => Until::Processing,
            "exited" => Until::Exited,
            "settled" => Until::Settled,
            _ => {
                return Err(BadValue::new(format!(
                    "unknown status {name:?}; use idle, completed, waiting, processing, exited or settled"
                )));
            }
        })
    }
}

/// A look at a pane.
#[derive(Clone, Debug, Serialize)]
pub struct CapturedPane {
    /// What the screen shows, with as much history as was asked for.
    pub text: String,
    /// The pane's title.
    pub title: String,
    /// How wide it is.
    pub columns: u16,
    /// How high it is.
    pub rows: u16,
    /// Whether the CLI uses the alternate buffer.
    pub alternate: bool,
    #[serde(skip)]
    pub(crate) history: u32,
}

impl CapturedPane {
    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture::new(&self.text).title(&self.title).columns(self.columns).alternate(self.alternate)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum History {
    None,
    Some,
    All,
}

impl Terminal {
    pub(crate) fn new(terminals: Terminals, id: String, name: String) -> Self {
        Self { terminals, id, name, limit: None }
    }

    /// Eight hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is kept about it.
    pub fn record(&self) -> Result<Record, TerminalError> {
        let record = self.terminals.inner.store.get(&self.id)?;
        record.ok_or_else(|| {
            TerminalError::new(TerminalErrorKind::NotFound, format!("the terminal {} is gone", self.name))
                .with_hint(format!(
                    "Somebody ended it; `{}` shows the others.",
                    self.terminals.command_line(&["list"])
                ))
        })
    }

    /// Its pane in tmux, such as `%3`; none when that has been closed.
    pub(crate) fn pane(&self) -> Option<String> {
        let control = self.terminals.inner.control().ok()?;
        let target = format!("={}", crate::tmux::SESSION);
        let list = ["list-panes", "-s", "-t", target.as_str(), "-F", "#{@alhena-id} #{pane_id}"];
        let [panes] = control.run([&list]).ok()?;
        let pane = panes.lines().find_map(|line| line.strip_prefix(&self.id)?.strip_prefix(' '))?;
        Some(pane.to_owned())
    }

    /// Its turns so far: what was sent, and what became of it.
    #[must_use]
    pub fn turn_records(&self) -> Vec<TurnRecord> {
        self.journal().turns()
    }

    pub(crate) fn record_path(&self) -> PathBuf {
        self.terminals.inner.store.path(&self.id)
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::beside(&self.record_path())
    }

    pub(crate) fn live(&self) -> Result<Live, TerminalError> {
        let pane = self.pane().ok_or_else(|| self.exited())?;
        let control = self.terminals.inner.control()?;
        Ok(Live { control, pane, joined: self.record()?.joined })
    }

    pub(crate) fn exited(&self) -> TerminalError {
        TerminalError::new(TerminalErrorKind::Exited, format!("the agent in {} has ended", self.name))
            .with_hint(match self.session_id() {
                Some(session) => format!(
                    "`{}` goes on with it, `{}` puts it away.",
                    self.resume_line(&session.chars().take(8).collect::<String>()),
                    self.command_line("exit", &[])
                ),
                None => format!("`{}` puts it away.", self.command_line("exit", &[])),
            })
    }

    /// Waits until the agent does something.
    pub fn wait(&self, until: Until, timeout: Duration) -> Result<Reading, TerminalError> {
        let deadline = Instant::now() + timeout;
        loop {
            let control = self.terminals.inner.control()?;
            // Before the look, so that nothing is missed after it.
            let news = control.news();
            let reading = self.status_now()?;
            if until.is_met(reading.status) {
                let sure = self.status()?;
                if until.is_met(sure.status) {
                    return Ok(sure);
                }
            }
            if reading.status == Status::Exited && self.is_over()? {
                return Err(self.exited());
            }
            if Instant::now() >= deadline {
                return Err(self.too_late(&reading, timeout));
            }
            control.wait_for_news(news, deadline.min(Instant::now() + TICK));
        }
    }

    fn too_late(&self, reading: &Reading, timeout: Duration) -> TerminalError {
        let status = status_name(reading.status);
        let asks = reading.waiting_for.as_ref().map(|waiting| format!(": {}", waiting.question));
        let message = format!(
            "{} was still {status} after {:.1} s{}",
            self.name,
            timeout.as_secs_f64(),
            asks.unwrap_or_default()
        );
        let hint = match reading.status {
            Status::Waiting => format!("`{}` answers it.", self.command_line("answer", &["..."])),
            _ => "Give it more time with `timeout`.".to_owned(),
        };
        TerminalError::new(TerminalErrorKind::Timeout, message).with_hint(hint)
    }

    /// What the screen shows now.
    pub fn captured(&self) -> Result<CapturedPane, TerminalError> {
        self.live()?.capture_pane(History::None)
    }

    /// What the CLI in this terminal was given. 0.61.0 takes what looks like a secret, API keys too, out of the environment of
    /// its MCP servers; one that launches further agents needs this. None when it does not run, and where the system does not
    /// tell.
    #[must_use]
    pub fn environment(&self) -> Option<Environment> {
        let cli = self.record().ok()?.cli.filter(|cli| cli.alive())?;
        Some(processes::environment(cli.pid)?.into_iter().collect())
    }
}

/// The name of a status, as in JSON.
#[must_use]
pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Starting => "starting",
        Status::Idle => "idle",
        Status::Processing => "processing",
        Status::Completed => "completed",
        Status::Waiting => "waiting",
        Status::Error => "error",
        Status::Exited => "exited",
        Status::Unknown => "unknown",
    }
}

pub(crate) struct Live {
    pub(crate) control: std::sync::Arc<Control>,
    pub(crate) pane: String,
    pub(crate) joined: bool,
}

impl Live {
    pub(crate) fn capture_pane(&self, history: History) -> Result<CapturedPane, TerminalError> {
        let pane = &self.pane;
        let start = match history {
            History::None => "0".to_owned(),
            History::Some => format!("-{SOME_HISTORY}"),
            History::All => "-".to_owned(),
        };
        let print = if self.joined { "-pJ" } else { "-p" };
        let about = "#{alternate_on} #{pane_width} #{pane_height} #{history_size} #{pane_title}";
        let [about, text] = self.control.run([
            &["display-message", "-p", "-t", pane, about],
            &["capture-pane", print, "-t", pane, "-S", &start],
        ])?;
        let mut words = about.trim_end_matches('\n').splitn(5, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
        let (alternate, columns, rows, size) = (number(), number(), number(), number());
        let title = words.next().unwrap_or_default().to_owned();
        Ok(CapturedPane {
            text,
            title,
            columns: u16::try_from(columns).unwrap_or(u16::MAX),
            rows: u16::try_from(rows).unwrap_or(u16::MAX),
            alternate: alternate == 1,
            history: size,
        })
    }

    pub(crate) fn press(&self, key: &str) -> Result<(), TerminalError> {
        self.alone(&["send-keys", "-t", &self.pane, key])
    }

    /// Looks, and again whenever the pane has moved or a tick is over, until that gives something. `look` is told whether it is
    /// too late, and has to give something or to fail then.
    pub(crate) fn watch<T>(
        &self,
        deadline: Instant,
        tick: Duration,
        mut look: impl FnMut(bool) -> Result<Option<T>, TerminalError>,
    ) -> Result<T, TerminalError> {
        loop {
            let seen = self.control.activity(&self.pane);
            if let Some(found) = look(Instant::now() >= deadline)? {
                return Ok(found);
            }
            self.control.wait_for_output(&self.pane, &seen, deadline.min(Instant::now() + tick));
        }
    }

    /// Runs a command that types, once the pane is out of tmux's own modes: in copy mode, which a turn of the mouse wheel
    /// begins, keys would be for tmux.
    pub(crate) fn alone(&self, command: &[&str]) -> Result<(), TerminalError> {
        let [_, _] = self.control.run([&["copy-mode", "-q", "-t", &self.pane], command])?;
        Ok(())
    }
}
