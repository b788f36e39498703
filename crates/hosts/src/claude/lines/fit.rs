//! Text that fits into one line: the Python SDK gives up on a line of more than 1 MiB.

use std::borrow::Cow;

use alhena_wire::display::{escaped_len, is_unsafe};

/// So much of a line may be one text, as JSON.
const ROOM: usize = 900_000;

/// How many bytes a character has in JSON.
fn written(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        // As an escape; those beyond 7 bit may be written as such by whoever guards a terminal.
        letter if is_unsafe(letter) => escaped_len(letter),
        letter => letter.len_utf8(),
    }
}

/// The beginning that fits, and the rest.
fn split(text: &str) -> (&str, &str) {
    let mut size = 0;
    let end = text.char_indices().find_map(|(at, letter)| {
        size += written(letter);
        (size > ROOM).then_some(at)
    });
    end.and_then(|end| text.split_at_checked(end)).unwrap_or((text, ""))
}

/// All of a text, in pieces that fit.
pub fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = split(text);
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// As much of a text as fits, with a note where something is missing.
pub fn cut(text: &str) -> Cow<'_, str> {
    match split(text) {
        (all, "") => all.into(),
        (piece, rest) => format!("{piece}\n[{} more bytes were left out]", rest.len()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_for_a_line_is_cut_and_says_so() {
        let long = "\u{1}".repeat(1 << 20);
        let cut = serde_json::to_string(&cut(&long)).unwrap();
        assert!(cut.len() < 1 << 20, "{}", cut.len());
        assert!(cut.ends_with("more bytes were left out]\""));
        assert_eq!(super::cut("short"), "short");
    }

    #[test]
    fn nothing_is_lost_in_pieces() {
        let long = "é\"".repeat(1 << 20);
        assert!(pieces(&long).count() > 3);
        assert_eq!(pieces(&long).collect::<String>(), long);
        assert_eq!(pieces("").count(), 0);
    }
}
