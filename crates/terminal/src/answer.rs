//! What the agent said: from its session file, where that can be found, else from the screen.
//!
//! The session has the text as the model wrote it; the screen has it rendered (0.61.0 draws Markdown) and at some width. The
//! file is written a moment after the screen, so it is waited for until it has what the screen shows.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::Include;
use alhena_model::message::{Block, Content, Role};
use alhena_session::Transcript;
use serde::Serialize;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{ExtractError, Status, Turn};
use crate::session_turn::SessionTurn;
use crate::store::{Phase, Record};
use crate::terminal::{CapturedPane, History, Terminal};
use crate::turn::{How, TurnRecord};

/// How long the file may be behind the screen.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What an answer is that nobody has asked for in this terminal.
const BEFORE: &str = "No turn has been run since the session was resumed: this is its last answer.";

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The CLI's session file: as the model wrote it.
    Session,
    /// The screen: as the CLI rendered it.
    Screen,
}

/// The last answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Its text. All of a turn's texts, the tools in between left out.
    pub text: String,
    /// Where it comes from.
    pub source: Source,
    /// The turn that it is the answer of, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// What people should know of it: that it was cut off, or stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Exchange {
    query: String,
    texts: Vec<String>,
}

impl Exchange {
    fn answer(&self) -> String {
        self.texts.join("\n\n")
    }
}

impl Terminal {
    /// The last turn's answer, or what there is of it so far. Where it has none, why.
    pub fn last_answer(&self) -> Result<Answer, TerminalError> {
        // What has ended meanwhile is noted by looking.
        let _noted = self.status_now();
        match self.journal().last() {
            Some(turn) => self.answer_to(turn, None),
            None => {
                let answer = self.answer_without_turn();
                let record = self.record()?;
                let answer = answer.map_err(|error| match last_exchange(&record) {
                    Some(_) => error,
                    None => no_answer(&format!("{} has had no turn: there is no answer", self.name()))
                        .with_hint(format!("`{}` asks it something.", self.command_line("ask", &["TEXT"]))),
                })?;
                let is_new = |path: PathBuf| !SessionTurn::each_since(&path, record.created).is_empty();
                let resumed = answer.source == Source::Session && !sessions_of(&record).any(is_new);
                let warning = resumed.then(|| BEFORE.to_owned());
                Ok(Answer { warning, ..answer })
            }
        }
    }

    /// The answer of one turn, or what there is of it so far. Where it has none, why.
    pub fn answer_of(&self, turn: u64) -> Result<Answer, TerminalError> {
        // What has ended meanwhile is noted by looking.
        let _noted = self.status_now();
        let mut turns = self.journal().turns().into_iter().skip_while(|one| one.id != turn);
        let Some(turn) = turns.next() else {
            let message = format!("{} has no turn {turn}", self.name());
            return Err(TerminalError::usage(
                message,
                format!("`{}` lists its turns.", self.command_line("logs", &[])),
            ));
        };
        self.answer_to(turn, turns.next().as_ref())
    }

    fn answer_to(&self, turn: TurnRecord, next: Option<&TurnRecord>) -> Result<Answer, TerminalError> {
        let record = self.record()?;
        let session = session_of(&record);
        let next = next.map(|next| next.sent);
        let said = session.as_deref().map(|session| SessionTurn::between(session, turn.sent, next));
        let said = said.unwrap_or_default();
        let others = said.queries > 1;
        let (id, end) = (turn.id, turn.ended);
        let warning = end.as_ref().and_then(|end| end.warning.clone());
        if !said.texts.is_empty() {
            let warning = warning.filter(|_| !others);
            return Ok(Answer { text: said.answer(), source: Source::Session, turn: Some(id), warning });
        }
        match end {
            // What the screen has is about a later one.
            _ if next.is_some() => {
                let why = warning.unwrap_or_else(|| "its session has none".to_owned());
                Err(no_answer(&format!("turn {id} has no answer: {why}")))
            }
            None => {
                // What the screen had before it began is the turn before.
                let look = self.live().and_then(|live| live.capture_pane(History::All)).ok();
                let shown =
                    look.filter(|_| turn.begun.is_some()).and_then(|look| from_screen(Some(&look)).ok());
                shown.map(|answer| Answer { turn: Some(id), ..answer }).ok_or_else(|| {
                    no_answer(&format!("turn {id} has no answer yet"))
                        .with_hint(format!("Wait for it with `{}`.", self.command_line("wait", &[])))
                })
            }
            Some(end) if end.how == How::Answered && said.queries == 0 => {
                self.answer_without_turn().map(|answer| Answer { turn: Some(id), ..answer })
            }
            Some(_) => {
                let why = warning.unwrap_or_else(|| "the model returned no text".to_owned());
                Err(no_answer(&format!("turn {id} has no answer: {why}")))
            }
        }
    }

