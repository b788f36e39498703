//! Reads the screen of the interactive CLI: text and title in, status and answer out. No I/O, no state.
//!
//! Gemini CLI 0.61.0 keeps an empty prompt on the screen while it works, so what the prompt says is not what the agent
//! does. The signs, in the order in which they count:
//!
//! 1. A row of somebody else below what the CLI drew, or its farewell: it has **exited**.
//! 2. A dialog: it is **waiting**, whatever the title says. The title says `Ready` during the trust, login and loop dialogs
//!    and `Working…` during the one about quotas.
//! 3. The title: `✦ Working…` is **processing**, `✋ Action Required` is **waiting**.
//! 4. A spinner, queued messages, or a query without anything after it: **processing**. The last one matters: for up to
//!    seconds after a prompt was sent the title still says `Ready` and no spinner turns.
//! 5. Otherwise the prompt is free: **error** if the last turn ended with one, **completed** if it has an answer or a tool
//!    that ran, else **idle**.
//!
//! Words are never enough: chrome is recognised by where it stands (see [`rows`](self)), because an answer can contain
//! any of it. A capture may be plain or coloured, of the screen alone or with its scrollback; more scrollback only makes
//! more of the last answer visible.
//!
//! ```
//! use alhena_terminal::screen::{Capture, Status};
//!
//! let screen = "\
//! ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
//!  > say hello
//! ▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
//! ✦ Hello!
//!
//! ──────────────────────────────
//!  Shift+Tab to accept edits
//! ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
//!  >   Type your message or @path/to/file
//! ▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
//!  ~/project   no sandbox   /model
//! ";
//! let reading = Capture::new(screen).title("◇  Ready (project)").read();
//! assert_eq!(reading.status, Status::Completed);
//! assert_eq!(reading.message.as_deref(), Some("Hello!"));
//!
//! let working = Capture::new(screen).title("✦  Working… (project)").status();
//! assert_eq!(working, Status::Processing);
//! ```

mod chrome;
mod dialog;
mod frame;
mod prose;
mod reader;
mod rows;
mod table;
mod title;
mod tools;
mod transcript;

use serde::Serialize;

use frame::{Activity, Frame, Live, Style};
use rows::Rows;
use title::Title;
pub use tools::{ToolBox, ToolStatus};
use transcript::{Content, Query};

/// What the agent in a terminal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The CLI has not drawn its prompt yet.
    Starting,
    /// It takes a prompt; the last turn, if there was one, left nothing.
    Idle,
    /// It works.
    Processing,
    /// It takes a prompt; the last turn has an answer.
    Completed,
    /// It waits for somebody to answer a dialog.
    Waiting,
    /// It takes a prompt; the last turn ended with an error.
    Error,
    /// It has ended.
    Exited,
    /// The screen shows nothing of the CLI.
    Unknown,
}

/// What a dialog is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// A tool may run, or a change may be made.
    ToolApproval,
    /// The folder is to be trusted.
    Trust,
    /// A login or a key is needed.
    Authentication,
    /// A quota is used up, or the model is not available.
    Quota,
    /// The CLI thinks that the model goes round in circles.
    Loop,
    /// The model asks something, or presents a plan.
    Question,
    /// Anything else: settings, consents, a shell command that reads from its terminal.
    Other,
}

/// A dialog that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What it is for.
    #[serde(rename = "for")]
    pub kind: WaitingFor,
    /// The line that asks.
    pub question: String,
    /// What can be chosen. Empty where text is to be typed.
    pub options: Vec<Choice>,
    /// What else the dialog says: the command, the change, the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// An option of a dialog; its number is also the key that chooses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Counted from 1.
    pub number: u32,
    /// What it says.
    pub label: String,
    /// Whether Enter would choose it now.
    pub selected: bool,
}

/// Everything that a capture tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// What the agent does.
    pub status: Status,
    /// The answer of the last turn so far, without chrome and common indentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why the status is [`Status::Error`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The dialog, when the status is [`Status::Waiting`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Waiting>,
    /// Whether the message is known to be incomplete: the capture starts in the middle of it, or the CLI hides lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A query of the user and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// What was asked. Shell commands of the user start with `!`.
    pub query: String,
    /// All text of the model, without the tools in between.
    pub answer: String,
    /// The tools, in order.
    pub tools: Vec<ToolBox>,
    /// The last error that the CLI showed in this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why there is no last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractError {
    /// The capture shows no query.
    NoQuery,
    /// Nothing comes after the last query.
    Empty,
}

impl std::fmt::Display for ExtractError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ExtractError::NoQuery => "No Gemini CLI user query found - no > prefix detected",
            ExtractError::Empty => "Empty Gemini CLI response - no content found after query",
        })
    }
}

impl std::error::Error for ExtractError {}

/// A captured screen, and what else is known about the terminal.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    text: &'a str,
    title: Option<&'a str>,
    columns: Option<usize>,
    alternate: bool,
}

