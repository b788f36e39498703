//! The conversation above the live part: turns of a query, an answer, tools, and messages of the CLI.
//!
//! An answer starts with `✦` at column 0 and goes on at column 2. Not always: 0.61.0 leaves the `✦` out when the answer
//! begins with a block of code that arrived in pieces. So text is whatever is indented and belongs to nothing else.
//! Quoted lines of an answer (`> ` at column 2) are text, because queries stand at column 0 or 1.

use std::ops::Range;

use super::chrome;
use super::frame::Style;
use super::prose::{self, ProseLine};
use super::rows::{Row, Rows};
use super::tools::{self, ToolBox};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// All its rows, borders included.
    pub rows: Range<usize>,
    pub text: Range<usize>,
}

impl Query {
    /// The text of the query: its prompt taken off, rows that were wrapped put together.
    pub fn text(&self, rows: &Rows<'_>, edge: Option<usize>) -> String {
        let Some(first) = self.text.clone().next().map(|index| rows.row(index)) else { return String::new() };
        let (base, shell) = match first.lead() {
            Some('>') => (first.indent + 2, false),
            Some('$' | '!') => (first.indent + 2, true),
            _ => (first.indent, false),
        };
        let mut lead = " ".repeat(base);
        lead.push_str(first.text.get(base..).unwrap_or_default());
        let lead_indent = lead.bytes().take_while(|byte| *byte == b' ').count();
        let mut lines = vec![ProseLine { text: &lead, indent: lead_indent }];
        lines.extend(self.text.clone().skip(1).map(|index| ProseLine::of(rows.row(index))));
        let text = prose::unwrap(&lines, base, edge);
        if shell { format!("!{text}") } else { text }
    }
}

#[derive(Debug, Default)]
pub(super) struct TurnContent {
    pub answer: String,
    pub tools: Vec<ToolBox>,
    pub error: Option<String>,
    /// Whether nothing of the model came after that error.
    pub failed: bool,
    /// Whether the CLI itself said that it left out lines.
    pub truncated: bool,
    pub anything: bool,
}

pub(super) fn last_query(rows: &Rows<'_>, end: usize, style: Style) -> Option<Query> {
    match style {
        Style::HalfBlocks => boxed_query(rows, end),
        Style::Bare | Style::Rules => open_query(rows, end, style),
        Style::Reader => super::reader::last_query(rows, end),
    }
}

/// A query between rows of half blocks. If the capture starts inside it, its upper border is missing.
fn boxed_query(rows: &Rows<'_>, end: usize) -> Option<Query> {
    let mut bottom = above_in_session(rows, end, |index| chrome::is_half_block_border(rows.row(index)))?;
    loop {
        let mut index = bottom;
        let mut text_only = true;
        let top = loop {
            let Some(above) = index.checked_sub(1) else { break None };
            index = above;
            let row = rows.row(index);
            if chrome::is_half_block_border(row) {
                break Some(index);
            }
            if chrome::is_banner(row) {
                return None;
            }
            text_only &= row.indent >= 1 || row.is_blank();
        };
        match top {
            Some(top) if text_only && bottom > top + 1 && is_query(rows.row(top + 1)) => {
                return Some(Query { rows: top..bottom + 1, text: top + 1..bottom });
            }
            Some(top) => bottom = top,
            None => {
                let cut = (0..bottom).all(|index| rows.row(index).indent >= 3 || rows.row(index).is_blank());
                let whole = text_only && is_query(rows.row(0));
                return (bottom > 0 && (whole || cut))
                    .then_some(Query { rows: 0..bottom + 1, text: 0..bottom });
            }
        }
    }
}

/// The last row before `end` for which something holds, but none from before the CLI started: a pane may have seen
/// several starts.
fn above_in_session(rows: &Rows<'_>, end: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    (0..end).rev().take_while(|index| !chrome::is_banner(rows.row(*index))).find(|index| holds(*index))
}

/// A query without a border: its first row after a blank one, the rest indented, up to what the CLI wrote next.
fn open_query(rows: &Rows<'_>, end: usize, style: Style) -> Option<Query> {
    let column = if style == Style::Bare { 1 } else { 0 };
    let start = above_in_session(rows, end, |index| {
        let row = rows.row(index);
        row.indent == column && is_query(row) && (index == 0 || rows.row(index - 1).is_blank())
    })?;
    let mut last = start;
    for index in start + 1..end {
        let row = rows.row(index);
        if row.is_blank() {
            continue;
        }
        let after_gap = index > last + 1;
        if row.indent < column + 2
            || tools::is_compact(row)
            || chrome::is_model_line(row)
            || (after_gap && tools::starts_listing(row))
        {
            break;
        }
        last = index;
    }
    Some(Query { rows: start..last + 1, text: start..last + 1 })
}

