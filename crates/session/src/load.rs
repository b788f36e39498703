//! Reading a session while the CLI may be writing it.
//!
//! Up to 0.38 the CLI rewrites the whole file in place, so a reader can find half of it; from 0.39 on it appends, so a reader
//! can find half a line. Both are over within milliseconds, unless the CLI died there.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use alhena_model::message::Conversion;
use alhena_model::{Include, Message};
use alhena_wire::Raw;
use alhena_wire::session::{Format, MessageRecord, Session};

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
        let mut transcript = Self { bytes: fs::read(path)? };
        for _ in 1..TRIES {
            let session = transcript.session();
            // An empty file is the first half of a rewrite, too.
            let broken = !session.complete && session.format == Format::Object || transcript.bytes.is_empty();
            if !broken || !is_being_written(path) {
                break;
            }
            thread::sleep(PAUSE);
            transcript.bytes = fs::read(path)?;
        }
        Ok(transcript)
    }

    /// From bytes that were read elsewhere.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The bytes as they are.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The session as the CLI would load it.
    pub fn session(&self) -> Session<'_> {
        Session::read(&self.bytes)
    }

    /// What was ever said, also what the CLI has dropped from the conversation (a cancelled run, a failed call, a resume in the
    /// same minute), each in the version that says most. What a person took back is not in it.
    pub fn history(&self) -> History<'_> {
        let mut conversion = Conversion::new(Include::Said);
        let mut dropped = 0;
        for old in survey::outline_of(&self.bytes).history {
            let Some(text) = self.text(old.span) else { continue };
            if let (Some(record), Some(raw)) = (MessageRecord::from_text(text), Raw::from_text(text)) {
                dropped += usize::from(old.dropped);
                conversion.push(record, raw);
            }
        }
        History { messages: conversion.finish(), dropped }
    }

    /// Every record in the version that says most, in the order in which they came; not what a person took back.
    pub(crate) fn records(&self) -> Vec<&str> {
        survey::outline_of(&self.bytes).records.into_iter().filter_map(|span| self.text(span)).collect()
    }

    fn text(&self, span: Span) -> Option<&str> {
        let start = usize::try_from(span.offset).ok()?;
        let end = start.checked_add(usize::try_from(span.length).ok()?)?;
        std::str::from_utf8(self.bytes.get(start..end)?).ok()
    }
}

/// Everything that was said.
#[derive(Debug)]
pub struct History<'a> {
    /// In the order in which it was said.
    pub messages: Vec<Message<'a>>,
    /// How many of them the CLI dropped.
    pub dropped: usize,
}

fn is_being_written(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|data| data.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age < QUIET))
}