    fn answer_without_turn(&self) -> Result<Answer, TerminalError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let look = self.live().and_then(|live| live.capture_pane(History::All)).ok();
            // Each time: when the agent ends, its session goes to the store.
            let record = self.record()?;
            let exchange = last_exchange(&record);
            let over = Instant::now() >= deadline;
            match (&exchange, &look) {
                (Some(exchange), look)
                    if !exchange.texts.is_empty() && (look.is_none() || record.phase == Phase::Ended) =>
                {
                    return Ok(from_session(exchange));
                }
                (Some(exchange), Some(look)) if agrees(exchange, look, over) => {
                    return Ok(from_session(exchange));
                }
                _ => {}
            }
            if exchange.is_none() && record.chats.is_none() || over || look.is_none() {
                return from_screen(look.as_ref());
            }
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// The session that the CLI writes, or wrote last, by its id.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        session_id(&session_of(&self.record().ok()?)?)
    }

    /// All turns: from the session if it can be found, else those that the screen and its history show.
    pub fn turns(&self) -> Result<(Vec<Turn>, Source), TerminalError> {
        // It has what the screen has, once this has returned.
        let source = self.last_answer().map(|answer| answer.source);
        let record = self.record()?;
        let look = self.live().and_then(|live| live.capture_pane(History::All));
        let seen = look.map(|look| look.capture().turns()).unwrap_or_default();
        match session_of(&record).filter(|_| source == Ok(Source::Session)) {
            Some(path) => {
                let kept = exchanges(&path);
                let behind = kept.len().saturating_sub(seen.len());
                let seen = std::iter::repeat_n(None, behind).chain(seen.into_iter().map(Some));
                let turns = kept.into_iter().zip(seen.chain(std::iter::repeat(None)));
                Ok((turns.map(|(exchange, seen)| joined(exchange, seen)).collect(), Source::Session))
            }
            None => Ok((seen, Source::Screen)),
        }
    }
}

/// The session's words, and what only the screen shows of the same turn.
fn joined(exchange: Exchange, seen: Option<Turn>) -> Turn {
    let answer = exchange.answer();
    let (tools, error) = seen.map(|turn| (turn.tools, turn.error)).unwrap_or_default();
    Turn { query: exchange.query, answer, tools, error }
}

fn from_session(exchange: &Exchange) -> Answer {
    Answer { text: exchange.answer(), source: Source::Session, turn: None, warning: None }
}

fn from_screen(look: Option<&CapturedPane>) -> Result<Answer, TerminalError> {
    let text = look.ok_or(ExtractError::NoQuery).and_then(|look| look.capture().last_answer());
    text.map(|text| Answer { text, source: Source::Screen, turn: None, warning: None })
        .map_err(|error| no_answer(&error.to_string()))
}

fn no_answer(why: &str) -> TerminalError {
    TerminalError::new(TerminalErrorKind::NoAnswer, why)
}

/// Whether the session is about what the screen shows, and has as much of it.
fn agrees(exchange: &Exchange, look: &CapturedPane, over: bool) -> bool {
    let capture = look.capture();
    let Some(turn) = capture.turns().pop() else { return !exchange.texts.is_empty() };
    let (kept, seen) = (letters(&exchange.query), letters(&turn.query));
    let start = |text: &str| text.chars().take(40).collect::<String>();
    if !kept.starts_with(&start(&seen)) && !seen.starts_with(&start(&kept)) {
        return false;
    }
    let answer = letters(&exchange.answer());
    if capture.status() == Status::Processing {
        return !answer.is_empty() && answer.len() >= letters(&turn.answer).len();
    }
    let shown = letters(&turn.answer);
    let end: String = shown.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
    // What is rendered may be in another order (tables): in the end the session's word counts.
    !answer.is_empty() && (answer.ends_with(&end) || over)
}

pub(crate) fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The session file that the CLI writes now: the one that was written last.
pub(crate) fn session_of(record: &Record) -> Option<PathBuf> {
    let written = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    sessions_of(record).max_by_key(written)
}

/// What a session has last. A CLI that resumes one (0.61.0) begins another file first, in which nothing is said.
fn last_exchange(record: &Record) -> Option<Exchange> {
    let mut sessions: Vec<PathBuf> = sessions_of(record).collect();
    sessions.sort_by_key(|path| std::fs::metadata(path).and_then(|data| data.modified()).ok());
    sessions.iter().rev().find_map(|path| exchanges(path).pop())
}

/// All session files of a terminal: those that its CLI writes, and those that went to the store.
pub(crate) fn sessions_of(record: &Record) -> impl Iterator<Item = PathBuf> {
    let published = record.ended.as_ref().map(|ended| ended.sessions.clone()).unwrap_or_default();
    let current = record.chats.iter().flat_map(|chats| {
        let entries = std::fs::read_dir(chats).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| is_session(path))
    });
    current.chain(published)
}

/// The id of a session, by its first line, or by all of it: until 0.38 a session is one object.
pub(crate) fn session_id(path: &Path) -> Option<String> {
    let mut first = Vec::new();
    BufReader::new(std::fs::File::open(path).ok()?).read_until(b'\n', &mut first).ok()?;
    let whole = |_| alhena_wire::from_slice(&std::fs::read(path).unwrap_or_default());
    let header: serde_json::Value = alhena_wire::from_slice(&first).or_else(whole).ok()?;
    Some(header.get("sessionId")?.as_str()?.to_owned())
}

fn is_session(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with("session-") && (name.ends_with(".jsonl") || name.ends_with(".json"))
}

fn exchanges(path: &Path) -> Vec<Exchange> {
    let Ok(transcript) = Transcript::read(path) else { return Vec::new() };
    let mut exchanges: Vec<Exchange> = Vec::new();
    let session = transcript.session();
    for message in alhena_model::message::messages(&session.log, Include::Said) {
        let texts: Vec<String> = match &message.content {
            Content::Text(text) => vec![text.to_string()],
            Content::Blocks(blocks) => blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text { text } => Some(text.to_string()),
                    _ => None,
                })
                .collect(),
        };
        match message.role {
            Role::User => exchanges.push(Exchange { query: texts.join("\n"), texts: Vec::new() }),
            Role::Assistant => {
                if let Some(exchange) = exchanges.last_mut() {
                    exchange.texts.extend(texts.into_iter().filter(|text| !text.trim().is_empty()));
                }
            }
        }
    }
    exchanges
}
