//! What a list says about a session, without reading more of it than that takes.
//!
//! Since 0.39 a session is a log in which a record is written again when it is known better, and `$set.messages` replaces
//! all records so far. So the log is folded here as the CLI folds it, but of each record only the first few keys are
//! looked at: tokens and model stand before the tool calls, which hold nearly all of the bytes.

mod fold;
mod record;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use alhena_model::{Tokens, Usage};
use alhena_sys::files;
use serde::{Deserialize, Serialize};

use crate::file::{Format, SessionFile};
use crate::lines::{Line, Lines};
use crate::scan::Cursor;
pub(crate) use fold::Fold;

/// The facts of one session file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The session's id, where the file says it.
    pub id: Option<String>,
    /// Whether the file has what the CLI needs to load it: an id and a project. Without, it is lost to the CLI.
    pub header: bool,
    /// Whether the file says that it belongs to a sub-agent.
    pub subagent: bool,
    /// The CLI's own summary, or the first prompt; at most a few hundred characters.
    pub title: Option<String>,
    /// When it began, in ms since 1970.
    pub started: Option<i64>,
    /// When it last changed, by its own account.
    pub updated: Option<i64>,
    /// How many messages it has: prompts and answers.
    pub messages: u64,
    /// Those of them that a person wrote.
    pub prompts: u64,
    /// What its answers took, by day, model and size, whatever became of them since.
    pub spent: Vec<Spent>,
    /// Where the conversation stands.
    pub ending: Ending,
    /// Messages that the CLI dropped from the conversation or stripped of their details; they still stand in the file.
    pub lost: u64,
}

/// What some answers took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The day (UTC), such as `2026-11-15`; empty when the records do not say it.
    pub day: String,
    /// The model.
    pub model: String,
    /// Whether these are answers to prompts of more than [`LARGE`] tokens, which cost more with some models.
    pub large: bool,
    /// How many answers.
    pub answers: u64,
    /// Their tokens.
    pub tokens: Tokens,
}

/// Prompts of more tokens than this are counted apart.
pub const LARGE: u64 = 200_000;

impl Survey {
    /// Whether the file has neither messages nor anything else that a session has.
    pub fn is_blank(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is a message of a person or of the model. Gemini CLI 0.61.0 leaves files without: a stub beside every
    /// resumed session, and what a failed first call rolls back to. Its own clean-up deletes such a file, with every other
    /// file of the same short id.
    #[must_use]
    pub fn has_conversation(&self) -> bool {
        self.ending != Ending::Empty
    }

    /// Tokens by model.
    pub fn usage(&self) -> Usage {
        Usage::of_models(self.spent.iter().map(|spent| (spent.model.as_str(), spent.tokens)))
    }
}

/// Where a conversation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Nothing was said: a stub, or a session that was rolled back.
    #[default]
    Empty,
    /// The model answered last.
    Answered,
    /// A prompt or a tool's result has no answer yet.
    Open,
}

/// Reads what a list needs. Files that are written meanwhile give what is there.
pub fn survey(file: &SessionFile) -> io::Result<Survey> {
    fold_file(File::open(&file.path)?, file.format, &mut Vec::new()).map(Fold::end)
}

/// The same of the file at a path, which may be anywhere; what is no file is an error.
pub fn survey_at(path: &Path) -> io::Result<Survey> {
    fold_file(files::open(path)?, Format::of(path), &mut Vec::new()).map(Fold::end)
}

/// What the first line of a file says: cheap, and enough to find a session among many. None when that does not tell.
pub fn survey_header(path: &Path) -> io::Result<Option<Survey>> {
    const LONGEST_HEADER: u64 = 64 * 1024;
    let mut line = Vec::new();
    BufReader::new(files::open(path)?.take(LONGEST_HEADER)).read_until(b'\n', &mut line)?;
    Ok(Some(fold_lines(&line).end()).filter(|survey| survey.id.is_some()))
}

/// Where the messages of a session stand in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The conversation: what people and the model said, each in its last version.
    pub(crate) said: Vec<Span>,
    /// What was said and what the CLI dropped, in the order in which it was said, each in the version that says most.
    pub(crate) history: Vec<Remembered>,
    /// The same with what nobody said: context, tool responses, notices.
    pub(crate) records: Vec<Span>,
}

/// A message of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) span: Span,
    /// Whether the CLI dropped it from the conversation.
    pub(crate) dropped: bool,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The survey and the outline at once.
pub(crate) fn outline(file: &SessionFile, buffer: &mut Vec<u8>) -> io::Result<(Survey, Outline)> {
    let fold = fold_file(File::open(&file.path)?, file.format, buffer)?;
    let outline = fold.outline();
    Ok((fold.end(), outline))
}

fn fold_file(mut input: File, format: Format, buffer: &mut Vec<u8>) -> io::Result<Fold> {
    if format == Format::Json {
        buffer.clear();
        input.read_to_end(buffer)?;
        return Ok(fold_bytes(buffer));
    }
    let mut fold = Fold::default();
    let mut lines = Lines::new(&input, std::mem::take(buffer));
    while let Some(line) = lines.next()? {
        fold.line(line);
    }
    *buffer = lines.into_buffer();
    if fold.has_header() {
        return Ok(fold);
    }
    // As the CLI does: perhaps it is one object under the wrong name.
    io::Seek::rewind(&mut input)?;
    buffer.clear();
    input.read_to_end(buffer)?;
    let mut whole = Fold::default();
    whole.whole(buffer);
    Ok(if whole.has_header() { whole } else { fold })
}

/// The survey of a whole file in memory.
pub(crate) fn of_bytes(bytes: &[u8]) -> Survey {
    fold_bytes(bytes).end()
}

/// The outline of a whole file in memory.
pub(crate) fn outline_of(bytes: &[u8]) -> Outline {
    fold_bytes(bytes).outline()
}

/// The same of a whole file in memory, in either format.
fn fold_bytes(bytes: &[u8]) -> Fold {
    let first_line = bytes.splitn(2, |byte| *byte == b'\n').next().unwrap_or_default();
    let mut fold = Fold::default();
    if Cursor::new(first_line).value().is_none() {
        fold.whole(bytes);
    }
    if fold.has_header() { fold } else { fold_lines(bytes) }
}

/// The same of a log in memory.
pub(crate) fn fold_lines(bytes: &[u8]) -> Fold {
    let mut fold = Fold::default();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]) {
        let line = bytes.get(start..end).unwrap_or_default();
        if !line.is_empty() {
            fold.line(Line { offset: start as u64, bytes: line, ended: end < bytes.len() });
        }
        start = end + 1;
    }
    fold
}

#[cfg(test)]
mod tests;
