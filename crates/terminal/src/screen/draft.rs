//! What somebody has typed into the prompt and not sent yet.
//!
//! The prompt is `>`, `*` or `!` and the text, between half blocks, rules or blank rows, or in a box (0.24). When it is empty
//! 0.61.0 shows a placeholder there, `Type your message or @path/to/file`.

use super::chrome;
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
pub(super) fn inside(rows: &Rows<'_>, index: usize) -> String {
    let row = rows.row(index);
    match chrome::box_edge(row) {
        Some(_) => chrome::inside(row).to_owned(),
        None => row.body().to_owned(),
    }
}

pub(super) fn first_row(rows: &Rows<'_>, body_end: usize) -> Option<usize> {
    (body_end..rows.len()).rev().find(|index| {
        let text = inside(rows, *index);
        rows.row(*index).indent <= 2
            && text.starts_with(['>', '*', '!'])
            && text.get(1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}

pub(super) fn read(rows: &Rows<'_>, body_end: usize) -> Draft {
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
