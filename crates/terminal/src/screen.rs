//! Reads the screen of the interactive CLI: text and title in, status and answer out. No I/O, no state.
//!
//! Gemini CLI 0.61.0 keeps an empty prompt on the screen while it works, so what the prompt says is not what the agent
//! does. The signs, in the order in which they count:
//!
//! 1. A row of somebody else below what the CLI drew, or its farewell: it has **exited**.
//! 2. A dialog: it is **waiting**, whatever the title says. The title says `Ready` during the trust, login and loop dialogs
//!    and `Working…` during the one about quotas.
//! 3. The title: `✦ Working…` is **processing**, `✋ Action Required` is **waiting**.
//! 4. A spinner, queued messages, the notice that they are queued, or a query without anything after it: **processing**. The last one matters: for up to
//!    seconds after a prompt was sent the title still says `Ready` and no spinner turns.
//! 5. Otherwise the prompt is free: **error** if the last turn ended with one, **completed** if it has an answer or a tool
//!    that ran, else **idle**.
//!
//! Words are never enough: chrome is recognised by where it stands, because an answer can contain any of it. The CLI draws
//! its own things at column 0 or 1, and text of the model further right. A capture may be plain or coloured, of the screen alone or with its scrollback; more scrollback only makes
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
mod judge;
mod prompt;
mod prose;
mod reader;
mod rows;
#[cfg(test)]
mod tests;
mod transcript;

use alhena_agent::Approval;
use alhena_model::Hint;
use serde::{Deserialize, Serialize};

use frame::{Activity, Frame, Live};
pub(crate) use judge::Title;
use judge::{Last, Layout};
pub use prompt::Draft;
use rows::Rows;
use transcript::Query;
pub use transcript::{ToolBox, ToolStatus};

/// What the agent in a terminal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// A tool may run, or a change may be made.
    ToolApproval,
    /// The folder is to be trusted.
    Trust,
    /// A login or a key is needed.
    Authentication,
    /// A quota is used up, or the model is overloaded.
    Quota,
    /// There is no such model.
    Model,
    /// The CLI thinks that the model goes round in circles.
    Loop,
    /// The model asks something, or presents a plan.
    Question,
    /// Anything else: settings, consents, a shell command that reads from its terminal.
    Other,
}

/// A dialog that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

impl Waiting {
    /// Whether it is the same dialog. Where its mark stands, and what is ticked, is how far somebody is with it.
    #[must_use]
    pub fn asks_the_same(&self, other: &Self) -> bool {
        fn options(dialog: &Waiting) -> impl Iterator<Item = (u32, &str)> {
            dialog.options.iter().map(|option| (option.number, option.label.as_str()))
        }
        (self.kind, &self.question, &self.detail) == (other.kind, &other.question, &other.detail)
            && options(self).eq(options(other))
    }
}

#[cfg(test)]
impl Waiting {
    /// A dialog with these options.
    pub(crate) fn asking(kind: WaitingFor, labels: &[&str], checked: Option<bool>) -> Self {
        let options = labels.iter().zip(1..).map(|(label, number)| {
            let label = (*label).to_owned();
            Choice { number, label, selected: false, checked }
        });
        Self { kind, question: "Which?".to_owned(), options: options.collect(), detail: None }
    }
}

/// An option of a dialog; its number is also the key that chooses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Counted from 1.
    pub number: u32,
    /// What it says.
    pub label: String,
    /// Whether Enter would choose it now.
    pub selected: bool,
    /// Whether it is ticked, where several can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
}

/// Everything that a capture tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The last message that was sent, and how its turn ended. A screen alone does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<crate::turn::TurnNote>,
    /// What people should know of how that turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Whether the message is known to be incomplete: the capture starts in the middle of it, or the CLI hides lines. Not
    /// part of the JSON, whose keys others rely on.
    #[serde(skip)]
    pub truncated: bool,
}

impl Reading {
    /// Returns a status without anything else.
    pub fn of(status: Status) -> Self {
        Reading {
            status,
            message: None,
            error: None,
            waiting_for: None,
            turn: None,
            warning: None,
            truncated: false,
        }
    }
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

impl Hint for ExtractError {}

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

    /// Adds the width of the terminal. Without it, it is taken from the rows that the CLI draws across the whole width; only
    /// the layout for screen readers has none. That one is best captured with `capture-pane -J`, which puts together rows that
    /// the terminal has wrapped: from the width alone a line that ends in the last column cannot be told from a wrapped one.
    pub fn columns(self, columns: u16) -> Self {
        Capture { columns: Some(usize::from(columns)), ..self }
    }

    /// Says that the CLI uses the alternate buffer, where text ends one column earlier. Without it, that is seen by the
    /// scroll bar, which is not there while everything fits.
    pub fn alternate(self, alternate: bool) -> Self {
        Capture { alternate, ..self }
    }

    fn rows_and_frame(&self) -> (Rows<'a>, Frame) {
        let rows = Rows::new(self.text);
        let frame = Frame::find(&rows);
        (rows, frame)
    }

