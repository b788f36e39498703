//! What a dialog asks, and what can be answered.
//!
//! Dialogs of 0.61.0 are boxes with numbered options, the selected one marked with `●` (`(checked)` for screen readers).
//! Their text is partly the model's: a command to approve, a question to answer. So the kind is told by the labels of the
//! options, which are the CLI's own, and not by words in between.

use std::ops::Range;

use super::chrome;
use super::prose::{self, ProseLine};
use super::rows::Rows;
use super::{Choice, Waiting, WaitingFor};

pub(super) fn read(rows: &Rows<'_>, range: Range<usize>) -> Waiting {
    let lines: Vec<String> = range.clone().filter_map(|index| inner(rows, index)).collect();
    // Two sides and a blank next to each.
    let edge =
        rows.row(range.start).end().checked_sub(rows.row(range.start).indent + 4).filter(|edge| *edge > 0);
    let options = options(&lines);
    let first = options.first().map_or(lines.len(), |(at, _)| *at);
    let last = options.last().map_or(lines.len(), |(at, _)| *at);
    let choices: Vec<Choice> = options.into_iter().map(|(_, choice)| choice).collect();
    let kind = kind(&lines, &choices);
    let before = paragraphs(lines.get(..first).unwrap_or_default(), edge);
    let question = question(kind, &before);
    // What follows the last option without a gap describes it.
    let after = lines.get(last..).unwrap_or_default().iter().skip_while(|line| !line.trim().is_empty());
    let detail: Vec<&str> = before
        .iter()
        .chain(after)
        .map(|line| asked(line))
        .filter(|line| *line != question && !is_frame_text(line))
        .filter(|line| kind == WaitingFor::ToolApproval || !line.is_empty())
        .collect();
    let detail = detail.join("\n").trim().to_owned();
    Waiting { kind, question, options: choices, detail: (!detail.is_empty()).then_some(detail) }
}

fn asked(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("? ").map_or(line, str::trim_start)
}

/// The text of a row between the sides of its box, boxes inside taken off too; `None` for horizontal lines.
fn inner(rows: &Rows<'_>, index: usize) -> Option<String> {
    let row = rows.row(index);
    if matches!(row.lead(), Some('╭' | '╰')) {
        return None;
    }
    let text = chrome::inside(row);
    let mut nested = text.trim_start();
    if nested.starts_with(['╭', '╰']) {
        return None;
    }
    if let Some(between) = nested.strip_prefix('│').and_then(|text| text.strip_suffix('│')) {
        nested = between.strip_prefix(' ').unwrap_or(between).trim_end();
        return Some(nested.to_owned());
    }
    Some(text.to_owned())
}

/// The numbered options at the end of a dialog and the lines that they are in. A list in the question is not among them:
/// options start anew at 1, and the last such start counts.
fn options(lines: &[String]) -> Vec<(usize, Choice)> {
    let mut found: Vec<(usize, Choice)> = Vec::new();
    // A long list shows a part of itself, which may begin anywhere.
    let mut scrolled = false;
    for (at, line) in lines.iter().enumerate() {
        scrolled |= line.trim() == "▲";
        let Some(choice) = choice(line) else { continue };
        if choice.number == 1 {
            if found.iter().any(|(_, choice)| choice.selected) && !choice.selected {
                continue;
            }
            found.clear();
        }
        let next = found.last().map_or(1, |(_, last)| last.number + 1);
        if choice.number == next || (scrolled && found.is_empty()) {
            found.push((at, choice));
        }
    }
    found
}

