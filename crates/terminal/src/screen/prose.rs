//! From the rows of an answer back to its text.
//!
//! The CLI renders Markdown: it wraps paragraphs at the right edge (Ink of 0.61.0: a word goes to the next row when it
//! does not fit, blanks at the break disappear, a word longer than a row is cut), moves list items one column to the
//! right, numbers the lines of code and draws tables. None of this was in the answer, so it is undone here. What cannot
//! be undone, because the screen no longer knows it: fences, `#` of headings and the marks of bold, italic and inline
//! code; how many blanks stood at a break; a line that ended by chance where it would have been wrapped anyway.
//!
//! The result: paragraphs and list items as one line each, lists with the indentation that they were written with, code
//! line for line and set off by a blank line, tables as Markdown rows and set off too, runs of blank lines as one.

use super::rows::{Row, first_word, starts_wide, width};

/// One row of an answer; its text starts at column 0 of the terminal.
#[derive(Debug)]
pub(super) struct ProseLine<'r> {
    pub text: &'r str,
    pub indent: usize,
}

impl<'r> ProseLine<'r> {
    pub fn of(row: &'r Row<'_>) -> Self {
        ProseLine { text: &row.text, indent: row.indent }
    }

    pub fn body(&self) -> &'r str {
        self.text.get(self.indent..).unwrap_or_default()
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prose {
    pub text: String,
    /// The CLI said that it leaves lines out.
    pub truncated: bool,
}

/// Reads the rows of an answer. `base` is the column at which its text starts, `edge` the column after the last one that
/// the CLI writes text to; without an edge nothing can be told about wraps and rows stay rows.
pub(super) fn read(lines: &[ProseLine<'_>], base: usize, edge: Option<usize>) -> Prose {
    let edge = edge.filter(|edge| lines.iter().all(|line| width(line.text) <= *edge));
    let mut out = Writer::default();
    let mut open: Option<Wrap> = None;
    let mut truncated = false;
    let mut cut = false;
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        let rest = lines.get(index..).unwrap_or_default();
        if line.text.is_empty() {
            out.blank();
            open = None;
        } else if is_omission(line, base) {
            (truncated, cut) = (true, true);
            open = None;
            index += 1;
            continue;
        } else if let Some((code, taken)) = listing(rest, base, edge, cut) {
            out.block(&code);
            (open, cut) = (None, false);
            index += taken;
            continue;
        } else if let Some((drawn, taken)) = table(rest, edge) {
            out.block(&drawn);
            open = None;
            index += taken;
            continue;
        } else if let Some(wrap) = open.as_mut().filter(|wrap| wrap.continues(line, edge)) {
            out.join(wrap.glue(line, edge), line.body());
            wrap.advance(line);
        } else {
            open = Some(start_line(&mut out, line, base));
        }
        cut = false;
        index += 1;
    }
    Prose { text: out.finish(), truncated }
}

pub(super) fn unwrap(lines: &[ProseLine<'_>], base: usize, edge: Option<usize>) -> String {
    let edge = edge.filter(|edge| lines.iter().all(|line| width(line.text) <= *edge));
    let mut out = String::new();
    let mut open: Option<Wrap> = None;
    for (index, line) in lines.iter().enumerate() {
        if let Some(wrap) = open.as_mut().filter(|wrap| !line.text.is_empty() && wrap.continues(line, edge)) {
            out.push_str(wrap.glue(line, edge));
            out.push_str(line.body());
            wrap.advance(line);
            continue;
        }
        if index > 0 {
            out.push('\n');
        }
        out.extend(std::iter::repeat_n(' ', line.indent.saturating_sub(base)));
        out.push_str(line.body());
        open = (!line.text.is_empty()).then(|| Wrap::new(line, base));
    }
    out.truncate(out.trim_end().len());
    out
}

/// Begins a line of the answer: an item of a list, which the CLI shows one column further right, or any other.
fn start_line(out: &mut Writer, line: &ProseLine<'_>, base: usize) -> Wrap {
    let marker = if line.indent > base { list_marker(line.body()) } else { None };
    let (indent, hang) = match marker {
        Some(length) => (line.indent - base - 1, line.indent + length),
        None => (line.indent.saturating_sub(base), base),
    };
    out.line(indent, line.body());
    Wrap::new(line, hang)
}

/// How long the marker of a list item is, blank included.
fn list_marker(body: &str) -> Option<usize> {
    if body.starts_with(['-', '*', '+']) {
        return body.get(1..).filter(|rest| rest.is_empty() || rest.starts_with(' ')).map(|_| 2);
    }
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let rest = body.get(digits..)?.strip_prefix('.')?;
    (digits > 0 && (rest.is_empty() || rest.starts_with(' '))).then_some(digits + 2)
}

#[derive(Debug)]
struct Wrap {
    /// Where the continuation starts.
    hang: usize,
    end: usize,
    /// How long its last word is, over all rows that it takes.
    tail: usize,
}

impl Wrap {
    pub fn new(line: &ProseLine<'_>, hang: usize) -> Self {
        let mut wrap = Wrap { hang, end: 0, tail: 0 };
        wrap.advance(line);
        wrap
    }

    /// Whether `line` is where the CLI went on because the next word did not fit.
    pub fn continues(&self, line: &ProseLine<'_>, edge: Option<usize>) -> bool {
        edge.is_some_and(|edge| line.indent == self.hang && self.end + 1 + first_word(line.body()) > edge)
            && !is_drawing(line.body())
    }

    /// What stood between: nothing if a word longer than a row was cut, else a blank.
    pub fn glue(&mut self, line: &ProseLine<'_>, edge: Option<usize>) -> &'static str {
        let Some(edge) = edge else { return " " };
        let full = self.end == edge || (self.end + 1 == edge && starts_wide(line.body()));
        if full && self.tail + first_word(line.body()) > edge.saturating_sub(self.hang) {
            ""
        } else {
            self.tail = 0;
            " "
        }
    }

    /// Goes on to `line`, which was found to continue this one.
    pub fn advance(&mut self, line: &ProseLine<'_>) {
        let body = line.body();
        self.end = width(line.text);
        self.tail = match body.rsplit_once(' ') {
            Some((_, word)) => width(word),
            None => self.tail + width(body),
        };
    }
}

/// Whether a line starts with a line or a block of a drawing. Such rows belong below each other, not behind each other, and
/// their first "word" is often so long that it fits nowhere.
fn is_drawing(body: &str) -> bool {
    body.starts_with(|first: char| ('\u{2500}'..='\u{259f}').contains(&first))
}

/// Line numbers have at most this many digits.
const LINE_DIGITS: usize = 6;

/// A block of code: its lines are numbered from 1, right-aligned, one column inside the text. Where the CLI has just said
/// that it left out the beginning (`cut`), they start later.
fn listing(
    lines: &[ProseLine<'_>],
    base: usize,
    edge: Option<usize>,
    cut: bool,
) -> Option<(Vec<String>, usize)> {
    let first = lines.first()?;
    let (mut number, right) = line_number(first)?;
    if first.indent <= base || right > base + 1 + LINE_DIGITS || (number != 1 && !cut) {
        return None;
    }
    let mut code: Vec<String> = vec![first.text.get(right + 1..).unwrap_or_default().to_owned()];
    let mut wrap = Wrap::new(first, right + 1);
    let mut taken = 1;
    for line in lines.get(1..).unwrap_or_default() {
        if line.text.is_empty() || is_omission(line, base) {
            break;
        }
        if line_number(line).is_some_and(|next| next == (number + 1, right)) {
            number += 1;
            code.push(line.text.get(right + 1..).unwrap_or_default().to_owned());
            wrap = Wrap::new(line, right + 1);
        } else if line.indent > right {
            let inner = ProseLine { text: line.text, indent: right + 1 };
            let glue = wrap.glue(&inner, edge);
            if let Some(last) = code.last_mut() {
                last.push_str(glue);
                last.push_str(inner.body());
            }
            wrap.advance(&inner);
        } else {
            break;
        }
        taken += 1;
    }
    let digits = number.checked_ilog10()? as usize + 1;
    (right == base + 1 + digits).then_some((code, taken))
}

/// The number at the start of a row, and the column after it.
fn line_number(line: &ProseLine<'_>) -> Option<(u32, usize)> {
    let body = line.body();
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let rest = body.get(digits..)?;
    if !(1..=LINE_DIGITS).contains(&digits) || !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    Some((body.get(..digits)?.parse().ok()?, line.indent + digits))
}

/// Whether the CLI says here that it shows less than there is, as it does while code is still coming.
fn is_omission(line: &ProseLine<'_>, base: usize) -> bool {
    let body = line.body();
    line.indent > base
        && body.starts_with("... ")
        && body.ends_with(" ...")
        && (body.contains(" hidden")
            || body == "... generating more ..."
            || body == "... code is being written ...")
}

/// Collects lines; blank lines stand only between others, and never two in a row.
#[derive(Debug, Default)]
struct Writer {
    out: String,
    gap: bool,
}

impl Writer {
    fn blank(&mut self) {
        self.gap = true;
    }

    fn line(&mut self, indent: usize, text: &str) {
        if !self.out.is_empty() {
            self.out.push_str(if self.gap { "\n\n" } else { "\n" });
        }
        self.gap = false;
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.out.push_str(text);
    }

    fn join(&mut self, glue: &str, text: &str) {
        self.out.push_str(glue);
        self.out.push_str(text);
    }

    /// Lines as they are, set off from what is around them.
    fn block(&mut self, lines: &[String]) {
        self.blank();
        for (index, line) in lines.iter().enumerate() {
            if index == 0 {
                self.line(0, line);
            } else {
                self.out.push('\n');
                self.out.push_str(line);
            }
        }
        self.blank();
    }

    fn finish(self) -> String {
        self.out
    }
}

/// The table that begins in the first of `lines`, as Markdown, and how many lines it takes.
///
/// The CLI draws tables with `┌┬┐`, one rule under the head and none between rows, and wraps cells when the table is wider
/// than the terminal. So one row of the table may take several rows of the screen, and nothing marks where the next one
/// begins. It is found by the rule of wrapping: a row of the screen continues the one above if in every cell the next
/// word would not have fitted. If the table that results would have fitted without any wrapping, nothing was wrapped.
pub(super) fn table(lines: &[ProseLine<'_>], edge: Option<usize>) -> Option<(Vec<String>, usize)> {
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

/// Joins screen rows whose cells all continue those of the row above. A row with text in every cell is taken for the next row of the
/// table, unless the row above had hardly any room left.
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
