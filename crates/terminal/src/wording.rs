//! What is typed so that a message stays text.
//!
//! Gemini CLI 0.61.0 runs a text whose first word is `/` and the name of a command, on whatever line the rest is, adds the
//! files that `@path` names anywhere, and takes a paste of nothing but paths for files that were dropped on it. It trims what
//! it sends and strips the usual invisible marks. So a message gets as little as keeps it text, and whoever sends it is told.

/// Stands before a text that would be a command: a word joiner, which the CLI leaves alone and nobody sees, and a blank, so
/// that no model takes it for a part of a path.
const MARK: &str = "\u{2060} ";
/// A paste that begins with a letter and its removal is no list of paths.
const NOT_DROPPED: &str = "x\u{7f}";
/// A longer paste is kept as it is, behind a placeholder.
const SHORT_LINES: usize = 5;
const SHORT_UNITS: usize = 500;

/// What the CLI does with a text that begins like a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    /// It knows its commands: a path is none.
    Runs,
    /// It does not know them yet, or takes none now: everything that looks like one is refused.
    Refuses,
}

/// What `@path` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// What it says: text.
    Text,
    /// A file that the CLI adds, as for somebody who types it.
    Files,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wording {
    pub(crate) text: String,
    pub(crate) removed: usize,
    /// Whether it got the mark in front.
    pub(crate) marked: bool,
    /// How many `@` got a backslash in front.
    pub(crate) escaped: usize,
}

impl Wording {
    pub(crate) fn of(text: &str, slash: Slash, at: At) -> Self {
        let (text, removed) = cleaned(text);
        // The CLI trims it anyway; what is left out at the edges is not worth a word.
        let text = text.trim();
        let (text, escaped) = match at {
            At::Text => escaped(text),
            At::Files => (text.to_owned(), 0),
        };
        let marked = is_command(&text, slash);
        let text = if marked { format!("{MARK}{text}") } else { text };
        Self { text, removed, marked, escaped }
    }

    /// A command, which may be what it looks like.
    pub(crate) fn as_it_is(text: &str) -> Self {
        let (text, removed) = cleaned(text);
        Self { text: text.trim_end().to_owned(), removed, marked: false, escaped: 0 }
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        notices(self.removed, self.marked, self.escaped)
    }

    /// What is pasted, so that exactly the text is sent.
    pub(crate) fn paste(&self) -> String {
        let mut paste = String::with_capacity(self.text.len() + 4);
        if is_like_paths(&self.text) {
            paste.push_str(NOT_DROPPED);
        }
        paste.push_str(&self.text);
        // Enter after a backslash is a newline, and in a word with `@` or a command it takes what the CLI suggests, but not on
        // another line. The line end is trimmed off again.
        let last = self.text.lines().last().unwrap_or_default();
        if last.ends_with('\\') || last.contains('@') || last.starts_with('/') {
            paste.push('\n');
        }
        paste
    }
}

pub(crate) fn notices(removed: usize, marked: bool, escaped: usize) -> Vec<String> {
    let mut notices = Vec::new();
    if removed > 0 {
        notices.push(format!("{removed} control characters were left out."));
    }
    if marked {
        notices.push("An invisible mark stands before it, so that Gemini CLI takes it for text.".to_owned());
    }
    if escaped > 0 {
        notices.push(format!("{escaped} @ got a backslash in front, so that Gemini CLI adds no files."));
    }
    notices
}

/// A text without what a terminal would obey: escapes, which could end the paste, and other control characters; and without
/// the marks that the CLI strips. Line ends become one kind, because the CLI takes CRLF for two.
pub(crate) fn cleaned(text: &str) -> (String, usize) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let before = text.chars().count();
    let kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut text: String = text.chars().filter(kept).collect();
    if text.lines().count() <= SHORT_LINES && text.encode_utf16().count() <= SHORT_UNITS {
        text.retain(|c| !is_stripped(c));
    }
    let removed = before - text.chars().count();
    (text, removed)
}

/// What 0.61.0 strips from a short paste, besides control characters.
fn is_stripped(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn is_command(text: &str, slash: Slash) -> bool {
    let Some(rest) = text.strip_prefix('/').filter(|rest| !rest.starts_with(['/', '*'])) else {
        return false;
    };
    // No command has a slash in its name.
    let name = rest.split_whitespace().next().unwrap_or_default();
    slash == Slash::Refuses || !name.contains('/')
}

/// Puts a backslash before each `@` that could name something.
fn escaped(text: &str) -> (String, usize) {
    let mut done = String::with_capacity(text.len());
    let mut count = 0;
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let names = rest.peek().is_some_and(|next| !" \t\n\r,;!?()[]{}".contains(*next));
        if c == '@' && before != Some('\\') && names {
            done.push('\\');
            count += 1;
        }
        done.push(c);
        before = Some(c);
    }
    (done, count)
}

/// Whether the CLI could take all of it for paths, perhaps quoted.
fn is_like_paths(text: &str) -> bool {
    text.starts_with(['/', '~', '.', '\\', '\'', '"']) || text.chars().nth(1) == Some(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Wording {
        Wording::of(text, Slash::Runs, At::Text)
    }

    #[test]
    fn nothing_in_a_text_can_end_the_paste_or_move_the_cursor() {
        assert_eq!(cleaned("a\x1b[201~rm\x07\u{9b}x\u{7f}"), ("a[201~rmx".to_owned(), 4));
        assert_eq!(cleaned("a\r\nb\rc\n\n"), ("a\nb\nc\n\n".to_owned(), 0));
        assert_eq!(cleaned("tab\there"), ("tab\there".to_owned(), 0));
        assert_eq!(cleaned("\u{feff}/quit\u{200b}"), ("/quit".to_owned(), 2));
        let long = "\u{200e}line\n".repeat(6);
        assert_eq!(cleaned(&long), (long.clone(), 0));
    }

    #[test]
    fn what_would_be_a_command_is_marked() {
        for command in ["/quit", "/about it", "/ quit", "  /quit", "\u{feff}/quit", "/clear\nmore", "/"] {
            assert!(text(command).marked, "{command}");
        }
        for other in ["/etc/hosts", "//", "/* */", "quit", "!ls", "?", "say /quit", "// /quit"] {
            assert!(!text(other).marked, "{other}");
        }
        assert_eq!(text(" /quit\n").text, "\u{2060} /quit");
        assert!(Wording::of("/etc/hosts", Slash::Refuses, At::Text).marked);
    }

    #[test]
    fn what_would_add_a_file_is_escaped() {
        for (given, typed, count) in [
            ("@a", "\\@a", 1),
            ("x@a.b @", "x\\@a.b @", 1),
            ("\\@a", "\\@a", 0),
            ("@@a", "\\@\\@a", 2),
            ("@ (@) @, @.", "@ (@) @, \\@.", 1),
        ] {
            assert_eq!((text(given).text.as_str(), text(given).escaped), (typed, count), "{given}");
        }
        assert_eq!(Wording::of("@a", Slash::Runs, At::Files).text, "@a");
    }

    #[test]
    fn a_paste_ends_where_enter_sends_it_and_is_no_file_that_was_dropped() {
        assert_eq!(text("path\\").paste(), "path\\\n");
        assert_eq!(text("one @two").paste(), "one \\@two\n");
        assert_eq!(text("/etc/hosts").paste(), "x\u{7f}/etc/hosts\n");
        assert_eq!(text("'~/a b'").paste(), "x\u{7f}'~/a b'");
        assert_eq!(text("plain").paste(), "plain");
        assert_eq!(Wording::as_it_is("/stats ").paste(), "x\u{7f}/stats\n");
    }
}
