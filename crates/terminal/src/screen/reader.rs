//! The layout of `--screen-reader`: no boxes, no indentation, no blank rows.
//!
//! Queries start with `User:  `, text of the model with `Model:  `, tools with a word such as `Success: `. The footer stands
//! above the part that is still changing, not at the bottom, and there is no wrapping: a long line goes on in the next
//! row because the terminal is full. Everything is at column 0, so here, and only here, the words of a model cannot be
//! told from the CLI's own: an answer with a line `User:  x` looks like a query.

use std::ops::Range;

use super::chrome;
use super::frame::{Activity, Frame, Live, Style};
use super::prose::{self, ProseLine};
use super::rows::{Row, Rows, width};
use super::transcript::{Query, ToolBox, ToolStatus, TurnContent};

const USER: &str = "User:  ";
const MODEL: &str = "Model:  ";

const TOOLS: [(&str, ToolStatus); 8] = [
    ("Success: ", ToolStatus::Succeeded),
    ("Canceled: ", ToolStatus::Cancelled),
    ("Error: ", ToolStatus::Failed),
    ("Confirming: ", ToolStatus::Asking),
    ("⊷ ", ToolStatus::Running),
    ("⊶ ", ToolStatus::Running),
    ("o ", ToolStatus::Pending),
    ("? ", ToolStatus::Asking),
];

/// Whether a row occurs in this layout only.
pub(super) fn is_sign(row: &Row<'_>) -> bool {
    row.text.starts_with(USER) || row.text.starts_with(MODEL) || is_checked(&row.text) || is_prompt(row)
}

/// A prompt of this layout: its character at column 0 and two blanks.
fn is_prompt(row: &Row<'_>) -> bool {
    row.indent == 0 && chrome::prompt_text(row).is_some_and(|text| text.starts_with(' '))
}

