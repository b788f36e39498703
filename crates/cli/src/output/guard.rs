//! Lets text through and shows what a terminal would obey.

use std::fmt::Write as _;
use std::io::{self, Write};

use alhena_wire::display::{is_unsafe_in_text, push_escaped};

use super::own::{self, Mark};

/// A writer that shows characters that are unsafe to show as `\u001b`: the form that JSON has for them too. A byte that is no
/// text is shown as `\x9b`.
pub struct Guard<W> {
    out: W,
    duty: Duty,
    /// The start of a character or of a mark: what it is, the next bytes say.
    held: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Duty {
    Watching,
    /// Everything passes as it is.
    Off,
}

/// Whether more is to come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Follows,
    IsAll,
}

impl<W: Write> Guard<W> {
    /// A guard that watches.
    pub fn new(out: W) -> Self {
        Self { out, duty: Duty::Watching, held: Vec::new() }
    }

    /// A guard that lets everything through.
    pub fn open(out: W) -> Self {
        Self { out, duty: Duty::Off, held: Vec::new() }
    }

    fn pass(&mut self, bytes: &[u8], rest: Rest) -> io::Result<()> {
        if self.held.is_empty() && bytes.iter().all(|byte| is_plain(*byte)) {
            return self.out.write_all(bytes);
        }
        self.held.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.held);
        let mut shown = String::with_capacity(all.len());
        let mut left = all.len();
        for chunk in all.utf8_chunks() {
            left -= chunk.valid().len() + chunk.invalid().len();
            let unfinished = show(chunk.valid(), &mut shown, rest == Rest::Follows && left == 0);
            self.held.extend_from_slice(unfinished.as_bytes());
            let cut_short =
                std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if left == 0 && cut_short && rest == Rest::Follows {
                self.held.extend_from_slice(chunk.invalid());
                continue;
            }
            for byte in chunk.invalid() {
                let _infallible = write!(shown, "\\x{byte:02x}");
            }
        }
        self.out.write_all(shown.as_bytes())
    }
}

impl<W: Write> Write for Guard<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.duty {
            Duty::Off => self.out.write(bytes),
            Duty::Watching => self.pass(bytes, Rest::Follows).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.held.is_empty() {
            self.pass(b"", Rest::IsAll)?;
        }
        self.out.flush()
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t')
}

/// Appends the text as it may be seen, and gives back what is unfinished at its end.
fn show<'t>(text: &'t str, shown: &mut String, more: bool) -> &'t str {
    let mut rest = text;
    while let Some(at) = rest.find(is_unsafe_in_text) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let mut chars = from.chars();
        let Some(c) = chars.next() else { break };
        rest = chars.as_str();
        match c {
            own::SIGN => match own::mark(from) {
                Mark::Ours(length, sequence) => {
                    shown.push_str(sequence);
                    rest = from.get(length..).unwrap_or("");
                }
                Mark::Unfinished if more => return from,
                Mark::Unfinished | Mark::Foreign => push_escaped(c, shown),
            },
            // A line end as Windows has it.
            '\r' if rest.starts_with('\n') => {}
            '\r' if rest.is_empty() && more => return from,
            c => push_escaped(c, shown),
        }
    }
    shown.push_str(rest);
    ""
}

#[cfg(test)]
mod tests {
    use super::super::own::Own;
    use super::*;

    /// What comes out, whatever pieces it is written in.
    fn shown(bytes: &[u8]) -> String {
        let written = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut guard = Guard::new(Vec::new());
            pieces.for_each(|piece| guard.write_all(piece).unwrap());
            guard.flush().unwrap();
            String::from_utf8(guard.out).unwrap()
        };
        let whole = written(&mut std::iter::once(bytes));
        for size in 1..4 {
            assert_eq!(written(&mut bytes.chunks(size)), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        assert_eq!(
            shown(b"\x1b]52;c;cm0=\x07 \x7f \x08 a\rb \0"),
            r"\u001b]52;c;cm0=\u0007 \u007f \u0008 a\u000db \u0000"
        );
        assert_eq!(shown("c1 \u{9b}31m \u{9d}0;t\u{9c}".as_bytes()), r"c1 \u009b31m \u009d0;t\u009c");
        assert_eq!(shown("\u{202e}txt.exe\u{2066}".as_bytes()), r"\u202etxt.exe\u2066");
        assert_eq!(shown("a\u{2028}b\u{200b}\u{e0041}".as_bytes()), r"a\u2028b\u200b\udb40\udc41");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_too() {
        assert_eq!(shown(b"a\x9b31mb \xff\xfe \xe2\x82"), r"a\x9b31mb \xff\xfe \xe2\x82");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        let text = "Zeilen\n\tmit Tab, 日本語 und 🌍 auch";
        assert_eq!(shown(text.as_bytes()), text);
        assert_eq!(shown(b"one\r\ntwo\r\n"), "one\ntwo\n");
    }

    #[test]
    fn our_own_colours_work_and_the_same_from_elsewhere_do_not() {
        let text = format!("{}ours{} \x1b[31mtheirs\x1b[0m {}", Own::Red, Own::Plain, Own::ClearLine);
        assert_eq!(shown(text.as_bytes()), "\x1b[31mours\x1b[0m \\u001b[31mtheirs\\u001b[0m \r\x1b[K");
        assert_eq!(shown(b"\x100123456789abcdefr"), r"\u00100123456789abcdefr");
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let value = serde_json::json!({ "a": "\u{9b}31m \u{7f} \u{202e} \u{e0041} \x1b é" });
        let text = shown(value.to_string().as_bytes());
        assert!(text.chars().all(|c| !is_unsafe_in_text(c)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
