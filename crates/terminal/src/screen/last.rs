//! The last turn, and how it ended.
//!
//! In 0.61.0 nothing marks the end of a turn: what is left is an answer, or tools, or an error, or a note that it was
//! cancelled. Until one of them appears, a query alone is a turn that has just begun.

use std::ops::Range;

use super::frame::{Frame, Style};
use super::rows::Rows;
use super::transcript::{self, Query, TurnContent};
use super::{Status, ToolStatus, chrome, reader};

pub(super) struct Layout<'r, 'a> {
    rows: &'r Rows<'a>,
    style: Style,
    columns: Option<usize>,
    /// The column after the last one that text of the model is written to.
    edge: Option<usize>,
}

impl<'r, 'a> Layout<'r, 'a> {
    /// `columns` is the width of the terminal if it is known, `alternate` whether the CLI uses the alternate buffer.
    pub fn new(rows: &'r Rows<'a>, frame: &Frame, columns: Option<usize>, alternate: bool) -> Self {
        let mut columns = columns.or(frame.columns);
        if frame.style == Style::Reader {
            // A row that is wider than the terminal was put together already (`capture-pane -J`), and then all were.
            columns =
                columns.filter(|columns| (0..rows.len()).all(|index| rows.row(index).end() <= *columns));
        }
        let edge = match rows.scroll_bar() {
            Some(bar) => Some(bar.saturating_sub(1)),
            None => columns.map(|columns| columns.saturating_sub(usize::from(alternate))),
        };
        Layout { rows, style: frame.style, columns, edge }
    }

    pub fn content(&self, range: Range<usize>) -> TurnContent {
        match self.style {
            Style::Reader => reader::read(self.rows, range, self.columns),
            _ => transcript::read(self.rows, range, self.edge),
        }
    }

    pub fn query_text(&self, query: &Query) -> String {
        match self.style {
            Style::Reader => reader::query_text(self.rows, query, self.columns),
            // Queries have a margin on the right as well, where they have a background.
            Style::Rules => query.text(self.rows, self.edge),
            Style::HalfBlocks | Style::Bare => {
                query.text(self.rows, self.edge.map(|edge| edge.saturating_sub(1)))
            }
        }
    }
}

/// The last turn, read when it is first needed.
pub(super) struct Last<'r, 'a> {
    layout: Layout<'r, 'a>,
    end: usize,
    query: Option<Option<Query>>,
    content: Option<TurnContent>,
}

impl<'r, 'a> Last<'r, 'a> {
    pub fn new(layout: Layout<'r, 'a>, end: usize) -> Self {
        Last { layout, end, query: None, content: None }
    }

    pub fn query(&mut self) -> Option<&Query> {
        let layout = &self.layout;
        self.query.get_or_insert_with(|| transcript::last_query(layout.rows, self.end, layout.style)).as_ref()
    }

    pub fn content(&mut self) -> &TurnContent {
        let start = match self.query() {
            Some(query) => query.rows.end,
            None => self.turn_start(),
        };
        let (layout, end) = (&self.layout, self.end);
        self.content.get_or_insert_with(|| layout.content(start..end))
    }

    /// Where the turn begins when its query is not on the screen: at the first sign of one, or at the top if all that is
    /// visible is text.
    fn turn_start(&self) -> usize {
        let rows = self.layout.rows;
        let start = (0..self.end).rev().find(|index| chrome::is_banner(rows.row(*index))).unwrap_or(0);
        let written =
            || (start..self.end).map(|index| (index, rows.row(index))).filter(|(_, row)| !row.is_blank());
        let sign = written().find(|(_, row)| ['✦', '✕', 'ℹ'].iter().any(|glyph| row.marked(*glyph)));
        match sign {
            Some((index, _)) => index,
            None if written().all(|(_, row)| row.indent >= 2) => start,
            None => self.end,
        }
    }

    /// How the last turn ended, now that the prompt is free.
    pub fn outcome(&mut self) -> Status {
        let Some(query) = self.query().cloned() else { return self.outcome_of(Asked::Nothing) };
        if self.content.is_none()
            && transcript::ends_with_text(self.layout.rows, query.rows.end..self.end, self.layout.style)
        {
            return Status::Completed;
        }
        let command = query.text.clone().next().map(|index| self.layout.rows.row(index)).is_some_and(|row| {
            row.body().trim_start_matches(['>', ' ']).starts_with('/') || row.body().starts_with(['$', '!'])
        });
        self.outcome_of(if command { Asked::Command } else { Asked::Model })
    }

    fn outcome_of(&mut self, asked: Asked) -> Status {
        let content = self.content();
        let worked = content
            .tools
            .iter()
            .any(|tool| matches!(tool.status, ToolStatus::Succeeded | ToolStatus::Failed));
        if content.failed {
            Status::Error
        } else if !content.answer.is_empty() || (worked && asked == Asked::Model) {
            Status::Completed
        } else if asked == Asked::Model && !content.anything {
            Status::Processing
        } else {
            Status::Idle
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// A slash command, or one for the shell: nothing that the model answers.
    Command,
    Model,
}
