//! The live part of the screen: the prompt with its status rows, a dialog in its place, or what is left when the CLI is
//! gone. Found from the bottom up; what lies above it is the conversation.
//!
//! In 0.61.0 the prompt stays visible and empty while the CLI works, and disappears only for a dialog. So "there is a
//! prompt" says nothing about work, and "there is none" says that somebody has to answer something, or that the CLI has
//! ended: then a row of somebody else stands below what the CLI drew.

use super::chrome::{self, Edge};
use super::rows::Rows;

/// How queries and the prompt are set off from the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Between rows of half blocks.
    HalfBlocks,
    /// At column 1 between blank rows (256 colours).
    Bare,
    /// Queries at column 0 between blank rows, the prompt between rules (`ui.useBackgroundColor: false`).
    Rules,
    /// `--screen-reader`: `User:` and `Model:` at column 0, no boxes, no blank rows.
    Reader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    Prompt(Activity),
    Dialog {
        start: usize,
        end: usize,
    },
    /// The CLI was here and has ended.
    Gone,
    Nothing,
}

/// What the rows between the conversation and the prompt say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Quiet,
    /// A spinner turns, or messages are queued.
    Busy,
    StartingUp,
    /// This row says that a shell command of a tool waits for input. The CLI says so of every command that has been silent
    /// for five seconds; only when it puts it into the title too, after thirty, it is worth a look.
    ShellInput(usize),
}

#[derive(Debug)]
pub(super) struct Frame {
    pub style: Style,
    pub live: Live,
    /// The conversation is in the rows before this one.
    pub body_end: usize,
    /// How many columns the terminal has, as far as full-width rows tell.
    pub columns: Option<usize>,
}

/// The prompt takes at most this many rows (the CLI scrolls longer drafts), a dialog hardly more than a screen.
const PROMPT_ROWS: usize = 40;

impl Frame {
    pub fn find(rows: &Rows<'_>) -> Frame {
        let mut foreign = false;
        let mut footer = false;
        for index in (0..rows.len()).rev() {
            let row = rows.row(index);
            if row.is_blank() || chrome::is_toast(row) {
                continue;
            }
            if chrome::is_half_block_border(row) {
                match half_block_prompt(rows, index, foreign, footer) {
                    Some(frame) => return frame,
                    None => continue,
                }
            }
            if chrome::is_overwritten(row) {
                return Frame::without_live(rows, Live::Gone);
            }
            if chrome::is_empty_prompt(row) || is_draft(rows, index) {
                return bare_prompt(rows, index, foreign);
            }
            if let Some(frame) = ruled_prompt(rows, index, foreign) {
                return frame;
            }
            if let Some(edge) = chrome::box_edge(row) {
                return boxed(rows, index, edge, foreign);
            }
            if super::reader::is_sign(row) {
                return super::reader::frame(rows, foreign);
            }
            if ['✦', 'ℹ', '✕', '⚠'].iter().any(|glyph| row.marked(*glyph)) {
                return Frame::without_live(rows, Live::Nothing);
            }
            if row.indent == 0 && !chrome::is_rule(row) && !chrome::is_spinner(row) {
                foreign = true;
            }
            footer |= row.indent == 1;
        }
        Frame::without_live(rows, if foreign && ended_at_start(rows) { Live::Gone } else { Live::Nothing })
    }

    fn without_live(rows: &Rows<'_>, live: Live) -> Frame {
        let body_end = rows.len();
        let (style, columns) = style_above(rows, body_end);
        Frame { style, live, body_end, columns }
    }
}

/// Whether somebody else wrote below the banner. The banner alone, with its tips, is a frame of which the rest is about to be
/// drawn.
fn ended_at_start(rows: &Rows<'_>) -> bool {
    let Some(banner) = (0..rows.len()).rev().find(|index| chrome::is_banner(rows.row(*index))) else {
        return false;
    };
    (banner + 1..rows.len()).map(|index| rows.row(index)).any(|row| {
        let tip = row.text.starts_with(|first: char| first.is_ascii_digit())
            || row.text.starts_with("with Gemini.");
        row.indent == 0 && !row.is_blank() && !tip
    })
}

