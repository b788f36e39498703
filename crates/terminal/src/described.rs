//! Terminals as programs are told of them.

use serde::Serialize;

use crate::error::TerminalError;
use crate::screen::{Reading, Status};
use crate::store::{Record, TerminalEnd};
use crate::terminal::Terminal;
use crate::terminals::Terminals;

/// A terminal's record and what its agent does.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// What is kept about it.
    #[serde(flatten)]
    pub record: Record,
    /// What its agent does.
    #[serde(flatten)]
    pub reading: Reading,
}

/// The same for one that may have gone.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// The terminal.
    #[serde(flatten)]
    pub described: Described,
    /// Why it has gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The session to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl Terminals {
    /// All terminals, with what is told of them.
    pub fn listed(&self) -> Result<Vec<(Terminal, Listed)>, TerminalError> {
        let mut rows = Vec::new();
        for terminal in self.list()? {
            // Somebody may end one meanwhile.
            if let (Ok(reading), Ok(record)) = (terminal.status_now(), terminal.record()) {
                let gone = reading.status == Status::Exited;
                let why = gone.then(|| record.why_gone());
                let session_id = if gone { terminal.session_id() } else { None };
                rows.push((terminal, Listed { described: Described { record, reading }, why, session_id }));
            }
        }
        Ok(rows)
    }
}

impl Record {
    /// Why its agent has gone.
    #[must_use]
    pub fn why_gone(&self) -> String {
        let nobody = || "its terminal has gone, and nobody was left to say why".to_owned();
        self.ended.as_ref().map_or_else(nobody, TerminalEnd::why)
    }
}
