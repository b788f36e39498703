//! Any text can be on a screen. These tests feed noise, and pieces of real screens in any order, and count how often rows
//! are looked at.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::rows::{Rows, width};
use super::{Capture, Status};

/// Pieces that screens are made of, with the signs that steer the reading.
const PIECES: &[&str] = &[
    "",
    "▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄",
    "▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀",
    "user@host$ ▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀",
    "────────────────────",
    "── Shortcuts (for more, see /help) ──",
    " > a query",
    "> a query",
    "   more of it",
    " >   Type your message or @path/to/file",
    ">    Type your message or @path/to/file",
    " *   Type your message or @path/to/file",
    "✦ an answer",
    "✦",
    "  text of the answer",
    "      deep text",
    "text at the left",
    "   1 code",
    "   2 code",
    "   12 code",
    "    1 code",
    "     wrapped code",
    "   ... first 3 lines hidden (Ctrl+O to show) ...",
    "   - item",
    "   1. item",
    "  ┌───┬───┐",
    "  │ a │ b │",
    "  ├───┼───┤",
    "  │   │ b │",
    "  └───┴───┘",
    "  ✓  ReadFile  a.txt",
    "  -  Edit  a.txt → Rejected",
    "╭──────────────────╮",
    "│ ✓  ReadFile a    │",
    "│ ? Shell  ls      │",
    "│ ● 1. Allow once  │",
    "│   2. No          │",
    "╰──────────────────╯",
    " ╭────────────────╮",
    " │ Do you trust   │",
    " ╰────────────────╯",
    "ℹ Request cancelled.",
    "✕ [API Error: x]",
    " ⠋ Thinking... (esc to cancel, 3s)",
    "                                  ? for shortcuts",
    "  Queued (press ↑ to edit):",
    "    queued",
    " Shift+Tab to accept edits",
    " workspace (/directory)   sandbox   /model",
    "  Responding with gemini-3",
    "User:  hello",
    "Model:  hello",
    "(checked) 1. Yes",
    "Success: Shell ls",
    "responding Thinking... (esc to cancel, 1s)",
    "workspace (/directory)",
    "Tips for getting started:",
    " ▝▜▄     Gemini CLI v0.61.0",
    "user@host:~$ ",
    "Killed",
    "Error: no",
    "Press Ctrl+C again to exit.",
    "日本語のテキスト                █",
    "\x1b[38;2;1;2;3m✦ \x1b[39mcoloured\x1b[0m",
    "\x1b]8;;http://x\x07link\x1b]8;;\x07",
    "\x1b[",
    "\u{2800}",
];

fn read_everything(text: &str, title: Option<&str>) -> Status {
    let mut capture = Capture::new(text);
    capture.title = title;
    let reading = capture.read();
    assert_eq!(capture.status(), reading.status, "the fast way and the full one agree");
    let turns = capture.turns();
    if let Ok(answer) = capture.last_answer() {
        assert_eq!(
            Some(&answer),
            turns.last().map(|turn| &turn.answer),
            "the last answer is that of the last turn"
        );
    }
    let _ = capture.columns(20).alternate(true).turns();
    let _ = (capture.is_unanswered(), capture.has_started());
    reading.status
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..2000), title in proptest::option::of(".{0,20}")) {
        read_everything(&String::from_utf8_lossy(&bytes), title.as_deref());
    }

    #[test]
    fn any_characters_are_read_without_a_panic(text in "(\\PC|\n| |▀|│|✦|\u{1b}|\\[){0,400}") {
        read_everything(&text, None);
    }

    #[test]
    fn pieces_of_screens_in_any_order_are_read_without_a_panic(
        pieces in vec(select(PIECES), 0..80),
        title in select(&[None, Some("◇  Ready (x)"), Some("✦  Working… (x)"), Some("✋  Action Required (x)")][..]),
    ) {
        read_everything(&pieces.join("\n"), title);
    }

    #[test]
    fn work_grows_with_the_length_of_a_capture_and_not_faster(pieces in vec(select(PIECES), 1..60), times in 1_usize..40) {
        let text = vec![pieces.join("\n"); times].join("\n");
        let capture = Capture::new(&text);
        for read in [
            |capture: &Capture<'_>, rows: &Rows<'_>| drop(capture.reading_of(rows)),
            |capture: &Capture<'_>, rows: &Rows<'_>| drop(capture.turns_of(rows)),
        ] {
            let rows = Rows::new(&text);
            read(&capture, &rows);
            let visits = rows.visits.get();
            prop_assert!(visits <= 100 * rows.len() + 1000, "{visits} visits for {} rows", rows.len());
        }
    }
}

/// Inputs on which any part of the reading that is worse than linear would be felt.
#[test]
fn long_captures_of_one_kind_of_row_are_read() {
    for piece in PIECES {
        read_everything(&format!("{piece}\n").repeat(600), None);
        read_everything(&format!(" > q\n▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n{}", format!("{piece}\n").repeat(600)), None);
    }
    let numbers: String = (5..8_000).map(|line| format!("{line:>9} code\n")).collect();
    read_everything(&format!("✦ x\n   ... first 4 lines hidden ...\n{numbers}"), None);
    read_everything(&"x".repeat(300_000), None);
    read_everything(&format!("✦ {}", "word ".repeat(50_000)), None);
}

#[test]
fn escapes_of_every_kind_disappear() {
    let text = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc\x1b=d\x0e\x0f\x07e\x1b[38:2::1:2:3mf";
    assert_eq!(Rows::new(text).row(0).text, "red abcdef");
}

#[test]
fn widths_are_in_columns() {
    let widths: Vec<usize> = ["abc", "日本", "é", "🚀", "☁️", "👨‍👩‍👧"].into_iter().map(width).collect();
    assert_eq!(widths, [3, 4, 1, 2, 2, 2]);
}

#[test]
fn a_hint_below_the_question_of_an_approval_is_not_the_question() {
    let screen = concat!(
        "╭──────────────────────────────────────────────────────────────────────────────╮\n",
        "│ ? Shell  echo hi > f.txt                                                     │\n",
        "│ ╭──────────────────────────────────────────────────────────────────────────╮ │\n",
        "│ │ echo hi > f.txt                                                          │ │\n",
        "│ ╰──────────────────────────────────────────────────────────────────────────╯ │\n",
        "│ Allow execution of [Shell]?                                                  │\n",
        "│ Redirection detected. To auto-accept, press Shift+Tab                        │\n",
        "│                                                                              │\n",
        "│ ● 1. Allow once                                                              │\n",
        "│   2. Allow for this session                                                  │\n",
        "│   3. No, suggest changes (esc)                                               │\n",
        "╰──────────────────────────────────────────────────────────────────────────────╯\n",
    );
    let waiting = Capture::new(screen).read().waiting_for.unwrap();
    assert_eq!(waiting.question, "Allow execution of [Shell]?");
    assert_eq!(waiting.options.len(), 3);
    // The same question about something else is another one; a mark that moved makes none.
    let read = |screen: String| Capture::new(&screen).read().waiting_for.unwrap();
    assert!(!waiting.asks_the_same(&read(screen.replace("f.txt", "g.txt"))));
    assert!(!waiting.asks_the_same(&read(screen.replace("Allow once", "Allow ever"))));
    let moved = read(screen.replace("\u{25cf} 1.", "  1.").replace("  2.", "\u{25cf} 2."));
    assert!(waiting.asks_the_same(&moved) && waiting != moved);
}
