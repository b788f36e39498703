//! From the signs on the screen and in the title to a status, and the last turn with its end.
//!
//! Neither sign is enough: 0.61.0 has titles that lie while a dialog is open, and screens that look free while a prompt is being
//! prepared. Nothing marks the end of a turn either: what is left is an answer, tools, an error, or a note that it was
//! cancelled. The order of the rules is in the documentation of [`super`].

use std::ops::Range;

use super::frame::{Activity, Frame, Live, Style};
use super::rows::{Row, Rows};
use super::transcript::{self, Query, TurnContent};
use super::{Status, ToolStatus, Waiting, WaitingFor, chrome, dialog, reader};

pub(super) fn status(title: Option<&str>, rows: &Rows<'_>, frame: &Frame, last: &mut Last<'_, '_>) -> Status {
    let title = Title::read(title);
    match frame.live {
        Live::Gone => Status::Exited,
        Live::Dialog { end, .. } if is_restarting(rows, end) => Status::Starting,
        Live::Dialog { .. } => Status::Waiting,
        Live::Nothing => without_prompt(rows, title, last),
        Live::Prompt(activity) => match (title, activity) {
            (Title::ActionRequired, _) => Status::Waiting,
            (Title::Working, _) | (_, Activity::Busy | Activity::ShellInput(_)) => Status::Processing,
            (_, Activity::StartingUp) => Status::Starting,
            _ if has_queued(rows, frame, last) => Status::Processing,
            _ => last.outcome(),
        },
    }
}

/// Whether the last thing in the conversation is a notice that prompts are queued: while MCP servers start. A prompt was sent
/// then, and until its query is drawn below the notice, it is on its way, also after the list of queued ones has gone.
fn has_queued(rows: &Rows<'_>, frame: &Frame, last: &mut Last<'_, '_>) -> bool {
    let Some(notice) = (0..frame.body_end).rev().find(|index| rows.row(*index).marked('ℹ')) else {
        return false;
    };
    if last.query().is_some_and(|query| query.rows.start > notice) {
        return false;
    }
    let words: Vec<&str> = (notice..frame.body_end).map(|index| rows.row(index).body().trim()).collect();
    words.join(" ").contains("rompts will be queued")
}

/// Neither a prompt nor a dialog: not drawn yet, or not the CLI's screen, or a capture that ends inside a turn.
fn without_prompt(rows: &Rows<'_>, title: Title, last: &mut Last<'_, '_>) -> Status {
    match title {
        Title::ActionRequired => return Status::Waiting,
        Title::Working => return Status::Processing,
        Title::Ready | Title::Silent => {}
    }
    let answering = || (0..rows.len()).rev().any(|index| rows.row(index).marked('✦'));
    if last.query().is_some() || answering() {
        return Status::Processing;
    }
    let mut written = (0..rows.len()).map(|index| rows.row(index)).filter(|row| !row.is_blank());
    if title == Title::Ready || written.clone().next().is_none() {
        return Status::Starting;
    }
    if written.any(|row| is_restart_line(row) || (chrome::is_spinner(row) && chrome::is_start_up(row))) {
        return Status::Starting;
    }
    if failure_outside(rows).is_some() { Status::Error } else { Status::Unknown }
}

/// What the CLI, or whatever was started in its place, complained about before it drew anything.
pub(super) fn failure_outside(rows: &Rows<'_>) -> Option<String> {
    chrome::failure((0..rows.len()).map(|index| rows.row(index)).filter(|row| !row.is_blank()))
}

fn is_restarting(rows: &Rows<'_>, end: usize) -> bool {
    (end..rows.len()).any(|index| is_restart_line(rows.row(index)))
}

fn is_restart_line(row: &Row<'_>) -> bool {
    row.indent <= 1 && row.body().starts_with("Gemini CLI is restarting")
}

pub(super) fn waiting(rows: &Rows<'_>, frame: &Frame) -> Waiting {
    let other = |question: &str| Waiting {
        kind: WaitingFor::Other,
        question: question.to_owned(),
        options: Vec::new(),
        detail: None,
    };
    match frame.live {
        Live::Dialog { start, end } => dialog::read(rows, start..end),
        Live::Prompt(Activity::ShellInput(index)) => {
            let text = rows.row(index).body().trim_start_matches(['!', ' ']);
            other(text.split("  ").next().unwrap_or_default())
        }
        _ => other(""),
    }
}

/// The state in the title: the earliest sign of work.
///
/// Since 0.25 the CLI writes it as `◇  Ready (dir)`, `✦  Working… (dir)`, `✋  Action Required (dir)`, or `⏲  Working…` for a
/// silent shell, padded with blanks. 0.61.0 says `Ready` while the trust, login and loop dialogs wait, and `Working…` while the
/// quota dialog does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Title {
    Ready,
    Working,
    ActionRequired,
    /// No title, one that somebody else set, or one from which the CLI was told to leave its state out.
    Silent,
}

impl Title {
    pub fn read(title: Option<&str>) -> Title {
        match title.and_then(|title| title.trim_start().chars().next()) {
            Some('◇') => Title::Ready,
            Some('✦' | '⏲') => Title::Working,
            Some('✋') => Title::ActionRequired,
            _ => Title::Silent,
        }
    }
}

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
