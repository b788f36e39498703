//! From a drawn table back to Markdown rows.
//!
//! The CLI draws tables with `┌┬┐`, one rule under the head and none between rows, and wraps cells when the table is wider
//! than the terminal. So one row of the table may take several rows of the screen, and nothing marks where the next one
//! begins. It is found by the rule of wrapping: a row of the screen continues the one above if in every cell the next
//! word would not have fitted. If the table that results would have fitted without any wrapping, nothing was wrapped.

use super::prose::{ProseLine, Wrap};
use super::rows::width;

/// The table that begins in the first of `lines`, as Markdown, and how many lines it takes.
pub(super) fn read(lines: &[ProseLine<'_>], edge: Option<usize>) -> Option<(Vec<String>, usize)> {
    let first = lines.first()?;
    let columns = column_widths(first.body(), '┌', '┬', '┐')?;
    let mut head: Vec<Vec<&str>> = Vec::new();
    let mut body: Vec<Vec<&str>> = Vec::new();
    let mut ruled = false;
    for (index, line) in lines.iter().enumerate().skip(1) {
        let text = line.body();
        if line.indent != first.indent {
            return None;
        }
        if let Some(cells) = cells(text, &columns) {
            if ruled { body.push(cells) } else { head.push(cells) }
        } else if !ruled && column_widths(text, '├', '┼', '┤').as_ref() == Some(&columns) {
            ruled = true;
        } else if ruled
            && column_widths(text, '└', '┴', '┘').as_ref() == Some(&columns)
            && !head.is_empty()
            && !body.is_empty()
        {
            let room = edge.map(|edge| edge.saturating_sub(first.indent + 2));
            return Some((markdown(&head, &body, &columns, room), index + 1));
        } else {
            return None;
        }
    }
    None
}

/// The widths of the columns in a horizontal line such as `┌───┬──┐`, padding included; a table has at least two.
fn column_widths(text: &str, left: char, middle: char, right: char) -> Option<Vec<usize>> {
    let inner = text.strip_prefix(left)?.strip_suffix(right)?;
    let widths: Vec<usize> = inner
        .split(middle)
        .map(|part| if part.chars().all(|dash| dash == '─') { part.chars().count() } else { 0 })
        .collect();
    (widths.len() >= 2 && widths.iter().all(|width| *width >= 2)).then_some(widths)
}

fn cells<'r>(text: &'r str, columns: &[usize]) -> Option<Vec<&'r str>> {
    let inner = text.strip_prefix('│')?.strip_suffix('│')?;
    let cells: Vec<&str> = inner.split('│').map(str::trim).collect();
    (cells.len() == columns.len()).then_some(cells)
}

/// The table as Markdown. `room` is how wide it may have been drawn.
fn markdown(head: &[Vec<&str>], body: &[Vec<&str>], columns: &[usize], room: Option<usize>) -> Vec<String> {
    let room = room.unwrap_or(usize::MAX);
    let merged_head = merge(head, columns, room);
    let merged_body = merge(body, columns, room);
    let all = merged_head.iter().chain(&merged_body);
    let natural = (0..columns.len()).map(|column| {
        all.clone().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0) + 2
    });
    let wrapped = drawn_width(natural) > room;
    let (head, body) = if wrapped { (merged_head, merged_body) } else { (plain(head), plain(body)) };
    let mut lines: Vec<String> = head.iter().map(|row| markdown_row(row)).collect();
    lines.push(format!("|{}", " --- |".repeat(columns.len())));
    lines.extend(body.iter().map(|row| markdown_row(row)));
    lines
}

/// How wide a table is with columns of these widths, lines included.
fn drawn_width(columns: impl Iterator<Item = usize>) -> usize {
    columns.map(|column| column + 1).sum::<usize>() + 1
}

fn plain(rows: &[Vec<&str>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

fn markdown_row(cells: &[String]) -> String {
    let mut row = String::from("|");
    for cell in cells {
        row.push(' ');
        row.push_str(cell);
        row.push_str(if cell.is_empty() { "|" } else { " |" });
    }
    row
}

/// Puts rows of the screen together where every cell goes on. If all cells of a row have text, it is more likely the next
/// row of the table, unless there was hardly any room left.
fn merge(rows: &[Vec<&str>], columns: &[usize], room: usize) -> Vec<Vec<String>> {
    let crowded = drawn_width(columns.iter().copied()) + columns.len() + 8 > room;
    let mut merged: Vec<Vec<String>> = Vec::new();
    let mut wraps: Vec<Option<Wrap>> = Vec::new();
    for row in rows {
        let goes_on = |((cell, wrap), column): ((&&str, &Option<Wrap>), &usize)| {
            let edge = Some(column.saturating_sub(2));
            cell.is_empty() || wrap.as_ref().is_some_and(|wrap| wrap.continues(&line(cell), edge))
        };
        let continues = !merged.is_empty()
            && (crowded || row.iter().any(|cell| cell.is_empty()))
            && row.iter().zip(&wraps).zip(columns).all(goes_on);
        if !continues {
            wraps = row.iter().map(|cell| (!cell.is_empty()).then(|| Wrap::new(&line(cell), 0))).collect();
            merged.push(row.iter().map(|cell| (*cell).to_owned()).collect());
            continue;
        }
        let Some(last) = merged.last_mut() else { continue };
        for (((cell, wrap), column), whole) in row.iter().zip(&mut wraps).zip(columns).zip(last.iter_mut()) {
            match wrap {
                Some(open) if !cell.is_empty() => {
                    let glue = open.glue(&line(cell), Some(column.saturating_sub(2)));
                    whole.push_str(glue);
                    whole.push_str(cell);
                    open.advance(&line(cell));
                }
                _ => *wrap = None,
            }
        }
    }
    merged
}

fn line<'r>(cell: &'r str) -> ProseLine<'r> {
    ProseLine { text: cell, indent: 0 }
}
