//! The conversation above the live part: turns of a query, an answer, tools, and messages of the CLI.
//!
//! An answer starts with `✦` at column 0 and goes on at column 2, but 0.61.0 leaves the `✦` out when the answer begins with a
//! block of code that arrived in pieces: text is whatever is indented and belongs to nothing else. 0.30 and 0.36 draw
//! every tool in a box (`│ ✓  ReadFile a.txt │`); since 0.45 tools for files and searches take one compact row at column 2, which
//! the model can imitate: a "tool" with unmarked text after it was text itself, because the CLI marks text after a tool.

use std::ops::Range;

use serde::Serialize;

use super::chrome;
use super::frame::{Frame, Style};
use super::prose::{self, ProseLine};
use super::rows::{Row, Rows};

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

/// All queries, the last one first, each with the row after its turn.
pub(super) fn queries<'r>(rows: &'r Rows<'_>, frame: &Frame) -> impl Iterator<Item = (Query, usize)> + 'r {
    let (style, mut end) = (frame.style, frame.body_end);
    std::iter::from_fn(move || {
        let query = last_query(rows, end, style)?;
        let after = std::mem::replace(&mut end, query.rows.start);
        Some((query, after))
    })
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
            || is_compact(row)
            || chrome::is_model_line(row)
            || (after_gap && starts_listing(row))
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
        let doubtful = row.indent < 2 || row.indent >= 10 || is_compact(row) || chrome::is_model_line(row);
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
            let (tools, next) = read_box(self.rows, index, range.end);
            self.add_tools(tools);
            return next;
        }
        if is_chrome(row) || self.is_model_line(index, range) {
            return index + 1;
        }
        if index >= self.text_until && is_compact(row) && self.starts_group(index, range) {
            match read_compact(self.rows, index, range.end) {
                Ok((tools, next)) => {
                    self.add_tools(tools);
                    return next;
                }
                Err(next) => self.text_until = next,
            }
        }
        self.answering |= starts_listing(row);
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

/// A tool call as the screen shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolBox {
    /// The name that the CLI displays, such as `Shell` or `ReadFile`.
    pub name: String,
    /// How far it is.
    pub status: ToolStatus,
    /// What stands after the name: the command, the file, the summary.
    pub description: String,
    /// What stands below: the output or the change, as far as the CLI shows it.
    pub output: String,
}

/// The sign in front of a tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// `o`: it has not begun.
    Pending,
    /// `⊷` and `⊶`: it runs.
    Running,
    /// `✓`: it has ended. A shell command that failed is shown like this too.
    Succeeded,
    /// `?`: it waits for an approval.
    Asking,
    /// `-`: it was refused or interrupted.
    Cancelled,
    /// `x`: it failed.
    Failed,
}

impl ToolStatus {
    fn from_glyph(glyph: char) -> Option<ToolStatus> {
        Some(match glyph {
            'o' => ToolStatus::Pending,
            '⊷' | '⊶' => ToolStatus::Running,
            '✓' => ToolStatus::Succeeded,
            '?' => ToolStatus::Asking,
            '-' => ToolStatus::Cancelled,
            'x' => ToolStatus::Failed,
            _ => return None,
        })
    }
}

/// The status, name and description in a header such as `✓  ReadFile a.txt`.
fn header(text: &str) -> Option<ToolBox> {
    let mut chars = text.chars();
    let status = ToolStatus::from_glyph(chars.next()?)?;
    let rest = chars.as_str().strip_prefix("  ")?;
    if !rest.starts_with(char::is_alphanumeric) {
        return None;
    }
    let (name, description) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(ToolBox {
        name: name.to_owned(),
        status,
        description: description.trim_start().to_owned(),
        output: String::new(),
    })
}

pub(super) fn is_finished_header(text: &str) -> bool {
    header(text).is_some_and(|tool| tool.status != ToolStatus::Asking)
}

/// The tools in a box whose first row is `start`, and the row after it. Boxes of other kinds hold none.
fn read_box(rows: &Rows<'_>, start: usize, end: usize) -> (Vec<ToolBox>, usize) {
    let mut tools: Vec<ToolBox> = Vec::new();
    let mut index = start;
    while index < end {
        let row = rows.row(index);
        match chrome::box_edge(row) {
            Some(chrome::Edge::Top) if index > start => break,
            Some(chrome::Edge::Bottom) => {
                index += 1;
                break;
            }
            Some(chrome::Edge::Top) => {}
            Some(chrome::Edge::Side) => {
                let text = chrome::inside(row);
                match (header(text), tools.last_mut()) {
                    (Some(tool), _) => tools.push(tool),
                    (None, Some(tool)) => {
                        tool.output.push_str(text);
                        tool.output.push('\n');
                    }
                    (None, None) => {}
                }
            }
            None => break,
        }
        index += 1;
    }
    for tool in &mut tools {
        tool.output = trimmed(&tool.output);
    }
    (tools, index.max(start + 1))
}

/// Whether a row is the first one of a listing of code, which can begin an answer without a `✦`.
fn starts_listing(row: &Row<'_>) -> bool {
    row.indent >= 3
        && row.body().strip_prefix('1').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn is_compact(row: &Row<'_>) -> bool {
    row.indent == 2 && header(row.body()).is_some()
}

fn trimmed(text: &str) -> String {
    text.trim_end().trim_start_matches('\n').to_owned()
}

/// Compact tools from the row `start` on, and the row after them. An error says up to which row it is text instead.
fn read_compact(rows: &Rows<'_>, start: usize, end: usize) -> Result<(Vec<ToolBox>, usize), usize> {
    let mut tools: Vec<ToolBox> = Vec::new();
    let mut index = start;
    let mut last = start;
    while index < end {
        let row = rows.row(index);
        let tool = (row.indent == 2).then(|| header(row.body())).flatten();
        match (tool, tools.last_mut()) {
            (Some(tool), _) => tools.push(tool),
            (None, Some(tool)) if row.is_blank() || row.indent >= 6 => {
                tool.output.push_str(row.text.get(6..).unwrap_or_default());
                tool.output.push('\n');
            }
            _ => break,
        }
        index += 1;
        if !row.is_blank() {
            last = index;
        }
    }
    let next = (last..end).map(|index| rows.row(index)).find(|row| !row.is_blank());
    let text_follows = next.is_some_and(|row| row.indent >= 2 && !starts_listing(row));
    if tools.is_empty() || text_follows {
        return Err(last.max(start + 1));
    }
    for tool in &mut tools {
        tool.output = trimmed(&tool.output);
    }
    Ok((tools, last))
}
