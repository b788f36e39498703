//! What all agents do, gathered beside the screen so that keys never wait for it.
//!
//! The watcher answers from what it has seen, so a round over twenty agents takes a few milliseconds. Session files are read
//! only when a turn has begun or ended, and now and then while one goes on.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use alhena_model::Timestamp;
use alhena_terminal::screen::{Reading, Status};
use alhena_terminal::{LogEntry, Record, Terminal, TerminalError, Terminals, TurnNote, TurnRecord};

use crate::commands::terminal::{farewell, question};

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(400);
/// Between two looks at what a turn that goes on has taken so far.
const SPENDING: Duration = Duration::from_secs(5);

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub id: String,
    pub name: String,
    pub status: Status,
    /// Since when it has been so, where that is known.
    pub since: Option<Timestamp>,
    pub turn: Option<u64>,
    pub tokens: Option<u64>,
    /// What it does, said or waits for: a line, not cleaned.
    pub doing: String,
    /// What somebody has to know: a question with its options, an error. Not cleaned.
    pub detail: Option<String>,
}

pub type Round = Result<Vec<Agent>, TerminalError>;

/// Starts gathering. Ends when nobody listens.
pub fn gather(terminals: Terminals) -> Receiver<Round> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || rounds(&terminals, &sender));
    receiver
}

fn rounds(terminals: &Terminals, sender: &Sender<Round>) {
    let mut spent = HashMap::new();
    loop {
        let round = terminals.list().map(|all| {
            spent.retain(|id, _| all.iter().any(|terminal| terminal.id() == id));
            // Somebody may end one meanwhile.
            all.iter().filter_map(|terminal| agent(terminal, &mut spent)).collect()
        });
        if sender.send(round).is_err() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// What was spent, by terminal: when that was looked at, at which point of which turn.
type Spent = HashMap<String, (Instant, Option<TurnNote>, Option<u64>)>;

fn agent(terminal: &Terminal, spent: &mut Spent) -> Option<Agent> {
    let (reading, record) = (terminal.status_now().ok()?, terminal.record().ok()?);
    let last = terminal.turn_records().pop();
    let fresh = spent.get(terminal.id()).filter(|(at, note, _)| {
        *note == reading.turn && (reading.status != Status::Processing || at.elapsed() < SPENDING)
    });
    let tokens = match fresh {
        Some((_, _, tokens)) => *tokens,
        None => {
            let tokens = sum(&terminal.log().unwrap_or_default());
            spent.insert(terminal.id().to_owned(), (Instant::now(), reading.turn.clone(), tokens));
            tokens
        }
    };
    Some(Agent {
        id: terminal.id().to_owned(),
        name: terminal.name().to_owned(),
        status: reading.status,
        since: since(&record, last.as_ref(), reading.status),
        turn: last.as_ref().map(|turn| turn.id),
        tokens,
        doing: doing(&reading, &record, last.as_ref()),
        detail: detail(terminal, &reading, &record),
    })
}

fn sum(log: &[LogEntry]) -> Option<u64> {
    log.iter()
        .filter(|entry| !entry.earlier)
        .filter_map(|entry| entry.tokens)
        .reduce(|one, other| one + other)
}

fn since(record: &Record, last: Option<&TurnRecord>, status: Status) -> Option<Timestamp> {
    if status == Status::Exited {
        return None;
    }
    match last {
        Some(turn) => Some(turn.ended.as_ref().map_or(turn.sent, |end| end.at)),
        None => Some(record.started.unwrap_or(record.created)),
    }
}

fn doing(reading: &Reading, record: &Record, last: Option<&TurnRecord>) -> String {
    if let Some(waiting) = &reading.waiting_for {
        return waiting.question.clone();
    }
    if let Some(ended) = record.ended.as_ref().filter(|_| reading.status == Status::Exited) {
        return ended.why();
    }
    if let Some(why) = reading.error.as_ref().or(reading.warning.as_ref()) {
        return why.clone();
    }
    let said = reading.message.as_deref().unwrap_or_default().trim();
    match (reading.status, said) {
        (Status::Processing, "") => last.map(|turn| format!("> {}", turn.text)).unwrap_or_default(),
        (Status::Processing, said) => said.lines().last().unwrap_or_default().to_owned(),
        (_, said) => said.lines().next().unwrap_or_default().to_owned(),
    }
}

fn detail(terminal: &Terminal, reading: &Reading, record: &Record) -> Option<String> {
    let waits = reading.waiting_for.as_ref().map(|waiting| match &waiting.detail {
        Some(detail) => format!("{}\n{detail}", question(waiting)),
        None => question(waiting),
    });
    let gone = (reading.status == Status::Exited)
        .then(|| farewell(terminal, &record.why_gone(), terminal.session_id().as_deref()));
    waits.or(gone).or_else(|| reading.error.clone())
}
