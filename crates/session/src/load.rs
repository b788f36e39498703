//! Reading a session while the CLI may be writing it.
//!
//! Up to 0.38 the CLI rewrites the whole file in place, so a reader can find half of it; from 0.39 on it appends, so a reader
//! can find half a line. Both are over within milliseconds, unless the CLI died there.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use alhena_model::{Conversation, Include, Message};
use alhena_wire::Raw;
use alhena_wire::session::{MessageRecord, Session};

use crate::plain_file;
use crate::survey::{self, Span};

/// How often half a file is read again, and what is waited in between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);
/// A file that was not written for so long is not being written.
const QUIET: Duration = Duration::from_secs(5);

/// The bytes of a session file.
#[derive(Debug)]
pub struct Transcript {
    bytes: Vec<u8>,
}

impl Transcript {
    /// Reads a session file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::read_into(path, Vec::new())
    }

    /// The same, into the memory of another one that is not needed any more.
    pub fn read_into(path: &Path, memory: Vec<u8>) -> io::Result<Self> {
        let mut transcript = Self::read_once(path, memory)?;
        for _ in 1..TRIES {
            if !transcript.is_half() || !is_being_written(path) {
                break;
            }
            thread::sleep(PAUSE);
            transcript = Self::read_once(path, transcript.bytes)?;
        }
        Ok(transcript)
    }

    fn read_once(path: &Path, mut bytes: Vec<u8>) -> io::Result<Self> {
        bytes.clear();
        File::open(path)?.read_to_end(&mut bytes)?;
        Ok(Self { bytes })
    }

    /// Whether this is what a reader finds while one object is written again: nothing, or its first half.
    fn is_half(&self) -> bool {
        let first = self.bytes().split(|byte| *byte == b'\n').next().unwrap_or_default();
        let ends = self.bytes().trim_ascii_end().ends_with(b"}");
        self.bytes().is_empty() || (first.trim_ascii() == b"{" && !ends)
    }

    /// From bytes that were read elsewhere.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Gives the memory back, for [`read_into`](Self::read_into).
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes as they are.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The session as the CLI would load it.
    pub fn session(&self) -> Session<'_> {
        Session::read(self.bytes())
    }

    /// The conversation; it borrows from this.
    ///
    /// Only the last version of each message is decoded, and of that only what an entry is made of. A file that is not written
    /// in the plain way is read the thorough way.
    pub fn conversation(&self, include: Include) -> Conversation<'_> {
        plain_file::conversation(self.bytes(), include).unwrap_or_else(|| self.thorough(include))
    }

    /// The conversation as messages.
    pub fn messages(&self, include: Include) -> Vec<Message<'_>> {
        self.conversation(include).into_messages()
    }

    pub(crate) fn thorough(&self, include: Include) -> Conversation<'_> {
        let session = self.session();
        let mut conversation = Conversation::new(include);
        for stored in session.log.messages() {
            conversation.push(stored.decode().into_owned(), stored.raw().clone().into_owned());
        }
        conversation
    }

    /// What was ever said, also what the CLI has dropped from the conversation (a cancelled run, a failed call, a resume in the
    /// same minute), each in the version that says most. What a person took back is not in it.
    pub fn history(&self) -> History<'_> {
        let mut conversation = Conversation::new(Include::Said);
        let mut dropped = 0;
        for old in survey::outline_of(self.bytes()).history {
            let Some(text) = self.text(old.span) else { continue };
            if let (Some(record), Some(raw)) = (MessageRecord::from_text(text), Raw::from_text(text)) {
                dropped += usize::from(old.dropped);
                conversation.push(record, raw);
            }
        }
        History { conversation, dropped }
    }

    /// Every record in the version that says most, in the order in which they came; not what a person took back.
    pub(crate) fn records(&self) -> Vec<&str> {
        survey::outline_of(self.bytes()).records.into_iter().filter_map(|span| self.text(span)).collect()
    }

    /// The conversation as it stood at this place of a log, each record in the version that says most.
    pub(crate) fn records_before(&self, offset: u64) -> Vec<&str> {
        let end = usize::try_from(offset).unwrap_or(usize::MAX);
        let before = self.bytes().get(..end).unwrap_or_default();
        survey::fold_lines(before).standing().filter_map(|span| self.text(span)).collect()
    }

    fn text(&self, span: Span) -> Option<&str> {
        let start = usize::try_from(span.offset).ok()?;
        let end = start.checked_add(usize::try_from(span.length).ok()?)?;
        std::str::from_utf8(self.bytes().get(start..end)?).ok()
    }
}

/// Everything that was said.
#[derive(Debug)]
pub struct History<'a> {
    /// In the order in which it was said.
    pub conversation: Conversation<'a>,
    /// How many of them the CLI dropped.
    pub dropped: usize,
}

fn is_being_written(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|data| data.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age < QUIET))
}
