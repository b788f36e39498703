//! A capture as rows: escapes taken out, the right edge trimmed, widths in terminal columns.
//!
//! Gemini CLI 0.61.0 draws everything that is its own at column 0 or 1 (prompts, rules, boxes, spinners) and all text of
//! the model at column 2 or beyond. So the indentation of a row says more than its words do, and every decision in
//! `screen` starts from it: a model can write any word, but not into the first two columns.
//!
//! Rows are made when they are looked at: to know the status of a long scrollback only its end has to be read.

use std::borrow::Cow;
use std::cell::OnceCell;

use memchr::{memchr, memchr_iter, memrchr};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The text without escapes and without trailing blanks.
    pub text: Cow<'a, str>,
    /// How many blanks it starts with.
    pub indent: usize,
}

impl<'a> Row<'a> {
    fn new(text: Cow<'a, str>) -> Self {
        let end = text.trim_end_matches([' ', '\r', '\t', '\u{a0}']).len();
        let text = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or(text)),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        };
        let indent = text.bytes().take_while(|byte| *byte == b' ').count();
        Row { text, indent }
    }

    pub fn body(&self) -> &str {
        self.text.get(self.indent..).unwrap_or_default()
    }

    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// The first character after the indentation.
    pub fn lead(&self) -> Option<char> {
        self.body().chars().next()
    }

    /// Whether the row begins, at column 0, with this glyph and a blank (or nothing) after it.
    pub fn marked(&self, glyph: char) -> bool {
        self.indent == 0
            && self.text.strip_prefix(glyph).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }

    /// The column after the last character.
    pub fn end(&self) -> usize {
        width(&self.text)
    }
}

pub(super) struct Rows<'a> {
    raw: Vec<&'a str>,
    seen: Vec<OnceCell<Row<'a>>>,
    /// The column of the scroll bar, which the alternate buffer draws over the right edge of the text.
    bar: OnceCell<Option<usize>>,
    /// How often rows were looked at: the measure of work in the tests.
    #[cfg(test)]
    pub visits: std::cell::Cell<usize>,
}

impl<'a> Rows<'a> {
    pub fn new(capture: &'a str) -> Self {
        let mut raw = Vec::with_capacity(64);
        let mut start = 0;
        for end in memchr_iter(b'\n', capture.as_bytes()) {
            raw.push(capture.get(start..end).unwrap_or_default());
            start = end + 1;
        }
        raw.push(capture.get(start..).unwrap_or_default());
        let seen = std::iter::repeat_with(OnceCell::new).take(raw.len()).collect();
        Rows {
            raw,
            seen,
            bar: OnceCell::new(),
            #[cfg(test)]
            visits: std::cell::Cell::new(0),
        }
    }

    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// The row at `index`; a blank one beyond the end.
    pub fn row(&self, index: usize) -> &Row<'a> {
        const BLANK: &Row<'static> = &Row { text: Cow::Borrowed(""), indent: 0 };
        #[cfg(test)]
        self.visits.set(self.visits.get() + 1);
        let bar = self.scroll_bar();
        match (self.seen.get(index), self.raw.get(index)) {
            (Some(cell), Some(raw)) => cell.get_or_init(|| without_bar(Row::new(plain(raw)), bar)),
            _ => BLANK,
        }
    }

    pub fn scroll_bar(&self) -> Option<usize> {
        *self.bar.get_or_init(|| find_bar(&self.raw))
    }
}

/// How far from the end a scroll bar is looked for: no terminal is taller.
const SCREEN: usize = 120;

/// Finds the scroll bar: block characters in one column, each after a blank or the edge of a box. One alone is a
/// coincidence, unless it stands where the rule above the prompt ends.
fn find_bar(raw: &[&str]) -> Option<usize> {
    let mut column = None;
    let mut count = 0;
    for raw in raw.iter().rev().take(SCREEN) {
        if !may_end_with_bar(raw) {
            continue;
        }
        let row = Row::new(plain(raw));
        if !ends_with_bar(&row.text) {
            continue;
        }
        let end = row.end();
        match column {
            None => (column, count) = (Some(end), 1),
            Some(seen) if seen == end => count += 1,
            Some(_) => return None,
        }
    }
    let rule = || {
        let mut rows = raw.iter().rev().take(SCREEN).map(|raw| Row::new(plain(raw)));
        rows.find(super::chrome::is_rule).map(|row| row.end())
    };
    column.filter(|column| count >= 2 || rule() == Some(*column))
}

/// A cheap look at the end of a raw line: `▀`, `▄` and `█` share their first two bytes.
fn may_end_with_bar(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    match memrchr(0xe2, bytes).and_then(|at| bytes.get(at..)) {
        Some([_, 0x96, 0x80 | 0x84 | 0x88, rest @ ..]) => {
            rest.is_empty() || matches!(rest, [b' ' | 0x1b | b'\r', ..])
        }
        _ => false,
    }
}

fn ends_with_bar(text: &str) -> bool {
    let mut end = text.chars().rev();
    matches!(end.next(), Some('█' | '▄' | '▀')) && matches!(end.next(), Some(' ' | '│' | '╮' | '╯' | '─'))
}

fn without_bar(row: Row<'_>, bar: Option<usize>) -> Row<'_> {
    let Some(column) = bar else { return row };
    if !ends_with_bar(&row.text) || row.end() != column {
        return row;
    }
    let mut text = row.text.into_owned();
    text.pop();
    Row::new(Cow::Owned(text))
}

/// The text of a line without escape sequences and control characters.
fn plain(raw: &str) -> Cow<'_, str> {
    let control = |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\r') || byte == 0x7f;
    if memchr(0x1b, raw.as_bytes()).is_none() && !raw.bytes().any(control) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(next) = chars.next() {
        match next {
            '\x1b' => skip_escape(&mut chars),
            '\t' | '\r' => out.push(next),
            _ if next.is_control() => {}
            _ => out.push(next),
        }
    }
    Cow::Owned(out)
}

/// Leaves `chars` after the escape sequence whose ESC was just read.
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => {
            let _ = chars.find(|next| ('\x40'..='\x7e').contains(next));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(next) = chars.next() {
                if next == '\x07' {
                    break;
                }
                if next == '\x1b' {
                    chars.next();
                    break;
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | ' ' | '%') => {
            chars.next();
        }
        _ => {}
    }
}

/// How many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

pub(super) fn first_word(text: &str) -> usize {
    width(text.split(' ').next().unwrap_or_default())
}

/// Whether a text starts with a character that takes two columns.
pub(super) fn starts_wide(text: &str) -> bool {
    text.chars().next().and_then(UnicodeWidthChar::width) == Some(2)
}
