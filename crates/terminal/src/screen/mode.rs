//! The approval mode that the CLI shows at its prompt.
//!
//! 0.61.0 writes it into a row above the prompt, and in yolo the prompt's character is `*`. In its short layout (Tab twice) nothing is
//! said of the default mode, nor of any mode while the CLI works, and there is no row while a dialog or the shell mode is on: then the
//! screen does not tell. Up to 0.25 only modes other than the default are named.

use alhena_agent::Approval;

use super::frame::{Frame, Live};
use super::rows::Rows;
use super::{chrome, draft};

/// The mode, where the screen tells. Of several that could be meant it is the one that allows most.
pub(super) fn read(rows: &Rows<'_>, frame: &Frame) -> Option<Approval> {
    let Live::Prompt(_) = frame.live else { return None };
    let prompt = draft::first_row(rows, frame.body_end)?;
    let sign = draft::inside(rows, prompt).chars().next();
    if sign == Some('*') {
        return Some(Approval::Yolo);
    }
    let above = (frame.body_end..prompt).filter_map(|index| named(rows.row(index).body()));
    let boxed = chrome::box_edge(rows.row(prompt)).is_some() && sign == Some('>');
    above.max_by_key(|mode| mode.rank()).or(boxed.then_some(Approval::Default))
}

/// The mode that a row above the prompt names. The keys in it are whatever the user has bound.
fn named(text: &str) -> Option<Approval> {
    let text = text.trim();
    let text = text.strip_prefix("● ").unwrap_or(text);
    let begins = |words: &[&str]| {
        let follows = |rest: &str| rest.is_empty() || rest.starts_with(' ');
        words.iter().any(|word| text.strip_prefix(word).is_some_and(follows))
    };
    if begins(&["YOLO"]) {
        Some(Approval::Yolo)
    } else if begins(&["auto-accept edits", "auto edit", "accepting edits"]) {
        Some(Approval::AutoEdit)
    } else if begins(&["plan"]) {
        Some(Approval::Plan)
    } else if text.split("  ").next().is_some_and(|first| first.contains(" to accept edits")) {
        Some(Approval::Default)
    } else {
        None
    }
}