/// A box of half blocks whose lower border is at `bottom`: the prompt, or a query with nothing after it. A border alone is
/// left over from an earlier frame (0.30 in small terminals).
fn half_block_prompt(rows: &Rows<'_>, bottom: usize, foreign: bool, footer: bool) -> Option<Frame> {
    let columns = Some(rows.row(bottom).end());
    let top = (bottom.saturating_sub(PROMPT_ROWS)..bottom)
        .rev()
        .take_while(|index| rows.row(*index).indent > 0 || rows.row(*index).is_blank())
        .last()
        .and_then(|first| first.checked_sub(1))
        .filter(|top| {
            chrome::is_half_block_border(rows.row(*top)) && chrome::starts_with_prompt(rows.row(top + 1))
        })?;
    let is_chrome = |index| chrome::is_rule(rows.row(index)) || chrome::is_hint(rows.row(index));
    let first = rows.row(top + 1);
    let sent = first.lead() == Some('>') && !chrome::is_empty_prompt(first);
    if !foreign && sent && !footer && !(top.saturating_sub(3)..top).any(is_chrome) {
        return Some(Frame { style: Style::HalfBlocks, live: Live::Nothing, body_end: rows.len(), columns });
    }
    Some(prompt(rows, top, Style::HalfBlocks, columns, foreign))
}

/// Whether the row is a prompt with a draft in it, without borders: at column 1, between blank rows, under the row that
/// tells the mode.
fn is_draft(rows: &Rows<'_>, index: usize) -> bool {
    let row = rows.row(index);
    row.indent == 1
        && chrome::starts_with_prompt(row)
        && index > 0
        && rows.row(index - 1).is_blank()
        && (index.saturating_sub(5)..index).any(|above| chrome::is_rule(rows.row(above)))
}

fn bare_prompt(rows: &Rows<'_>, index: usize, foreign: bool) -> Frame {
    let row = rows.row(index);
    if row.indent == 0 && !rows.row(index.saturating_sub(1)).is_blank() {
        return super::reader::frame(rows, foreign);
    }
    let (style, top) = match index.checked_sub(1).map(|above| (above, rows.row(above))) {
        Some((above, border)) if chrome::is_rule(border) => (Style::Rules, above),
        // Without a lower border the upper one is that of a query.
        Some((_, border)) if chrome::is_half_block_border(border) => (Style::HalfBlocks, index),
        _ => (style_above(rows, index).0, index),
    };
    let columns = (top.saturating_sub(5)..=top)
        .map(|index| rows.row(index))
        .find(|row| chrome::is_rule(row) || chrome::is_half_block_border(row))
        .map(|row| row.end());
    let columns = columns.or_else(|| style_above(rows, index).1);
    prompt(rows, top, style, columns, foreign)
}

/// A prompt between rules whose lower rule is at `bottom`, with a draft in it.
fn ruled_prompt(rows: &Rows<'_>, bottom: usize, foreign: bool) -> Option<Frame> {
    if !chrome::is_rule(rows.row(bottom)) {
        return None;
    }
    let top = (bottom.saturating_sub(PROMPT_ROWS)..bottom).rev().find(|index| {
        let row = rows.row(*index);
        chrome::is_rule(row) || (row.indent == 0 && !row.is_blank())
    })?;
    if !chrome::is_rule(rows.row(top))
        || rows.row(top + 1).indent != 1
        || !chrome::starts_with_prompt(rows.row(top + 1))
    {
        return None;
    }
    let columns = Some(rows.row(bottom).end());
    Some(prompt(rows, top, Style::Rules, columns, foreign))
}

/// A prompt, or what is left of it where somebody else wrote below it.
fn prompt(rows: &Rows<'_>, top: usize, style: Style, columns: Option<usize>, foreign: bool) -> Frame {
    let (body_end, activity) = status_rows(rows, top, style);
    let live = if foreign { Live::Gone } else { Live::Prompt(activity) };
    Frame { style, live, body_end, columns }
}

/// Goes up over the rows between the conversation and the prompt: mode, rule, spinner, hints, toasts, queued messages.
/// All of them start at column 0 or 1, or far to the right.
fn status_rows(rows: &Rows<'_>, top: usize, style: Style) -> (usize, Activity) {
    let mut activity = Activity::Quiet;
    let mut ruled = false;
    let mut end = top;
    while end > 0 {
        let row = rows.row(end - 1);
        ruled |= chrome::is_rule(row);
        if chrome::is_spinner(row) {
            activity = if chrome::is_start_up(row) { Activity::StartingUp } else { Activity::Busy };
        } else if row.indent <= 1 && row.body().contains("Shell awaiting input") {
            activity = Activity::ShellInput(end - 1);
        } else if let Some(panel) = shortcuts_above(rows, end) {
            end = panel;
            continue;
        } else if (style == Style::Bare && chrome::starts_with_prompt(row))
            || !is_status_row(rows, end - 1, ruled)
        {
            break;
        }
        end -= 1;
    }
    if let Some(queue) = queue_above(rows, end) {
        return (queue, Activity::Busy);
    }
    (end, activity)
}