/// Whether a row is the first of a query: `> ` from the user, `$ ` for a shell command.
fn is_query(row: &Row<'_>) -> bool {
    let body = row.body();
    row.indent <= 1 && (body.starts_with("> ") || body.starts_with("$ ") || body.starts_with("! "))
}

pub(super) fn read(rows: &Rows<'_>, range: Range<usize>, edge: Option<usize>) -> TurnContent {
    let mut reader = TranscriptReader::new(rows, edge);
    let mut index = range.start;
    while index < range.end {
        index = reader.step(index, &range);
    }
    reader.finish()
}

/// Whether the last thing in a turn is plainly text of the model. Then nothing else has to be read to know that it is
/// complete; `false` only means that it takes a closer look.
pub(super) fn ends_with_text(rows: &Rows<'_>, range: Range<usize>, style: Style) -> bool {
    let mut text = false;
    for row in range.rev().map(|index| rows.row(index)) {
        if row.is_blank() {
            if text {
                return true;
            }
            continue;
        }
        if row.marked('✦') {
            return true;
        }
        let doubtful =
            row.indent < 2 || row.indent >= 10 || tools::is_compact(row) || chrome::is_model_line(row);
        if style == Style::Reader || doubtful {
            return false;
        }
        text |= row.indent < 6;
    }
    false
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Note {
    Info,
    Error,
}

struct Part {
    text: String,
    /// Whether something stood between it and the part before.
    apart: bool,
    /// Whether it is text without a mark where the CLI marks text of the model: the topic that the model set, or all there
    /// is in a capture of a layout that knows no marks.
    loose: bool,
}

struct TranscriptReader<'r, 'a> {
    rows: &'r Rows<'a>,
    edge: Option<usize>,
    content: TurnContent,
    parts: Vec<Part>,
    /// Rows of the part that is being read; the first may be the one with `✦`.
    block: Vec<usize>,
    /// Whether text without a mark goes on with an answer that has begun.
    answering: bool,
    /// Whether a blank row, a tool or a message came since the last text.
    apart: bool,
    /// Rows before this one were found to be text, whatever they look like.
    text_until: usize,
}

impl<'r, 'a> TranscriptReader<'r, 'a> {
    fn new(rows: &'r Rows<'a>, edge: Option<usize>) -> Self {
        TranscriptReader {
            rows,
            edge,
            content: TurnContent::default(),
            parts: Vec::new(),
            block: Vec::new(),
            answering: false,
            apart: true,
            text_until: 0,
        }
    }

    /// Reads what begins in a row; returns the row after it.
    fn step(&mut self, index: usize, range: &Range<usize>) -> usize {
        let row = self.rows.row(index);
        if row.is_blank() {
            if !self.block.is_empty() {
                self.block.push(index);
            }
            self.apart = true;
            return index + 1;
        }
        self.content.anything = true;
        if row.marked('✦') {
            self.end_block();
            self.answering = true;
            self.add_text(index);
            return index + 1;
        }
        if let Some(note) = note(row) {
            self.end_block();
            self.apart = true;
            return self.read_note(index, range, note);
        }
        if self.apart && chrome::is_failure(row) {
            self.end_block();
            let end = (index..range.end).find(|index| self.rows.row(*index).is_blank()).unwrap_or(range.end);
            self.content.error = chrome::failure((index..end).map(|index| self.rows.row(index)));
            self.content.failed = true;
            return end;
        }
        if row.indent == 0 && chrome::box_edge(row).is_some() {
            let (tools, next) = tools::read_box(self.rows, index, range.end);
            self.add_tools(tools);
            return next;
        }
        if is_chrome(row) || self.is_model_line(index, range) {
            return index + 1;
        }
        if index >= self.text_until && tools::is_compact(row) && self.starts_group(index, range) {
            match tools::read_compact(self.rows, index, range.end) {
                Ok((tools, next)) => {
                    self.add_tools(tools);
                    return next;
                }
                Err(next) => self.text_until = next,
            }
        }
        self.answering |= tools::starts_listing(row);
        self.add_text(index);
        index + 1
    }

    fn add_text(&mut self, index: usize) {
        if self.block.is_empty() {
            self.parts.push(Part { text: String::new(), apart: self.apart, loose: !self.answering });
        }
        self.content.failed = false;
        self.apart = false;
        self.block.push(index);
    }

    fn add_tools(&mut self, tools: Vec<ToolBox>) {
        self.end_block();
        self.content.failed &= tools.is_empty();
        self.content.tools.extend(tools);
        self.answering = false;
        self.apart = true;
    }

    /// Whether a row can be the first of a group of tools: only after a gap.
    fn starts_group(&self, index: usize, range: &Range<usize>) -> bool {
        index == range.start || self.block.is_empty() || self.rows.row(index - 1).is_blank()
    }

    /// Whether a row announces the model: only before an answer, not in the middle of it.
    fn is_model_line(&self, index: usize, range: &Range<usize>) -> bool {
        chrome::is_model_line(self.rows.row(index))
            && (self.block.is_empty() || (index + 1 < range.end && self.rows.row(index + 1).marked('✦')))
    }

    /// A message of the CLI goes on, without a gap, at column 2.
    fn read_note(&mut self, start: usize, range: &Range<usize>, note: Note) -> usize {
        let end = (start + 1..range.end)
            .find(|index| self.rows.row(*index).is_blank() || self.rows.row(*index).indent != 2)
            .unwrap_or(range.end);
        // What 0.61.0 adds below an error; in a small terminal it is all that is left of it on the screen.
        self.content.failed |= self.rows.row(start).text.starts_with("ℹ This request failed.");
        self.content.truncated |=
            self.rows.row(start).text.contains("Response truncated due to token limits");
        if note == Note::Error {
            let block: Vec<usize> = (start..end).collect();
            self.content.error = Some(self.block_text(&block).text);
            self.content.failed = true;
        }
        end
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return;
        }
        let prose = self.block_text(&block);
        self.content.truncated |= prose.truncated;
        if let Some(part) = self.parts.last_mut() {
            part.text = prose.text;
        }
    }

    /// The text of rows of which the first may carry a mark in its first column.
    fn block_text(&self, block: &[usize]) -> prose::Prose {
        let Some((first, rest)) = block.split_first() else { return prose::Prose::default() };
        let first = self.rows.row(*first);
        let rest: Vec<ProseLine<'_>> =
            rest.iter().map(|index| ProseLine::of(self.rows.row(*index))).collect();
        let others = rest.iter().filter(|line| !line.text.is_empty()).map(|line| line.indent).min();
        let base = others.unwrap_or(2).min(2);
        let marked = first.marked('✦') || note(first).is_some();
        let mut lead = " ".repeat(if marked { base } else { 0 });
        let mut chars = first.text.chars();
        lead.push_str(if marked { chars.nth(1).map_or("", |_| chars.as_str()) } else { chars.as_str() });
        let lead = lead.trim_end();
        let indent = lead.bytes().take_while(|byte| *byte == b' ').count();
        let mut lines = vec![ProseLine { text: lead, indent }];
        lines.extend(rest);
        prose::read(&lines, base, self.edge)
    }

    fn finish(mut self) -> TurnContent {
        self.end_block();
        let marked = self.parts.iter().any(|part| !part.loose && !part.text.is_empty());
        for part in self.parts.iter().filter(|part| !part.text.is_empty() && (!marked || !part.loose)) {
            if !self.content.answer.is_empty() {
                self.content.answer.push_str(if part.apart { "\n\n" } else { "\n" });
            }
            self.content.answer.push_str(&part.text);
        }
        self.content
    }
}

/// Rows of the CLI that hold no text: thoughts at column 1, spinners, status bars, borders that belong to nothing.
fn is_chrome(row: &Row<'_>) -> bool {
    row.indent == 1
        || chrome::is_spinner(row)
        || chrome::is_hint(row)
        || chrome::is_rule(row)
        || chrome::is_half_block_border(row)
        || (row.indent == 0 && chrome::is_empty_prompt(row))
}

fn note(row: &Row<'_>) -> Option<Note> {
    if row.marked('✕') {
        return Some(Note::Error);
    }
    ['ℹ', '⚠', '💡'].iter().any(|glyph| row.marked(*glyph)).then_some(Note::Info)
}
