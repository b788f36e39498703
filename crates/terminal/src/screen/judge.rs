//! From the signs on the screen and in the title to a status.
//!
//! Neither is enough. 0.61.0 has titles that lie while a dialog is open, and screens that look free while a prompt is being
//! prepared; a screen can also be caught half drawn. The order of the rules is in the documentation of the module.

use super::frame::{Activity, Frame, Live};
use super::last::Last;
use super::rows::{Row, Rows};
use super::title::Title;
use super::{Status, Waiting, WaitingFor, chrome, dialog};

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
    match frame.live {
        Live::Dialog { start, end } => dialog::read(rows, start..end),
        Live::Prompt(Activity::ShellInput(index)) => Waiting {
            kind: WaitingFor::Other,
            question: rows
                .row(index)
                .body()
                .trim_start_matches(['!', ' '])
                .split("  ")
                .next()
                .unwrap_or_default()
                .to_owned(),
            options: Vec::new(),
            detail: None,
        },
        _ => Waiting { kind: WaitingFor::Other, question: String::new(), options: Vec::new(), detail: None },
    }
}