impl<'a> Capture<'a> {
    /// A capture: the screen or all of its scrollback, with or without escapes.
    pub fn new(text: &'a str) -> Self {
        Capture { text, title: None, columns: None, alternate: false }
    }

    /// Adds the title of the pane.
    pub fn title(self, title: &'a str) -> Self {
        Capture { title: Some(title), ..self }
    }

    /// Adds the width of the terminal. Without it, it is taken from the rows that the CLI draws across the whole width;
    /// only the layout for screen readers has none.
    pub fn columns(self, columns: u16) -> Self {
        Capture { columns: Some(usize::from(columns)), ..self }
    }

    /// Says that the CLI uses the alternate buffer, where text ends one column earlier. Without it, that is seen by the
    /// scroll bar, which is not there while everything fits.
    pub fn alternate(self, alternate: bool) -> Self {
        Capture { alternate, ..self }
    }

    /// What the agent does. Reads only as much of the capture as that takes.
    pub fn status(&self) -> Status {
        let rows = Rows::new(self.text);
        let frame = Frame::find(&rows);
        self.judge(&rows, &frame, &mut Last::new(self, &rows, &frame))
    }

    /// Everything that the capture tells.
    pub fn read(&self) -> Reading {
        let rows = Rows::new(self.text);
        let frame = Frame::find(&rows);
        let mut last = Last::new(self, &rows, &frame);
        let status = self.judge(&rows, &frame, &mut last);
        let waiting_for = (status == Status::Waiting).then(|| waiting(&rows, &frame));
        if matches!(status, Status::Starting | Status::Exited | Status::Unknown) {
            return Reading { status, message: None, error: None, waiting_for, truncated: false };
        }
        let cut = last.query().is_none();
        let content = last.content();
        let message = (!content.answer.is_empty()).then(|| content.answer.clone());
        let truncated = message.is_some() && (content.truncated || cut);
        let error = if status == Status::Error { content.error.clone() } else { None };
        Reading { status, message, error, waiting_for, truncated }
    }

    /// The text of the last answer.
    ///
    /// # Errors
    /// When the capture shows no query, or nothing after the last one.
    pub fn last_answer(&self) -> Result<String, ExtractError> {
        let rows = Rows::new(self.text);
        let frame = Frame::find(&rows);
        let mut last = Last::new(self, &rows, &frame);
        if last.query().is_none() {
            return Err(ExtractError::NoQuery);
        }
        let answer = &last.content().answer;
        if answer.is_empty() { Err(ExtractError::Empty) } else { Ok(answer.clone()) }
    }

    /// All turns that the capture shows, the first one first.
    pub fn turns(&self) -> Vec<Turn> {
        let rows = Rows::new(self.text);
        let frame = Frame::find(&rows);
        let layout = Layout::new(self, &rows, &frame);
        let mut turns = Vec::new();
        let mut end = frame.body_end;
        while let Some(query) = transcript::last_query(&rows, end, frame.style) {
            let content = layout.content(query.rows.end..end);
            turns.push(Turn {
                query: layout.query_text(&query),
                answer: content.answer,
                tools: content.tools,
                error: content.error,
            });
            end = query.rows.start;
        }
        turns.reverse();
        turns
    }

    /// Whether the last query has nothing after it yet: no answer, no tool, no message, no spinner. The status is then
    /// [`Status::Processing`], because that is how every turn begins. But a turn can also end like this (0.30 shows nothing
    /// for an empty answer), and only time can tell.
    pub fn is_unanswered(&self) -> bool {
        let rows = Rows::new(self.text);
        let frame = Frame::find(&rows);
        let mut last = Last::new(self, &rows, &frame);
        frame.live == Live::Prompt(Activity::Quiet) && last.query().is_some() && !last.content().anything
    }

    fn judge(&self, rows: &Rows<'_>, frame: &Frame, last: &mut Last<'_, '_>) -> Status {
        let title = Title::read(self.title);
        match frame.live {
            Live::Gone => Status::Exited,
            Live::Dialog { end, .. } if is_restarting(rows, end) => Status::Starting,
            Live::Dialog { .. } | Live::Prompt(Activity::ShellInput(_)) => Status::Waiting,
            Live::Nothing => self.judge_without_prompt(rows, title, last),
            Live::Prompt(activity) => match (title, activity) {
                (Title::ActionRequired, _) => Status::Waiting,
                (Title::Working, _) | (_, Activity::Busy) => Status::Processing,
                (_, Activity::StartingUp) => Status::Starting,
                _ => last.outcome(),
            },
        }
    }