fn is_status_row(rows: &Rows<'_>, index: usize, ruled: bool) -> bool {
    let row = rows.row(index);
    if row.is_blank()
        || chrome::is_rule(row)
        || chrome::is_hint(row)
        || chrome::is_status_bar(row)
        || chrome::is_toast(row)
    {
        return true;
    }
    if chrome::box_edge(row).is_some() || chrome::is_half_block_border(row) {
        return false;
    }
    match row.indent {
        // Under 80 columns messages for the user lose their margin. Only where a rule proves the newer layout: in the
        // older one text of an answer can stand at column 0.
        0 => {
            let alone = rows.row(index + 1).is_blank() && index > 0 && rows.row(index - 1).is_blank();
            ruled && alone && row.lead().is_some_and(|lead| lead.is_ascii_alphabetic())
        }
        1 => true,
        2 => row.body().starts_with("shell mode enabled"),
        // 0.30 breaks a long status into two rows.
        _ => row.indent >= 10 && index > 0 && chrome::is_spinner(rows.row(index - 1)),
    }
}

/// The first row of the panel with the shortcuts, if `end` is inside or right below it.
fn shortcuts_above(rows: &Rows<'_>, end: usize) -> Option<usize> {
    if rows.row(end - 1).indent < 10 {
        return None;
    }
    (end.saturating_sub(14)..end).rev().find(|index| {
        let text = rows.row(*index).text.trim_start();
        text.starts_with("── Shortcuts (") || text.starts_with("Shortcuts See /help")
    })
}

/// The first row of the list of queued messages, if the rows before `end` are one.
fn queue_above(rows: &Rows<'_>, end: usize) -> Option<usize> {
    let start = (end.saturating_sub(6)..end).rev().find(|index| rows.row(*index).indent != 4)?;
    let row = rows.row(start);
    (start + 1 < end && row.indent == 2 && row.body().starts_with("Queued (press ")).then_some(start)
}

/// A box at the bottom: a dialog, the farewell, or a tool.
fn boxed(rows: &Rows<'_>, bottom: usize, edge: Edge, foreign: bool) -> Frame {
    let indent = rows.row(bottom).indent;
    let mut start = bottom;
    while start > 0 && edge != Edge::Top {
        let row = rows.row(start - 1);
        match chrome::box_edge(row) {
            Some(Edge::Top) if row.indent == indent => {
                start -= 1;
                break;
            }
            Some(Edge::Side) if row.indent == indent => start -= 1,
            _ => break,
        }
    }
    let (style, mut columns) = style_above(rows, start);
    if columns.is_none() && indent == 0 {
        columns = Some(rows.row(bottom).end());
    }
    if !foreign && is_boxed_prompt(rows, start, bottom) {
        return prompt(rows, start, style, columns, false);
    }
    let inner = || (start..=bottom).map(|index| chrome::inside(rows.row(index)));
    let farewell = inner().any(|text| {
        ["Agent powering down", "To resume this session:", "Session ID:"]
            .iter()
            .any(|words| text.trim_start().starts_with(words))
    });
    let tool = inner()
        .find(|text| !text.is_empty() && !text.starts_with('─') && !text.starts_with('╭'))
        .is_some_and(super::transcript::is_finished_header);
    let live = if foreign || farewell {
        Live::Gone
    } else if tool {
        Live::Nothing
    } else {
        Live::Dialog { start, end: bottom + 1 }
    };
    let body_end = if live == Live::Nothing { rows.len() } else { start };
    Frame { style, live, body_end, columns }
}

/// Whether a box is the prompt, as it was until 0.25: the status bar below, no options inside.
fn is_boxed_prompt(rows: &Rows<'_>, start: usize, bottom: usize) -> bool {
    let first = chrome::inside(rows.row(start + 1));
    let Some(text) = first.strip_prefix(['>', '*', '!']).and_then(|rest| rest.strip_prefix(' ')) else {
        return false;
    };
    let options = (start..bottom).any(|index| chrome::inside(rows.row(index)).contains('●'));
    let below = (bottom + 1..rows.len()).map(|index| rows.row(index)).find(|row| !row.is_blank());
    text.trim_start().starts_with("Type your ") || (!options && below.is_some_and(chrome::is_status_bar))
}

/// How the queries above `end` are set off, and how wide their borders are.
fn style_above(rows: &Rows<'_>, end: usize) -> (Style, Option<usize>) {
    for index in (0..end).rev() {
        let row = rows.row(index);
        if chrome::is_half_block_border(row) {
            return (Style::HalfBlocks, Some(row.end()));
        }
        let alone = || index == 0 || rows.row(index - 1).is_blank();
        if row.indent == 1 && row.body().starts_with("> ") && alone() {
            return (Style::Bare, None);
        }
        if row.marked('>') && alone() {
            return (Style::Rules, None);
        }
        if row.indent == 0 && super::reader::is_sign(row) {
            return (Style::Reader, None);
        }
    }
    (Style::HalfBlocks, None)
}