fn choice(line: &str) -> Option<Choice> {
    let text = line.trim_start();
    let (text, selected) = match text.strip_prefix('●').or_else(|| text.strip_prefix("(checked)")) {
        Some(rest) => (rest.trim_start(), true),
        None => (text, false),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text.get(..digits)?.parse().ok()?;
    let label = text.get(digits..)?.strip_prefix(". ")?.trim();
    // A preview may stand to the right of a list.
    let label = label.split("    ").next().unwrap_or(label).trim_end();
    let (label, checked) = ticked(label);
    Some(Choice { number, label: label.to_owned(), selected, checked })
}

fn ticked(label: &str) -> (&str, Option<bool>) {
    let rest = |mark: &str| label.strip_prefix(mark).map(str::trim_start);
    match (rest("[ ]"), rest("[x]")) {
        (Some(label), _) => (label, Some(false)),
        (None, Some(label)) => (label, Some(true)),
        (None, None) => (label, None),
    }
}

fn kind(lines: &[String], choices: &[Choice]) -> WaitingFor {
    let label =
        |words: &[&str]| choices.iter().any(|choice| words.iter().any(|word| choice.label.starts_with(word)));
    let text =
        |words: &[&str]| lines.iter().any(|line| words.iter().any(|word| line.trim_start().contains(word)));
    if label(&["Allow once", "Yes, allow once"]) {
        WaitingFor::ToolApproval
    } else if label(&["Trust folder (", "Don't trust"]) {
        WaitingFor::Trust
    } else if label(&["Keep loop detection enabled"]) {
        WaitingFor::Loop
    } else if choices.iter().any(|choice| choice.label == "Stop") && text(&["was not found or is invalid"]) {
        WaitingFor::Model
    } else if label(&["Keep trying", "Switch to ", "Upgrade for higher limits", "Use AI Credits"]) {
        WaitingFor::Quota
    } else if label(&["Sign in with Google", "Login with Google", "Use Gemini API Key", "Vertex AI"])
        || (choices.is_empty()
            && text(&["Enter Gemini API Key", "Waiting for auth", "Authentication timed out"]))
        || text(&[
            "verify your account",
            "successfully logged in with Google",
            "Enter the authorization code",
        ])
    {
        WaitingFor::Authentication
    } else if lines
        .iter()
        .any(|line| ["Answer Questions", "Ready to start implementation?"].contains(&line.trim()))
        || label(&["Yes, automatically accept edits", "Enter a custom value"])
    {
        WaitingFor::Question
    } else {
        WaitingFor::Other
    }
}

/// The text before the options, one string per paragraph row that was not wrapped.
fn paragraphs(lines: &[String], edge: Option<usize>) -> Vec<String> {
    let lines: Vec<ProseLine<'_>> = lines
        .iter()
        .map(|line| ProseLine { text: line, indent: line.bytes().take_while(|byte| *byte == b' ').count() })
        .collect();
    let base = lines.iter().filter(|line| !line.text.is_empty()).map(|line| line.indent).min().unwrap_or(0);
    let whole = prose::unwrap(&lines, base, edge.map(|edge| edge.max(1)));
    whole.lines().map(str::to_owned).collect()
}

/// The line that asks: for a tool the last with a question mark (a hint may follow it) or the last of all, else the first that ends with a question mark, else the first of all.
fn question(kind: WaitingFor, before: &[String]) -> String {
    let mut lines =
        before.iter().map(|line| asked(line)).filter(|line| !line.is_empty() && !is_frame_text(line));
    let found = match kind {
        WaitingFor::ToolApproval => {
            lines.clone().rfind(|line| line.ends_with('?')).or_else(|| lines.next_back())
        }
        WaitingFor::Loop | WaitingFor::Quota | WaitingFor::Model => lines.next(),
        _ => lines.clone().find(|line| line.ends_with('?')).or_else(|| lines.next()),
    };
    found.unwrap_or_default().to_owned()
}

/// Text that belongs to the dialog and not to what it asks: its heading, tabs, arrows and keys.
fn is_frame_text(line: &str) -> bool {
    let line = line.trim();
    ["Answer Questions", "Action Required", "▲", "▼", "(Select all that apply)"].contains(&line)
        || line.starts_with("← ")
        || line.starts_with("(Use Enter to ")
        || line.starts_with("(Press E")
        || (line.starts_with("Enter to ") && line.contains(" · "))
}
