//! What a list says about a session, without reading more of it than that takes.
//!
//! Since 0.39 a session is a log in which a record is written again when it is known better, and `$set.messages` replaces
//! all records so far. So the log is folded here as the CLI folds it, but of each record only the first few keys are
//! looked at: tokens and model stand before the tool calls, which hold nearly all of the bytes.

mod fold;
mod record;

use std::fs::File;
use std::io::{self, Read};

use alhena_model::Usage;
use alhena_wire::frame::{Frame, Framer};
use serde::{Deserialize, Serialize};

use crate::file::{Format, SessionFile};
use crate::scan::Cursor;
use fold::Fold;

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
    /// Tokens by model.
    pub usage: Usage,
    /// Where the conversation stands.
    pub ending: Ending,
    /// Messages that the CLI dropped from the conversation or stripped of their details; they still stand in the file.
    pub lost: u64,
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
    let mut input = File::open(&file.path)?;
    match file.format {
        Format::Json => {
            let mut bytes = Vec::with_capacity(usize::try_from(file.stamp.size).unwrap_or(0) + 1);
            input.read_to_end(&mut bytes)?;
            Ok(of_bytes(&bytes))
        }
        Format::Jsonl => of_log(input),
    }
}

/// The same of a whole file in memory, in either format.
pub(crate) fn of_bytes(bytes: &[u8]) -> Survey {
    let first_line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut fold = Fold::default();
    if Cursor::new(first_line).value().is_none() {
        fold.whole(bytes);
    }
    if !fold.has_header() {
        fold = Fold::default();
        lines(bytes, &mut fold);
    }
    fold.end()
}

const CHUNK: usize = 256 << 10;

fn of_log(mut input: File) -> io::Result<Survey> {
    let (mut framer, mut fold) = (Framer::new(usize::MAX), Fold::default());
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match input.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            break;
        }
        framer.push(buffer.get(..count).unwrap_or_default(), |frame| {
            if let Frame::Line(line) = frame {
                fold.line(line);
            }
        });
    }
    framer.finish(|frame| {
        if let Frame::Line(line) = frame {
            fold.unfinished(line);
        }
    });
    if fold.has_header() {
        return Ok(fold.end());
    }
    // As the CLI does: perhaps it is one object under the wrong name.
    let mut bytes = Vec::new();
    io::Seek::rewind(&mut input)?;
    input.read_to_end(&mut bytes)?;
    let mut whole = Fold::default();
    whole.whole(&bytes);
    Ok(if whole.has_header() { whole.end() } else { fold.end() })
}

fn lines(bytes: &[u8], fold: &mut Fold) {
    let mut framer = Framer::new(usize::MAX);
    framer.push(bytes, |frame| {
        if let Frame::Line(line) = frame {
            fold.line(line);
        }
    });
    framer.finish(|frame| {
        if let Frame::Line(line) = frame {
            fold.unfinished(line);
        }
    });
}

#[cfg(test)]
mod tests;