    /// Neither a prompt nor a dialog: not drawn yet, or not the CLI's screen, or a capture that ends inside a turn.
    fn judge_without_prompt(&self, rows: &Rows<'_>, title: Title, last: &mut Last<'_, '_>) -> Status {
        match title {
            Title::ActionRequired => return Status::Waiting,
            Title::Working => return Status::Processing,
            Title::Ready | Title::Silent => {}
        }
        if last.query().is_some() {
            return Status::Processing;
        }
        let mut written = (0..rows.len()).map(|index| rows.row(index)).filter(|row| !row.is_blank());
        if title == Title::Ready || written.clone().next().is_none() {
            return Status::Starting;
        }
        if written.any(|row| is_restart_line(row) || (chrome::is_spinner(row) && chrome::is_start_up(row))) {
            return Status::Starting;
        }
        if last.content().error.is_some() { Status::Error } else { Status::Unknown }
    }
}

/// Reads a capture. The same as [`Capture::read`].
pub fn classify(capture: &str, title: Option<&str>) -> Reading {
    Capture { title, ..Capture::new(capture) }.read()
}

/// What the agent does. The same as [`Capture::status`].
pub fn status(capture: &str, title: Option<&str>) -> Status {
    Capture { title, ..Capture::new(capture) }.status()
}

/// The text of the last answer. The same as [`Capture::last_answer`].
///
/// # Errors
/// When the capture shows no query, or nothing after the last one.
pub fn last_answer(capture: &str) -> Result<String, ExtractError> {
    Capture::new(capture).last_answer()
}

/// All turns. The same as [`Capture::turns`].
pub fn turns(capture: &str) -> Vec<Turn> {
    Capture::new(capture).turns()
}

/// Whether the CLI says below a dialog that it starts again.
fn is_restarting(rows: &Rows<'_>, end: usize) -> bool {
    (end..rows.len()).any(|index| is_restart_line(rows.row(index)))
}

fn is_restart_line(row: &rows::Row<'_>) -> bool {
    row.indent <= 1 && row.body().starts_with("Gemini CLI is restarting")
}

fn waiting(rows: &Rows<'_>, frame: &Frame) -> Waiting {
    match frame.live {
        Live::Dialog { start, end } => dialog::read(rows, start..end),
        Live::Prompt(Activity::ShellInput(index)) => Waiting {
            kind: WaitingFor::Other,
            question: rows.row(index).body().trim_start_matches(['!', ' ']).to_owned(),
            options: Vec::new(),
            detail: None,
        },
        _ => Waiting { kind: WaitingFor::Other, question: String::new(), options: Vec::new(), detail: None },
    }
}

/// How the conversation is laid out.
struct Layout<'r, 'a> {
    rows: &'r Rows<'a>,
    style: Style,
    columns: Option<usize>,
    /// The column after the last one that text of the model is written to.
    edge: Option<usize>,
}

impl<'r, 'a> Layout<'r, 'a> {
    fn new(capture: &Capture<'_>, rows: &'r Rows<'a>, frame: &Frame) -> Self {
        let columns = capture.columns.or(frame.columns);
        let edge = match rows.scroll_bar() {
            Some(bar) => Some(bar.saturating_sub(1)),
            None => columns.map(|columns| columns.saturating_sub(usize::from(capture.alternate))),
        };
        Layout { rows, style: frame.style, columns, edge }
    }

    fn content(&self, range: std::ops::Range<usize>) -> Content {
        match self.style {
            Style::Reader => reader::read(self.rows, range, self.columns),
            _ => transcript::read(self.rows, range, self.edge),
        }
    }

    fn query_text(&self, query: &Query) -> String {
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
struct Last<'r, 'a> {
    layout: Layout<'r, 'a>,
    end: usize,
    query: Option<Option<Query>>,
    content: Option<Content>,
}

impl<'r, 'a> Last<'r, 'a> {
    fn new(capture: &Capture<'_>, rows: &'r Rows<'a>, frame: &Frame) -> Self {
        Last { layout: Layout::new(capture, rows, frame), end: frame.body_end, query: None, content: None }
    }

    fn query(&mut self) -> Option<&Query> {
        let layout = &self.layout;
        self.query.get_or_insert_with(|| transcript::last_query(layout.rows, self.end, layout.style)).as_ref()
    }

    fn content(&mut self) -> &Content {
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
    fn outcome(&mut self) -> Status {
        let (query, slash) = match self.query() {
            Some(query) => (true, query.rows.clone()),
            None => (false, 0..0),
        };
        let slash = slash.map(|index| self.layout.rows.row(index)).any(|row| {
            row.body().trim_start_matches(['>', ' ']).starts_with('/') || row.body().starts_with(['$', '!'])
        });
        let content = self.content();
        let worked = content
            .tools
            .iter()
            .any(|tool| matches!(tool.status, ToolStatus::Succeeded | ToolStatus::Failed));
        if content.failed {
            Status::Error
        } else if !content.answer.is_empty() || (worked && !slash) {
            Status::Completed
        } else if query && !slash && !content.anything {
            Status::Processing
        } else {
            Status::Idle
        }
    }
}
