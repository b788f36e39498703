//! What the CLI itself draws, one recogniser per kind of row.
//!
//! Borders of the prompt come in five kinds: `▄` above and `▀` below (0.45 and 0.61), the other way round (0.30 and
//! 0.36), none at all without true colour, `─` rules when `ui.useBackgroundColor` is off, and a rounded box (until 0.25).

use super::rows::Row;

/// Characters that a prompt can start with: `>`, `*` with YOLO, `!` for shell commands.
const PROMPTS: [char; 3] = ['>', '*', '!'];

/// What an empty prompt says, by mode.
const PLACEHOLDERS: [&str; 4] = [
    "Type your message",
    "Type your shell command",
    "Press 'Esc' for NORMAL mode",
    "Press 'i' for INSERT mode",
];

/// Whether a row is the upper or lower border of a prompt or a query: nothing but half blocks from column 0 on. In the
/// alternate buffer the scroll bar may stand over its last column.
pub(super) fn is_half_block_border(row: &Row<'_>) -> bool {
    let bytes = row.text.as_bytes();
    bytes.len() >= 30
        && matches!(bytes, [0xe2, 0x96, 0x80 | 0x84, ..])
        && bytes.chunks(3).all(|block| matches!(block, [0xe2, 0x96, 0x80 | 0x84 | 0x88]))
}

/// Whether a row is a rule across the whole terminal.
pub(super) fn is_rule(row: &Row<'_>) -> bool {
    let bytes = row.text.as_bytes();
    let dashes = |bytes: &[u8]| bytes.chunks(3).all(|dash| matches!(dash, [0xe2, 0x94, 0x80]));
    bytes.len() >= 30 && row.indent == 0 && (dashes(bytes) || row.text.starts_with("── Shortcuts ("))
}

/// Whether a row is a border or a rule that somebody else wrote over: what a shell does when the CLI was killed, because
/// the cursor stands in the prompt.
pub(super) fn is_overwritten(row: &Row<'_>) -> bool {
    let run = |glyphs: [char; 2]| row.text.chars().rev().take_while(|glyph| glyphs.contains(glyph)).count();
    row.indent == 0
        && row.text.ends_with(['▀', '▄', '─'])
        && !row.text.starts_with(['▀', '▄', '─', '╭', '╰', '✦'])
        && (run(['▀', '▄']) >= 10 || run(['─', '─']) >= 10)
}

/// Whether a row is a complaint of the CLI itself, or of what was started in its place: text of the model stands further right.
pub(super) fn is_failure(row: &Row<'_>) -> bool {
    const WORDS: [&str; 4] =
        ["Error:", "APIError:", "ConnectionError:", "Traceback (most recent call last):"];
    row.indent == 0 && WORDS.iter().any(|words| row.text.starts_with(words))
}

/// What a complaint in these rows says: of a traceback, the last row does.
pub(super) fn failure<'r, 'a: 'r>(mut rows: impl Iterator<Item = &'r Row<'a>>) -> Option<String> {
    let first = rows.find(|row| is_failure(row))?;
    let said = if first.text.starts_with("Traceback") { rows.last().unwrap_or(first) } else { first };
    Some(said.text.to_string())
}

/// Whether the CLI started here: its banner, or the tips below it.
pub(super) fn is_banner(row: &Row<'_>) -> bool {
    match row.indent {
        0 => row.text == "Tips for getting started:",
        1 => row.text.starts_with(" ▝▜▄ ") && row.text.contains("Gemini CLI v"),
        _ => false,
    }
}

pub(super) fn starts_with_prompt(row: &Row<'_>) -> bool {
    row.indent <= 1 && prompt_text(row).is_some()
}

pub(super) fn prompt_text<'r>(row: &'r Row<'_>) -> Option<&'r str> {
    let rest = row.body().strip_prefix(PROMPTS)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

pub(super) fn is_empty_prompt(row: &Row<'_>) -> bool {
    row.indent <= 1 && row.body().strip_prefix(PROMPTS).is_some_and(is_placeholder)
}

/// Whether what stands after the prompt character is a placeholder. It is two columns further in than what somebody types,
/// which may say the same.
pub(super) fn is_placeholder(rest: &str) -> bool {
    rest.strip_prefix("   ")
        .is_some_and(|text| PLACEHOLDERS.iter().any(|placeholder| text.starts_with(placeholder)))
}

/// Whether a row is the line that says that the CLI works: a spinner, or `(esc to cancel, 3s)`.
pub(super) fn is_spinner(row: &Row<'_>) -> bool {
    row.indent <= 1 && (row.lead().is_some_and(is_braille) || row.body().contains("(esc to cancel, "))
}

/// Whether a spinner row belongs to the start of the CLI rather than to a turn.
pub(super) fn is_start_up(row: &Row<'_>) -> bool {
    let text = row.body().trim_start_matches(is_braille).trim_start();
    ["Initializing...", "Connecting to MCP servers...", "Resuming session...", "Waiting for MCP servers"]
        .iter()
        .any(|phrase| text.starts_with(phrase))
}

fn is_braille(glyph: char) -> bool {
    ('\u{2800}'..='\u{28ff}').contains(&glyph)
}

/// Whether a row is a hint that the CLI writes at the right edge above the prompt.
pub(super) fn is_hint(row: &Row<'_>) -> bool {
    const HINTS: [&str; 6] = [
        "? for shortcuts",
        "YOLO mode (ctrl + y",
        "accepting edits (shift + tab",
        "plan mode (shift + tab",
        "shell mode enabled (esc",
        "press tab twice for more",
    ];
    row.indent >= 10 && HINTS.iter().any(|hint| row.body().starts_with(hint))
}

/// Whether a row is one of the short messages that the CLI shows above the prompt, or below a dialog.
pub(super) fn is_toast(row: &Row<'_>) -> bool {
    const TOASTS: [&str; 5] = [
        "Press Ctrl+C again to exit.",
        "Press Ctrl+D again to exit.",
        "Press Esc again to ",
        "Press Ctrl+O to ",
        "Press ctrl-o to ",
    ];
    row.indent <= 1 && TOASTS.iter().any(|toast| row.body().starts_with(toast))
}

/// Whether a row is the status bar of one line that the CLI drew until 0.30 (folder, sandbox, model), or the line above the
/// prompt that counts context files and servers.
pub(super) fn is_status_bar(row: &Row<'_>) -> bool {
    let text = row.body();
    let bar = text.contains(" sandbox ") && (text.contains("/model") || text.contains(" Auto"));
    let context = text.starts_with("Using: ")
        || (text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(" MCP server"));
    row.indent <= 1 && (bar || context)
}

/// Whether a row announces the model of the answer (`ui.showModelInfoInChat`).
pub(super) fn is_model_line(row: &Row<'_>) -> bool {
    row.indent == 2 && row.body().strip_prefix("Responding with ").is_some_and(|model| !model.contains(' '))
}

/// Whether a row, at column 0 or 1, begins a box, goes on in one, or ends one.
pub(super) fn box_edge(row: &Row<'_>) -> Option<Edge> {
    if row.indent > 1 {
        return None;
    }
    match row.lead()? {
        '╭' => Some(Edge::Top),
        '│' => Some(Edge::Side),
        '╰' => Some(Edge::Bottom),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Top,
    Side,
    Bottom,
}

/// The text of a row between the sides of its box.
pub(super) fn inside<'r>(row: &'r Row<'_>) -> &'r str {
    let text = row.body().strip_prefix('│').unwrap_or(row.body());
    let text = text.strip_suffix('│').unwrap_or(text);
    text.strip_prefix(' ').unwrap_or(text).trim_end()
}
