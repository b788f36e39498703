//! What the prompt tells: the text that has not been sent, and the approval mode.
//!
//! The prompt is `>`, `*` or `!` and the text, between half blocks, rules or blank rows, or in a box (0.24). When it is empty
//! 0.61.0 shows a placeholder there. The mode is in a row above; the short layout (Tab twice) does not name the default mode,
//! nor any mode while the CLI works, and a dialog or the shell mode hides the row. Up to 0.25 the default is never named.

use alhena_agent::Approval;

use super::chrome;
use super::frame::{Frame, Live};
use super::rows::Rows;

/// The content of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The text, its rows joined by line ends. Empty when the placeholder is there.
    pub text: String,
    /// How many rows it takes.
    pub rows: usize,
    /// Whether the prompt is that for shell commands (`!`).
    pub shell: bool,
}

/// The text of a row, without the sides of a box around it.
fn inside(rows: &Rows<'_>, index: usize) -> String {
    let row = rows.row(index);
    match chrome::box_edge(row) {
        Some(_) => chrome::inside(row).to_owned(),
        None => row.body().to_owned(),
    }
}

fn first_row(rows: &Rows<'_>, body_end: usize) -> Option<usize> {
    (body_end..rows.len()).rev().find(|index| {
        let text = inside(rows, *index);
        rows.row(*index).indent <= 2
            && text.starts_with(['>', '*', '!'])
            && text.get(1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

pub(super) fn draft(rows: &Rows<'_>, body_end: usize) -> Draft {
    let Some(first) = first_row(rows, body_end) else {
        return Draft { text: String::new(), rows: 0, shell: false };
    };
    let start = inside(rows, first);
    let shell = start.starts_with('!');
    if start.get(1..).is_some_and(|rest| rest.is_empty() || chrome::is_placeholder(rest)) {
        return Draft { text: String::new(), rows: 1, shell };
    }
    let mut lines = vec![start.get(1..).unwrap_or_default().trim().to_owned()];
    for index in first + 1..rows.len() {
        let row = rows.row(index);
        let edge = matches!(chrome::box_edge(row), Some(chrome::Edge::Top | chrome::Edge::Bottom));
        if row.is_blank() || chrome::is_half_block_border(row) || chrome::is_rule(row) || edge {
            break;
        }
        lines.push(inside(rows, index).trim().to_owned());
    }
    let is_end =
        |index: &usize| chrome::is_half_block_border(rows.row(*index)) || chrome::is_rule(rows.row(*index));
    let end = (first + 1..rows.len()).find(is_end).unwrap_or(first + lines.len());
    Draft { text: lines.join("\n").trim().to_owned(), rows: end - first, shell }
}

/// The mode, where the screen tells. Of several that could be meant it is the one that allows most.
pub(super) fn approval(rows: &Rows<'_>, frame: &Frame) -> Option<Approval> {
    let Live::Prompt(_) = frame.live else { return None };
    let prompt = first_row(rows, frame.body_end)?;
    let sign = inside(rows, prompt).chars().next();
    if sign == Some('*') {
        return Some(Approval::Yolo);
    }
    let above = (frame.body_end..prompt).filter_map(|index| named(rows.row(index).body()));
    let boxed = chrome::box_edge(rows.row(prompt)).is_some() && sign == Some('>');
    above.max_by_key(|mode| mode.rank()).or(boxed.then_some(Approval::Default))
}

/// The mode that a row above the prompt names. The keys in it are whatever the user has bound.
fn named(text: &str) -> Option<Approval> {
    let text = text.trim();
    let text = text.strip_prefix("● ").unwrap_or(text);
    let begins = |words: &[&str]| {
        let follows = |rest: &str| rest.is_empty() || rest.starts_with(' ');
        words.iter().any(|word| text.strip_prefix(word).is_some_and(follows))
    };
    if begins(&["YOLO"]) {
        Some(Approval::Yolo)
    } else if begins(&["auto-accept edits", "auto edit", "accepting edits"]) {
        Some(Approval::AutoEdit)
    } else if begins(&["plan"]) {
        Some(Approval::Plan)
    } else if text.split("  ").next().is_some_and(|first| first.contains(" to accept edits")) {
        Some(Approval::Default)
    } else {
        None
    }
}
