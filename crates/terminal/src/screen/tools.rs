//! Tool calls on the screen, apart from the text of the answer.
//!
//! 0.30 and 0.36 draw every tool in a box (`│ ✓  ReadFile a.txt │`); since 0.45 the tools for files and searches take one
//! compact row at column 2 (`  ✓  ReadFile  a.txt → ...`) with an optional listing at column 6, and the rest stays in
//! boxes. The model can write a row that looks like a compact one. What gives it away is what follows: after a tool the
//! CLI marks the next text with `✦`, so a "tool" with unmarked text after it was text itself.

use serde::Serialize;

use super::chrome;
use super::rows::{Row, Rows};

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
pub(super) fn read_box(rows: &Rows<'_>, start: usize, end: usize) -> (Vec<ToolBox>, usize) {
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
pub(super) fn starts_listing(row: &Row<'_>) -> bool {
    row.indent >= 3
        && row.body().strip_prefix('1').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

pub(super) fn is_compact(row: &Row<'_>) -> bool {
    row.indent == 2 && header(row.body()).is_some()
}

fn trimmed(text: &str) -> String {
    text.trim_end().trim_start_matches('\n').to_owned()
}

/// Compact tools from the row `start` on, and the row after them. An error says up to which row it is text instead.
pub(super) fn read_compact(
    rows: &Rows<'_>,
    start: usize,
    end: usize,
) -> Result<(Vec<ToolBox>, usize), usize> {
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
