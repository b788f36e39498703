//! Turns: what was sent to an agent, and what became of it, kept beside its record so that every process says the same.
//!
//! The screen of 0.61.0 alone cannot tell whether a message is still on its way: while it is pasted, while MCP servers start
//! and the CLI queues it, and for a moment after that, the prompt looks free. So a message that was sent is work from then
//! on, until its turn has begun and ended. A file of JSON lines, which any process appends to: who sends a message, and who
//! first sees that its turn has begun or ended.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use alhena_model::Timestamp;
use alhena_sys::{Process, files, locks};
use serde::{Deserialize, Serialize};

/// As much of a message as tells it from others.
const HEAD: usize = 200;

/// A message to an agent and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRecord {
    /// Counted from 1 in each terminal.
    pub id: u64,
    /// When the message was sent.
    pub sent: Timestamp,
    /// How it begins.
    pub text: String,
    /// When the CLI's prompt had taken it.
    pub taken: Option<Timestamp>,
    /// When the agent began to work on it.
    pub begun: Option<Timestamp>,
    /// How it ended.
    pub ended: Option<TurnEnd>,
    sender: Option<Process>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// When.
    pub at: Timestamp,
    /// How.
    pub how: How,
    /// What people should know of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// How a turn can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// With an answer.
    Answered,
    /// Without any text.
    Empty,
    /// The model's answer was held back, all of it or its end.
    Blocked,
    /// The answer reached the limit of tokens.
    CutOff,
    /// With an error.
    Error,
    /// Somebody interrupted it.
    Cancelled,
    /// The message never reached the agent.
    Lost,
    /// The agent ended before it.
    Exited,
}

impl How {
    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            How::Answered => "answered",
            How::Empty => "empty",
            How::Blocked => "blocked",
            How::CutOff => "cut_off",
            How::Error => "error",
            How::Cancelled => "cancelled",
            How::Lost => "lost",
            How::Exited => "exited",
        }
    }
}

/// What a status says of the last turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnNote {
    /// Which turn it is.
    pub id: u64,
    /// How it ended. None while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<How>,
}

impl TurnRecord {
    /// Whether it goes on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether its message is still being typed by somebody who lives.
    pub(crate) fn is_on_its_way(&self) -> bool {
        self.taken.is_none() && self.sender.is_some_and(Process::alive)
    }

    pub(crate) fn over(self, how: How, warning: Option<String>) -> Self {
        Self { ended: Some(TurnEnd { at: Timestamp::now(), how, warning }), ..self }
    }

    pub(crate) fn note(&self) -> TurnNote {
        TurnNote { id: self.id, ended: self.ended.as_ref().map(|end| end.how) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct JournalLine {
    turn: u64,
    at: Timestamp,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum What {
    Sent {
        text: String,
        sender: Option<Process>,
    },
    Taken,
    Begun,
    Ended {
        how: How,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Journal(PathBuf);

impl Journal {
    pub(crate) fn beside(record: &Path) -> Self {
        Self(record.with_extension("turns"))
    }

    /// All turns, the first one first. Lines that cannot be read are another release's, or half written.
    pub(crate) fn turns(&self) -> Vec<TurnRecord> {
        std::fs::read(&self.0).map(|bytes| folded(&bytes)).unwrap_or_default()
    }

    pub(crate) fn last(&self) -> Option<TurnRecord> {
        self.turns().pop()
    }

    /// Notes that a message is being sent. Gives its turn's number.
    pub(crate) fn send(&self, text: &str) -> io::Result<u64> {
        let text = text.chars().take(HEAD).collect();
        let sender = Process::own();
        let mut number = 0;
        self.append(|turns| {
            number = turns.last().map_or(0, |turn| turn.id) + 1;
            Some((number, What::Sent { text, sender }))
        })?;
        Ok(number)
    }

    pub(crate) fn taken(&self, id: u64) {
        self.note(id, |turn| turn.taken.is_none().then_some(What::Taken));
    }

    pub(crate) fn begun(&self, id: u64) {
        self.note(id, |turn| turn.begun.is_none().then_some(What::Begun));
    }

    /// Notes how a turn ended, unless that is known.
    pub(crate) fn ended(&self, id: u64, how: How, warning: Option<String>) {
        self.note(id, |turn| turn.is_open().then_some(What::Ended { how, warning }));
    }

    /// What cannot be written is seen again by the next who looks.
    fn note(&self, id: u64, what: impl FnOnce(&TurnRecord) -> Option<What>) {
        let _unwritten = self.append(|turns| {
            let turn = turns.iter().find(|turn| turn.id == id)?;
            what(turn).map(|what| (id, what))
        });
    }

    fn append(&self, what: impl FnOnce(&[TurnRecord]) -> Option<(u64, What)>) -> io::Result<()> {
        let mut file =
            files::private(OpenOptions::new().create(true).read(true).append(true)).open(&self.0)?;
        locks::lock(&file)?;
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        let Some((turn, what)) = what(&folded(&bytes)) else { return Ok(()) };
        let mut line = serde_json::to_vec(&JournalLine { turn, at: Timestamp::now(), what })?;
        line.push(b'\n');
        if bytes.last().is_some_and(|last| *last != b'\n') {
            // Whoever wrote the line before was killed in the middle of it.
            line.insert(0, b'\n');
        }
        file.write_all(&line)
    }
}

fn folded(bytes: &[u8]) -> Vec<TurnRecord> {
    let mut turns: Vec<TurnRecord> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(JournalLine { turn: id, at, what }) = serde_json::from_slice(line) else { continue };
        if let What::Sent { text, sender } = what {
            turns.push(TurnRecord { id, sent: at, text, taken: None, begun: None, ended: None, sender });
            continue;
        }
        let Some(turn) = turns.iter_mut().find(|turn| turn.id == id) else { continue };
        match what {
            What::Sent { .. } => {}
            What::Taken => turn.taken = Some(at),
            What::Begun => turn.begun = Some(at),
            What::Ended { how, warning } => turn.ended = Some(TurnEnd { at, how, warning }),
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_numbered_across_writers_and_end_once() {
        let root = tempfile::tempdir().unwrap();
        let record = root.path().join("t.json");
        let journal = Journal::beside(&record);
        assert_eq!(journal.last(), None);
        let numbers: std::collections::BTreeSet<u64> = std::thread::scope(|scope| {
            let send = || Journal::beside(&record).send("hello").unwrap();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(numbers, (1..=8).collect());
        assert!(journal.last().unwrap().is_on_its_way());
        journal.taken(8);
        journal.begun(8);
        journal.ended(8, How::Empty, Some("nothing".to_owned()));
        journal.ended(8, How::Answered, None);
        let last = journal.last().unwrap();
        assert!(!last.is_on_its_way() && last.begun.is_some());
        assert_eq!(last.note(), TurnNote { id: 8, ended: Some(How::Empty) });
        assert_eq!(last.ended.unwrap().warning.as_deref(), Some("nothing"));
    }

    #[test]
    fn half_a_line_costs_only_itself() {
        let root = tempfile::tempdir().unwrap();
        let record = root.path().join("t.json");
        let journal = Journal::beside(&record);
        journal.send("one").unwrap();
        let mut file = OpenOptions::new().append(true).open(record.with_extension("turns")).unwrap();
        file.write_all(b"{\"turn\":1,\"at\":\"20").unwrap();
        assert_eq!(journal.send("two").unwrap(), 2);
        assert_eq!(journal.turns().len(), 2);
    }
}
