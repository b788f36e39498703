//! A whole session file, in either format.
//!
//! Up to 0.38 the CLI rewrites the file in place, so a reader may find half an object; from 0.39 on it appends, so a reader
//! may find half a line. Both give what is there.

use super::log::Log;
use super::record::{Object, Update, parse_record};

/// How a session is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object, up to 0.38.
    Object,
    /// One record per line, from 0.39 on.
    Lines,
}

/// A session file, read as far as it can be.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// What the file adds up to.
    pub log: Log<'a>,
    /// How it is written.
    pub format: Format,
    /// `false` when the end is missing: a last line that is not JSON and has no newline, or an object that does not end. The
    /// CLI may be writing just now, or it died while it was.
    pub complete: bool,
}

impl<'a> Session<'a> {
    /// Reads a session file. Never fails: what is not there or not readable is missing in the log.
    pub fn read(bytes: &'a [u8]) -> Self {
        let mut session = Session::read_trusting(bytes);
        session.log.check_all();
        session
    }

    /// Reads a file; its messages are unchecked.
    fn read_trusting(bytes: &'a [u8]) -> Self {
        // The object is printed over many lines in every release, so its first line is a brace; no record looks like that.
        let first = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        if first == Some(b"{")
            && let Some(session) = Session::read_object(bytes)
        {
            return session;
        }
        let lines = Session::read_lines(bytes);
        if lines.log.has_header() {
            return lines;
        }
        Session::read_object(bytes).filter(|object| object.complete).unwrap_or(lines)
    }

    fn read_lines(bytes: &'a [u8]) -> Self {
        let mut log = Log::new();
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            log.push_trusting(line);
            rest = after.strip_prefix(b"\n").unwrap_or(after);
        }
        let complete = rest.trim_ascii().is_empty() || parse_record(rest).is_ok();
        if complete {
            log.push_line(rest);
        }
        Session { log, format: Format::Lines, complete }
    }

    /// Reads one object, or as much of it as there is; `None` when it is no session.
    fn read_object(bytes: &'a [u8]) -> Option<Self> {
        let mut log = Log::new();
        let complete = match std::str::from_utf8(bytes) {
            Ok(text) => {
                let (update, complete) = read_legacy(text)?;
                log.adopt(update);
                complete
            }
            Err(_) => {
                let text = String::from_utf8_lossy(bytes);
                let (update, complete) = read_legacy(&text)?;
                log.adopt(update.into_owned());
                complete
            }
        };
        Some(Session { log, format: Format::Object, complete })
    }
}

/// A legacy session, and whether it is whole; `None` when it does not say which session it is.
fn read_legacy(text: &str) -> Option<(Update<'_>, bool)> {
    let mut object = Object::default();
    let complete = object.read(text).is_ok();
    object.is_session().then_some((object.update, complete))
}
