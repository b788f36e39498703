//! How things look on a terminal.

use std::fmt;

use alhena_model::Setting;
use alhena_sys::{handles, terminals};
use alhena_wire::display::is_unsafe_in_text;
use unicode_width::UnicodeWidthChar;

use crate::output::{Own, Stream};

/// Whether colours are wanted: on a terminal, and not with `NO_COLOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    On,
    Off,
}

impl Colours {
    pub fn of(stream: Stream) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && !refused && !dumb { Colours::On } else { Colours::Off }
    }

    pub fn paint<T: fmt::Display>(self, paint: Paint, text: T) -> Painted<T> {
        Painted { colours: self, paint, text }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

pub struct Painted<T> {
    colours: Colours,
    paint: Paint,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = match self.paint {
            Paint::Dim => Own::Dim,
            Paint::Red => Own::Red,
            Paint::Green => Own::Green,
            Paint::Yellow => Own::Yellow,
            Paint::Cyan => Own::Cyan,
        };
        match self.colours {
            Colours::On => write!(f, "{begin}{}{}", self.text, Own::Plain),
            Colours::Off => self.text.fmt(f),
        }
    }
}

/// The option of the command line that sets this.
pub fn flag(setting: Setting) -> String {
    match setting {
        Setting::Args => "--".to_owned(),
        _ => dashed(setting.name()),
    }
}

/// The option with the name of this field.
fn dashed(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// Settings of terminals, which are no options of a run.
const OF_TERMINALS: &[&str] = &["force", "keep", "mcp_scope", "profile_by", "tmux", "tmux_conf"];

/// How a parser begins to name fields of a file, which are no settings.
const FIELDS_OF_FILES: &[&str] =
    &["unknown field `", "missing field `", "duplicate field `", "unknown variant `"];

/// Alhena's own words with options in place of the settings that they name: `max_cost` in backticks becomes --max-cost.
///
/// Not for what the model, the CLI, the API or a tool says.
pub fn with_flags(text: &str) -> String {
    let end = FIELDS_OF_FILES.iter().filter_map(|words| text.find(words)).min().unwrap_or(text.len());
    let (own, quoted) = text.split_at_checked(end).unwrap_or((text, ""));
    let renamed = |text: String, setting: &Setting| text.replace(&setting.to_string(), &flag(*setting));
    let own = Setting::ALL.iter().fold(own.to_owned(), renamed);
    let renamed = |text: String, name: &&str| text.replace(&format!("`{name}`"), &dashed(name));
    OF_TERMINALS.iter().fold(own, renamed) + quoted
}

/// Foreign text without escape sequences and characters that are unsafe to show.
///
/// It keeps its state between pieces, because a sequence may come in two of them.
#[derive(Default)]
pub struct Harmless {
    inside: Inside,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence: to its final byte.
    Control,
    /// In a string (title, hyperlink): to BEL or ESC \.
    String,
    /// In a string, after ESC.
    StringEscape,
}

impl Harmless {
    pub fn clean(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.inside = match (self.inside, c) {
                (Inside::Text, '\u{1b}') => Inside::Escape,
                (Inside::Text, '\u{9b}') => Inside::Control,
                (Inside::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => Inside::String,
                (Inside::Text, c) => {
                    if !is_unsafe_in_text(c) {
                        out.push(c);
                    }
                    Inside::Text
                }
                (Inside::Escape, '[') => Inside::Control,
                (Inside::Escape, ']' | 'P' | 'X' | '^' | '_') => Inside::String,
                // Intermediate bytes, as in the choice of a character set.
                (Inside::Escape, ' '..='/') => Inside::Escape,
                (Inside::Escape, _) => Inside::Text,
                (Inside::Control, '@'..='~') => Inside::Text,
                (Inside::Control, '\n') => {
                    // Nobody writes a sequence over two lines; better one odd character than a lost answer.
                    out.push('\n');
                    Inside::Text
                }
                (Inside::Control, _) => Inside::Control,
                (Inside::String, '\u{7}' | '\u{9c}') => Inside::Text,
                (Inside::String, '\u{1b}') => Inside::StringEscape,
                (Inside::String, '\n') => {
                    out.push('\n');
                    Inside::Text
                }
                (Inside::String, _) => Inside::String,
                (Inside::StringEscape, _) => Inside::Text,
            };
        }
        out
    }
}

/// One line of foreign text, cut to `width` characters.
pub fn one_line(text: &str, width: usize) -> String {
    let plain = match text.get(..=width) {
        // Whatever follows is not shown.
        Some(start) => text.get(..width).filter(|_| is_one_line(start)).map(|shown| [shown, "…"].concat()),
        None => is_one_line(text).then(|| text.to_owned()),
    };
    if let Some(line) = plain {
        return line;
    }
    let clean = Harmless::default().clean(text);
    let line: String = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, width)
}

