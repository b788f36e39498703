//! Alhena's own control sequences, told apart from those of others.
//!
//! Text is put together long before it is printed, ours and foreign in one string. So ours stand in it as marks that only
//! this process knows, and become what a terminal obeys at the last moment, in the guard. A sequence that came from
//! elsewhere is then never taken for ours, not even a colour.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// What a mark begins with. It needs no character that anybody writes.
pub const SIGN: char = '\u{10}';

/// What nobody else can know.
static SECRET: LazyLock<String> =
    LazyLock::new(|| format!("{SIGN}{:016x}", RandomState::new().build_hasher().finish()));

/// A control sequence of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Plain,
    Bold,
    Dim,
    Underlined,
    Red,
    Green,
    Yellow,
    Cyan,
    /// Back to the start of the line, and nothing left of it.
    ClearLine,
    /// To the line above.
    Up,
}

/// The letter of each in a mark, and what a terminal is sent.
const TABLE: &[(Own, char, &str)] = &[
    (Own::Plain, 'p', "\x1b[0m"),
    (Own::Bold, 'b', "\x1b[1m"),
    (Own::Dim, 'd', "\x1b[2m"),
    (Own::Underlined, 'u', "\x1b[4m"),
    (Own::Red, 'r', "\x1b[31m"),
    (Own::Green, 'g', "\x1b[32m"),
    (Own::Yellow, 'y', "\x1b[33m"),
    (Own::Cyan, 'c', "\x1b[36m"),
    (Own::ClearLine, 'k', "\r\x1b[K"),
    (Own::Up, 'a', "\x1b[A"),
];

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = TABLE.iter().find(|(own, ..)| own == self).map_or('p', |(_, letter, _)| *letter);
        write!(f, "{}{letter}", *SECRET)
    }
}

/// What stands at the start of a text that begins with the sign.
#[derive(Debug, PartialEq, Eq)]
pub enum Mark {
    /// One of ours: how long the mark is, and what it means.
    Ours(usize, &'static str),
    /// What there is of it could become one of ours.
    Unfinished,
    Foreign,
}

/// Looks for a mark at the start.
pub fn mark(text: &str) -> Mark {
    let Some(rest) = text.strip_prefix(SECRET.as_str()) else {
        return if SECRET.starts_with(text) { Mark::Unfinished } else { Mark::Foreign };
    };
    let Some(found) = rest.chars().next() else { return Mark::Unfinished };
    match TABLE.iter().find(|(_, letter, _)| *letter == found) {
        Some((_, letter, sequence)) => Mark::Ours(SECRET.len() + letter.len_utf8(), sequence),
        None => Mark::Foreign,
    }
}

/// Text that a program made with plain SGR sequences of these kinds, with marks in their place. Only for text without
/// anything foreign in it.
pub fn adopt(text: &str) -> String {
    let is_colour = |own: &Own| !matches!(own, Own::ClearLine | Own::Up);
    let colours = TABLE.iter().filter(|(own, ..)| is_colour(own));
    colours.fold(text.to_owned(), |text, (own, _, sequence)| text.replace(sequence, &own.to_string()))
}
