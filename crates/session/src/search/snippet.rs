//! What stands around a match, in one line.

use std::ops::Range;

use alhena_model::Timestamp;
use alhena_wire::display::is_unsafe;
use serde::Serialize;

use super::text;
use crate::scan::{self, Cursor};

/// About so many bytes are shown.
const WIDTH: usize = 160;

/// Where in a message a match is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchedIn {
    /// In a prompt.
    Prompt,
    /// In an answer.
    Answer,
    /// In a thought.
    Thought,
    /// In the call of a tool.
    Call,
    /// In what a tool gave back.
    Result,
}

/// A match and what stands around it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The message's id.
    pub message: String,
    /// Where in it.
    pub place: MatchedIn,
    /// When it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// One line of text.
    pub text: String,
    /// Where in the text the matches are, in bytes.
    pub marks: Vec<Range<usize>>,
}

impl Snippet {
    pub(super) fn new(
        record: &[u8],
        place: text::TextKind,
        text: &str,
        matches: &[(usize, Range<usize>)],
    ) -> Self {
        let (mut message, mut at, mut by_user) = (String::new(), None, false);
        let mut keys = Cursor::new(record);
        if keys.enter(b'{').is_some() {
            while let Some(key) = keys.key() {
                let Some(value) = keys.value() else { break };
                match key {
                    b"id" => message = scan::text(value).unwrap_or_default(),
                    b"timestamp" => at = scan::text(value).and_then(|time| Timestamp::parse(&time)),
                    b"type" => by_user = value == b"\"user\"",
                    _ => {}
                }
            }
        }
        let place = match place {
            text::TextKind::Text if by_user => MatchedIn::Prompt,
            text::TextKind::Text => MatchedIn::Answer,
            text::TextKind::Thought => MatchedIn::Thought,
            text::TextKind::Argument => MatchedIn::Call,
            text::TextKind::Result => MatchedIn::Result,
        };
        let (text, marks) = line(text, matches);
        Self { message, place, at, text, marks }
    }
}

/// The part of a text with the most different matches close together, in one line.
fn line(text: &str, matches: &[(usize, Range<usize>)]) -> (String, Vec<Range<usize>>) {
    let center = densest(matches).unwrap_or(0..0);
    let spare = WIDTH.saturating_sub(center.len());
    let start = text.floor_char_boundary(center.start.saturating_sub(spare / 2));
    let end = text.ceil_char_boundary((start + WIDTH).max(center.end).min(text.len()));
    let mut line = String::new();
    let mut marks: Vec<Range<usize>> = Vec::new();
    if start > 0 {
        line.push('…');
    }
    let mut matches =
        matches.iter().map(|(_, range)| range).filter(|range| range.start >= start && range.end <= end);
    let mut next = matches.next();
    let mut opened = None;
    for (offset, character) in text.get(start..end).unwrap_or("").char_indices() {
        let at = start + offset;
        if let (Some(range), Some(from)) = (next, opened)
            && at >= range.end
        {
            marks.push(from..line.trim_end().len().max(from));
            (opened, next) = (None, matches.find(|other| other.start >= at));
        }
        if opened.is_none() && next.is_some_and(|range| at >= range.start) {
            opened = Some(line.len());
        }
        match character {
            c if c.is_whitespace() => {
                if !line.is_empty() && !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            c if is_unsafe(c) => {}
            c => line.push(c),
        }
    }
    if let Some(from) = opened {
        marks.push(from..line.trim_end().len().max(from));
    }
    line.truncate(line.trim_end().len());
    if end < text.len() {
        line.push('…');
    }
    (line, marks)
}

/// The stretch with the most different matches that fits.
fn densest(matches: &[(usize, Range<usize>)]) -> Option<Range<usize>> {
    let mut best: Option<(u32, Range<usize>)> = None;
    for (at, (_, first)) in matches.iter().enumerate().take(200) {
        let (mut seen, mut end) = (0_u64, first.end);
        for (phrase, range) in matches.iter().skip(at).take(50) {
            if range.end > first.start + WIDTH {
                break;
            }
            seen |= 1 << (phrase % 64);
            end = end.max(range.end);
        }
        if best.as_ref().is_none_or(|(known, _)| seen.count_ones() > *known) {
            best = Some((seen.count_ones(), first.start..end));
        }
    }
    best.map(|(_, range)| range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Query;

    fn of(query: &[&str], text: &str) -> (String, Vec<String>) {
        let mut matches = Vec::new();
        Query::new(query).unwrap().matches(text, &mut matches, &mut Vec::new());
        let (line, marks) = line(text, &matches);
        let marked = marks.iter().map(|mark| line.get(mark.clone()).unwrap().to_owned()).collect();
        (line, marked)
    }

    #[test]
    fn a_short_text_is_shown_whole_and_in_one_line() {
        assert_eq!(of(&["two"], "one\n\n  two\tthree"), ("one two three".into(), vec!["two".into()]));
        assert_eq!(of(&["two three"], "one two\n three"), ("one two three".into(), vec!["two three".into()]));
    }

    #[test]
    fn of_a_long_text_the_best_part_is_shown() {
        let text = format!("alpha {} alpha beta {}", "x ".repeat(300), "y ".repeat(300));
        let (line, marks) = of(&["alpha", "beta"], &text);
        assert!(line.starts_with('…') && line.ends_with('…') && line.len() < 200, "{line}");
        assert_eq!(marks, ["alpha", "beta"]);
    }

    #[test]
    fn characters_are_never_cut() {
        let text = format!("{}日本語{}", "ü".repeat(200), "é".repeat(200));
        let (line, marks) = of(&["日本語"], &text);
        assert_eq!(marks, ["日本語"]);
        assert!(line.contains("ü日本語é"));
    }
}
