//! Where in the noise the report is.
//!
//! The CLI writes it with two spaces of indentation, so it begins with a `{` at the beginning of a line, or behind
//! `[ERROR] `. So does much else: stack traces end in `{`, tools print objects of their own. The last object that looks like
//! a report is the one, because nothing of the CLI's own follows it (0.61).

use serde_json::value::RawValue;

use super::Report;
use crate::raw::without_lone_surrogates;

/// A report that was found, and how much around it was not part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundReport<'a> {
    /// The report.
    pub report: Report<'a>,
    /// How many bytes before and after it were skipped, white space not counted.
    pub skipped_bytes: u64,
}

/// Finds the report in what the CLI wrote: the last object with a `response`, `stats` or an `error` of the CLI's form.
pub fn find_report(bytes: &[u8]) -> Option<FoundReport<'_>> {
    find(bytes, |report| report.response.is_some() || report.stats.is_some() || has_error(report))
}

/// Finds the report of a fatal error, usually in stderr: the last object with an `error` of the CLI's form.
pub fn find_error_report(bytes: &[u8]) -> Option<FoundReport<'_>> {
    find(bytes, has_error)
}

/// The CLI's errors always have a type; the API's, which get printed too, never do.
fn has_error(report: &Report<'_>) -> bool {
    report.error.as_ref().is_some_and(|error| error.kind.is_some())
}

fn find<'a>(bytes: &'a [u8], is_it: impl Fn(&Report<'_>) -> bool) -> Option<FoundReport<'a>> {
    let candidates = Objects::new(bytes).filter_map(|object| Some((object, decode(object)?)));
    let (object, report) = candidates.filter(|(_, report)| is_it(report)).last()?;
    Some(FoundReport { report, skipped_bytes: written(bytes) - written(object.as_bytes()) })
}

fn written(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).count() as u64
}

fn decode(object: &str) -> Option<Report<'_>> {
    serde_json::from_str(object).ok().or_else(|| {
        let repaired = without_lone_surrogates(object)?;
        serde_json::from_str::<Report<'_>>(&repaired).ok().map(Report::into_owned)
    })
}

/// The JSON objects that begin a line.
struct Objects<'a> {
    bytes: &'a [u8],
    from: usize,
    /// How many bytes may still be read a second time. An object that turns out to be broken is searched for others inside
    /// it; a file made of nothing but beginnings would otherwise be read once for each.
    allowance: usize,
}

impl<'a> Objects<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Objects { bytes, from: 0, allowance: bytes.len().saturating_mul(4) }
    }

    /// The next `{` that begins a line, with all that follows it.
    fn candidate(&mut self) -> Option<&'a [u8]> {
        loop {
            let starts_line = self.from == 0 || self.bytes.get(self.from - 1) == Some(&b'\n');
            let rest = self.bytes.get(self.from..)?;
            let line = rest.strip_prefix(b"[ERROR] ").unwrap_or(rest);
            if starts_line && line.starts_with(b"{") {
                self.from += rest.len() - line.len();
                return Some(line);
            }
            self.from += memchr::memchr(b'\n', rest)? + 1;
        }
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let rest = self.candidate()?;
            match serde_json::Deserializer::from_slice(rest).into_iter::<&'a RawValue>().next()? {
                Ok(object) => {
                    self.from += object.get().len();
                    return Some(object.get());
                }
                Err(error) => {
                    let read = offset(rest, error.line(), error.column()).max(1);
                    let again = self.allowance.checked_sub(read);
                    self.from += if again.is_some() { 1 } else { read };
                    self.allowance = again.unwrap_or(0);
                }
            }
        }
    }
}

/// The byte offset of a line and column, as serde_json counts them.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let newlines = memchr::memchr_iter(b'\n', bytes);
    let start = line
        .checked_sub(2)
        .and_then(|before| newlines.take(before + 1).last())
        .map_or(0, |newline| newline + 1);
    start + column
}
