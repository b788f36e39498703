//! What an agent was asked and what came of it: the journal's turns, and those that a person typed themselves.
//!
//! The journal knows when a message was sent and how its turn ended; the session file knows what was said and what it took.
//! What a person types in the pane stands in the session alone.

use std::collections::HashSet;

use alhena_model::Timestamp;
use serde::Serialize;

use crate::answer::{letters, sessions_of};
use crate::error::TerminalError;
use crate::session_turn::{Exchange, SessionTurn};
use crate::terminal::Terminal;
use crate::turn::{How, TurnRecord};
use crate::typing::is_false;

/// As much of a query as tells it from others.
const HEAD: usize = 40;

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// Its number. None for what a person typed in the pane, and for what was asked before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Whether it is from before the terminal was launched: the session was resumed.
    #[serde(skip_serializing_if = "is_false")]
    pub earlier: bool,
    /// When it was sent.
    pub at: Timestamp,
    /// How long it took. None while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How it ended. None while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<How>,
    /// What its calls of the model took, where the session says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The first line of what was asked.
    pub prompt: String,
    /// The first line of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What people should know of how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl Terminal {
    /// All turns, the first one first; those of a session that was resumed too.
    pub fn log(&self) -> Result<Vec<LogEntry>, TerminalError> {
        // What has ended meanwhile is noted by looking.
        let _noted = self.status_now();
        let record = self.record()?;
        let mut seen = HashSet::new();
        let sessions =
            sessions_of(&record).flat_map(|path| SessionTurn::each_since(&path, Timestamp::from_millis(0)));
        // One that went to the store may still be where it was.
        let exchanges = sessions.filter(|one| seen.insert((one.at, one.query.clone()))).collect();
        Ok(joined(self.turn_records(), exchanges, record.created))
    }
}

fn joined(turns: Vec<TurnRecord>, mut exchanges: Vec<Exchange>, launched: Timestamp) -> Vec<LogEntry> {
    exchanges.sort_by_key(|exchange| exchange.at);
    let mut entries: Vec<LogEntry> = Vec::new();
    for turn in turns {
        let own = exchanges.iter().position(|exchange| is_of(exchange, &turn));
        let exchange = own.map(|at| exchanges.remove(at));
        entries.push(entry(&turn, exchange.as_ref()));
    }
    entries.extend(exchanges.iter().map(|exchange| typed(exchange, exchange.at < launched)));
    entries.sort_by_key(|entry| entry.at);
    entries
}

/// Whether a session's question is what was sent. The CLI may write it a moment before the journal is written.
fn is_of(exchange: &Exchange, turn: &TurnRecord) -> bool {
    let start = |text: &str| letters(text).chars().take(HEAD).collect::<String>();
    exchange.at >= turn.sent && start(&exchange.query) == start(&turn.text)
}

fn entry(turn: &TurnRecord, exchange: Option<&Exchange>) -> LogEntry {
    let said = exchange.map(|exchange| &exchange.said);
    let end = turn.ended.as_ref();
    LogEntry {
        turn: Some(turn.id),
        earlier: false,
        at: turn.sent,
        duration_ms: end.map(|end| between(turn.sent, end.at)),
        ended: end.map(|end| end.how),
        tokens: said.and_then(|said| said.tokens),
        prompt: first_line(exchange.map_or(&turn.text, |exchange| &exchange.query)),
        answer: said.and_then(answer),
        warning: end.and_then(|end| end.warning.clone()),
    }
}

/// What a person typed, or what was asked before. The session tells how it ended, if it has.
fn typed(exchange: &Exchange, earlier: bool) -> LogEntry {
    let over = exchange.said.is_final();
    let (how, warning) = exchange.said.ending();
    LogEntry {
        turn: None,
        earlier,
        at: exchange.at,
        duration_ms: over.then(|| between(exchange.at, exchange.until)),
        ended: over.then_some(how),
        tokens: exchange.said.tokens,
        prompt: first_line(&exchange.query),
        answer: answer(&exchange.said),
        warning: warning.filter(|_| over),
    }
}

fn answer(said: &SessionTurn) -> Option<String> {
    said.texts.last().map(|text| first_line(text))
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().to_owned()
}

fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millis() - from.as_millis()).unwrap_or(0)
}