    fn layout<'r, 'b>(&self, rows: &'r Rows<'b>, frame: &Frame) -> Layout<'r, 'b> {
        Layout::new(rows, frame, self.columns, self.alternate)
    }

    fn last<'r, 'b>(&self, rows: &'r Rows<'b>, frame: &Frame) -> Last<'r, 'b> {
        Last::new(self.layout(rows, frame), frame.body_end)
    }

    /// What the agent does. Reads only as much of the capture as that takes.
    pub fn status(&self) -> Status {
        self.status_of(&Rows::new(self.text))
    }

    fn status_of(&self, rows: &Rows<'_>) -> Status {
        let frame = Frame::find(rows);
        judge::status(self.title, rows, &frame, &mut self.last(rows, &frame))
    }

    /// Everything that the capture tells.
    pub fn read(&self) -> Reading {
        self.reading_of(&Rows::new(self.text))
    }

    fn reading_of(&self, rows: &Rows<'_>) -> Reading {
        let frame = Frame::find(rows);
        let mut last = self.last(rows, &frame);
        let status = judge::status(self.title, rows, &frame, &mut last);
        let waiting_for = (status == Status::Waiting).then(|| judge::waiting(rows, &frame));
        if matches!(status, Status::Starting | Status::Exited | Status::Unknown) {
            return Reading { waiting_for, ..Reading::of(status) };
        }
        if let (Status::Error, Live::Nothing) = (status, frame.live) {
            let error = judge::failure_outside(rows);
            return Reading { error, waiting_for, ..Reading::of(status) };
        }
        let cut = last.query().is_none();
        let content = last.content();
        let message = (!content.answer.is_empty()).then(|| content.answer.clone());
        let truncated = message.is_some() && (content.truncated || cut);
        let error = if status == Status::Error { content.error.clone() } else { None };
        Reading { message, error, waiting_for, truncated, ..Reading::of(status) }
    }

    /// The text of the last answer.
    ///
    /// # Errors
    /// When the capture shows no query, or nothing after the last one.
    pub fn last_answer(&self) -> Result<String, ExtractError> {
        let (rows, frame) = self.rows_and_frame();
        let mut last = self.last(&rows, &frame);
        if last.query().is_none() {
            return Err(ExtractError::NoQuery);
        }
        let answer = &last.content().answer;
        if answer.is_empty() { Err(ExtractError::Empty) } else { Ok(answer.clone()) }
    }

    /// All turns that the capture shows, the first one first.
    pub fn turns(&self) -> Vec<Turn> {
        self.turns_of(&Rows::new(self.text))
    }

    fn turns_of(&self, rows: &Rows<'_>) -> Vec<Turn> {
        let frame = Frame::find(rows);
        let layout = self.layout(rows, &frame);
        let turn = |(query, end): (Query, usize)| {
            let content = layout.content(query.rows.end..end);
            Turn {
                query: layout.query_text(&query),
                answer: content.answer,
                tools: content.tools,
                error: content.error,
            }
        };
        let mut turns: Vec<Turn> = transcript::queries(rows, &frame).map(turn).collect();
        turns.reverse();
        turns
    }

    /// Whether the CLI has finished its start, as far as the screen tells: its banner or a turn is there. Since 0.45 the
    /// prompt appears up to a second before that, and what is sent in between is queued.
    pub fn has_started(&self) -> bool {
        let (rows, frame) = self.rows_and_frame();
        let banner = (0..frame.body_end).rev().any(|index| chrome::is_banner(rows.row(index)));
        banner || self.last(&rows, &frame).query().is_some()
    }

    /// What is in the prompt and has not been sent. None when there is no prompt. The CLI shows only the end of a long draft,
    /// and a large paste as `[Pasted Text: 40 lines]`.
    pub fn draft(&self) -> Option<Draft> {
        let (rows, frame) = self.rows_and_frame();
        matches!(frame.live, Live::Prompt(_)).then(|| prompt::draft(&rows, frame.body_end))
    }

    /// The approval mode that the prompt shows; none where the screen does not tell.
    pub fn approval(&self) -> Option<Approval> {
        let (rows, frame) = self.rows_and_frame();
        prompt::approval(&rows, &frame)
    }

    /// How many queries the capture shows.
    pub fn query_count(&self) -> usize {
        let (rows, frame) = self.rows_and_frame();
        transcript::queries(&rows, &frame).count()
    }

    /// Whether the last query has nothing after it yet: no answer, no tool, no message, no spinner. The status is then
    /// [`Status::Processing`], because that is how every turn begins. But a turn can also end like this (0.30 shows nothing
    /// for an empty answer), and only time can tell.
    pub fn is_unanswered(&self) -> bool {
        let (rows, frame) = self.rows_and_frame();
        let mut last = self.last(&rows, &frame);
        frame.live == Live::Prompt(Activity::Quiet) && last.query().is_some() && !last.content().anything
    }
}