/// The first `width` characters, with a mark where there are more.
pub fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
    }
}

/// Whether a text is plain already, as nearly all are.
fn is_one_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Without a way out in the middle this is done for many bytes at once.
    let plain = bytes.iter().fold(true, |plain, byte| plain & (b' '..=b'~').contains(byte));
    let two_spaces = bytes.windows(2).fold(false, |found, two| found | (two == b"  "));
    plain && !two_spaces && !bytes.starts_with(b" ") && !bytes.ends_with(b" ")
}

/// How wide the terminal is now that stderr is.
pub fn columns() -> usize {
    terminals::columns(handles::stderr()).unwrap_or(80)
}

/// As much of a text as fits: what wraps cannot be taken off the screen again.
pub fn fitting(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    text.chars().take_while(fits).collect()
}

/// `1.2 s`, `3 min 4 s`.
pub fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

/// `1,234,567`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `$0.0123`; a sum that rounds to nothing is not nothing.
pub fn dollars(amount: f64) -> String {
    match amount > 0.0 && amount < 0.00005 {
        true => "<$0.0001".to_owned(),
        false => format!("${amount:.4}"),
    }
}

/// `12s`, `5m`, `3h`, `2d`, `8w`.
pub fn age(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..1_209_600 => format!("{}d", seconds / 86_400),
        _ => format!("{}w", seconds / 604_800),
    }
}

/// `950`, `1.2k`, `3.4M`.
pub fn short(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Harmless::default().clean(text)
    }

    #[test]
    fn settings_are_shown_as_options_and_nothing_else_is() {
        let text = "`max_cost` and `trust`=settings; `alhena detect`, `no_such` and max_cost stay";
        let expected = "--max-cost and --trust=settings; `alhena detect`, `no_such` and max_cost stay";
        assert_eq!(with_flags(text), expected);
        let of_file = "x.toml:1: unknown field `alow`, expected one of `allow`, `ask`";
        assert_eq!(with_flags(&format!("`rules`: {of_file}")), format!("--rules: {of_file}"));
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(clean("a\x1b[31mred\x1b[0mb"), "aredb");
        assert_eq!(clean("\x1b]0;title\x07text"), "text");
        assert_eq!(clean("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link");
        assert_eq!(clean("\x1bP1;2|dcs\x1b\\x"), "x");
        assert_eq!(clean("bell\x07 back\x08 return\r nul\0"), "bell back return nul");
        assert_eq!(clean("c1 \u{9b}31m and \u{9d}0;t\u{9c}."), "c1  and .");
        assert_eq!(clean("\u{202e}reversed\u{2028} and\u{200b} hidden"), "reversed and hidden");
        assert_eq!(clean("\x1b(Bset"), "set");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let text = "Zeilen\n\tmit Tab, 日本語 und 🌍 auch";
        assert_eq!(clean(text), text);
    }

    #[test]
    fn a_sequence_in_two_pieces_is_still_one() {
        let mut harmless = Harmless::default();
        assert_eq!(harmless.clean("a\x1b"), "a");
        assert_eq!(harmless.clean("[3"), "");
        assert_eq!(harmless.clean("1mb"), "b");
    }

    #[test]
    fn an_unfinished_sequence_costs_at_most_its_line() {
        assert_eq!(clean("\x1b]0;never ended\nnext"), "\nnext");
        assert_eq!(clean("\x1b[12\nnext"), "\nnext");
    }

    #[test]
    fn what_is_cut_to_fit_never_takes_more_than_its_columns() {
        assert_eq!(fitting("$ sleep 4", 4), "$ sl");
        assert_eq!(fitting("日本語", 5), "日本");
        assert_eq!(fitting("$ sleep", 0), "");
    }

    #[test]
    fn figures_are_easy_to_read() {
        assert_eq!([number(0), number(999), number(1234567)], ["0", "999", "1,234,567"]);
        assert_eq!([duration(7), duration(1234), duration(184_000)], ["7 ms", "1.2 s", "3 min 4 s"]);
        assert_eq!(one_line("a\n  b\x1b[1m c", 3), "a b…");
        for (text, width, line) in [
            ("abcdef", 3, "abc…"),
            ("abc", 3, "abc"),
            ("abc", 0, "…"),
            ("", 0, ""),
            (" a  b ", 9, "a b"),
            ("a b", 2, "a …"),
        ] {
            assert_eq!(one_line(text, width), line);
            // By the long way.
            assert_eq!(one_line(&text.replace('b', "\u{1b}[1mb"), width), line);
        }
    }

    #[test]
    fn ages_and_counts_are_short() {
        let ages: Vec<String> = [0, 59_999, 60_000, 7_200_000, 200_000_000, 90_000_000_000].map(age).to_vec();
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "2d", "148w"]);
        assert_eq!([short(0), short(999), short(1250), short(3_450_000)], ["0", "999", "1.2k", "3.4M"]);
    }
}