fn is_checked(text: &str) -> bool {
    text.strip_prefix("(checked) ").is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

pub(super) fn frame(rows: &Rows<'_>, foreign: bool) -> Frame {
    let frame = |live, body_end| Frame { style: Style::Reader, live, body_end, columns: None };
    let last = (0..rows.len()).rev().find(|index| !rows.row(*index).is_blank()).unwrap_or(0);
    for index in (0..=last).rev() {
        let row = rows.row(index);
        if is_checked(&row.text) && !foreign_after_options(rows, index + 1..last + 1) {
            let start = dialog_start(rows, index);
            return frame(Live::Dialog { start, end: last + 1 }, start);
        }
        if row.text.starts_with("Agent powering down. Goodbye!") {
            return frame(Live::Gone, index);
        }
        if is_prompt(row) {
            let (end, activity) = status(rows, index);
            if chrome::is_empty_prompt(row) && last > index && foreign {
                return frame(Live::Gone, end);
            }
            return frame(Live::Prompt(activity), end);
        }
        if row.text.starts_with(USER) {
            break;
        }
    }
    frame(Live::Nothing, last + 1)
}

/// Whether anything but further options stands below the option that is selected.
fn foreign_after_options(rows: &Rows<'_>, mut range: Range<usize>) -> bool {
    range.any(|index| {
        let row = rows.row(index);
        !row.is_blank()
            && !chrome::is_toast(row)
            && !row.text.starts_with(|digit: char| digit.is_ascii_digit())
    })
}

/// A dialog begins with its tool, after the footer, which stands above it.
fn dialog_start(rows: &Rows<'_>, selected: usize) -> usize {
    let floor = selected.saturating_sub(60);
    let opens = |text: &str| text.starts_with("? ") || text.starts_with("Confirming: ");
    let found = (floor..selected).rev().find(|index| {
        let row = rows.row(*index);
        opens(&row.text) || row.text.starts_with(USER) || row.text.starts_with(MODEL) || row.is_blank()
    });
    match found {
        Some(index) if !opens(&rows.row(index).text) => index + 1,
        Some(index) if index > 0 && rows.row(index - 1).text == "Action Required" => index - 1,
        Some(index) => index,
        None => floor,
    }
}

/// The rows above the prompt: the mode, then what the CLI does.
fn status(rows: &Rows<'_>, prompt: usize) -> (usize, Activity) {
    let mut end = prompt;
    for above in (prompt.saturating_sub(4)..prompt).rev() {
        let text = &rows.row(above).text;
        if text.starts_with("responding ") || text.starts_with("loading ") {
            let busy = text.contains("(esc to cancel");
            return (above, if busy { Activity::Busy } else { Activity::StartingUp });
        }
        if is_status(text) && end == above + 1 {
            end = above;
        }
    }
    (end, Activity::Quiet)
}

fn is_status(text: &str) -> bool {
    [
        "Shift+Tab to ",
        "shift+tab to ",
        "YOLO ",
        "plan ",
        "auto-accept edits",
        "? for shortcuts",
        "shell mode enabled",
        "Press ",
    ]
    .iter()
    .any(|words| text.starts_with(words))
}

/// The last query before `end`. An answer that starts with code has no mark; if nothing in the turn has one, it begins with
/// line 1.
pub(super) fn last_query(rows: &Rows<'_>, end: usize) -> Option<Query> {
    let start = (0..end).rev().find(|index| rows.row(*index).text.starts_with(USER))?;
    let first_line = |index: &usize| rows.row(*index).text == "1" || rows.row(*index).text.starts_with("1 ");
    let stop = (start + 1..end)
        .find(|index| begins_item(rows.row(*index)))
        .or_else(|| (start + 1..end).find(first_line))
        .unwrap_or(end);
    Some(Query { rows: start..stop, text: start..stop })
}

pub(super) fn query_text(rows: &Rows<'_>, query: &Query, columns: Option<usize>) -> String {
    let mut text = joined(rows, query.text.clone(), columns);
    if text.starts_with(USER) {
        text.replace_range(..USER.len(), "");
    }
    text
}

/// Rows put together where the terminal was full.
fn joined(rows: &Rows<'_>, range: Range<usize>, columns: Option<usize>) -> String {
    let mut out = String::new();
    let mut glue = "";
    for index in range {
        let text = &rows.row(index).text;
        out.push_str(glue);
        out.push_str(text);
        let room = columns.and_then(|columns| columns.checked_sub(width(text)));
        // A blank in the last column is not part of the capture.
        glue = match room {
            Some(0) => "",
            Some(1) => " ",
            _ => "\n",
        };
    }
    out.truncate(out.trim_end().len());
    out
}

fn is_footer_start(text: &str) -> bool {
    text.starts_with("workspace (/directory)")
        || text.starts_with("You are currently in screen reader-friendly view.")
}

pub(super) fn read(rows: &Rows<'_>, range: Range<usize>, columns: Option<usize>) -> TurnContent {
    let mut content = TurnContent::default();
    let mut parts: Vec<String> = Vec::new();
    let mut index = range.start;
    while index < range.end {
        let row = rows.row(index);
        let next = (index + 1..range.end).find(|next| begins_item(rows.row(*next))).unwrap_or(range.end);
        let text = joined(rows, index..next, columns);
        content.anything |= !text.is_empty();
        if is_footer_start(&row.text) {
            index = skip_footer(rows, index, range.end);
            continue;
        }
        if let Some((name, status)) = tool(&row.text) {
            let (head, output) = text.split_once('\n').unwrap_or((&text, ""));
            let description = head.split_once(name).map_or("", |(_, after)| after.trim_start());
            content.tools.push(ToolBox {
                name: name.to_owned(),
                status,
                description: description.to_owned(),
                output: output.to_owned(),
            });
            content.failed = false;
        } else if let Some(error) = note(row) {
            if error {
                content.error = text.strip_prefix('✕').map(|text| text.trim_start().to_owned());
            }
            content.failed |= error;
        } else if !text.is_empty() {
            parts.push(with_tables(text.strip_prefix(MODEL).unwrap_or(&text)));
            content.failed = false;
        }
        index = next;
    }
    content.answer = parts.join("\n\n");
    content
}

fn with_tables(text: &str) -> String {
    if !text.contains('┌') {
        return text.to_owned();
    }
    let lines: Vec<ProseLine<'_>> = text.lines().map(|text| ProseLine { text, indent: 0 }).collect();
    let mut out: Vec<String> = Vec::new();
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        match prose::table(lines.get(index..).unwrap_or_default(), Some(0)) {
            Some((drawn, taken)) => {
                out.extend(drawn);
                index += taken;
            }
            None => {
                out.push(line.text.to_owned());
                index += 1;
            }
        }
    }
    out.join("\n")
}

fn begins_item(row: &Row<'_>) -> bool {
    row.text.starts_with(MODEL)
        || tool(&row.text).is_some()
        || note(row).is_some()
        || is_footer_start(&row.text)
}

/// A message of the CLI, and whether it is an error.
fn note(row: &Row<'_>) -> Option<bool> {
    let rest = row.text.strip_prefix(['ℹ', '⚠', '✕'])?;
    rest.starts_with("  ").then(|| row.marked('✕'))
}

fn tool(text: &str) -> Option<(&str, ToolStatus)> {
    let (rest, status) = TOOLS.iter().find_map(|(sign, status)| Some((text.strip_prefix(sign)?, *status)))?;
    let name = rest.trim_start().split(' ').next()?;
    name.starts_with(|first: char| first.is_ascii_uppercase()).then_some((name, status))
}

/// The footer ends with the name of the model, in the row after `/model`.
fn skip_footer(rows: &Rows<'_>, start: usize, end: usize) -> usize {
    let model = (start..end.min(start + 12)).find(|index| rows.row(*index).text.ends_with("/model"));
    model.map_or(start + 1, |index| (index + 2).min(end))
}
