//! What an agent is doing, in a few words, for a line on a screen.

use alhena_model::{Event, EventKind};
use serde_json::Value;

/// No more characters than this.
const LONGEST: usize = 100;
/// The argument that says most about a call, the first of these that is there.
const TELLING: &[&str] = &[
    "command",
    "file_path",
    "absolute_path",
    "path",
    "dir_path",
    "pattern",
    "query",
    "prompt",
    "url",
    "name",
];

/// What an event says about that; none if it changes nothing.
pub fn of(event: &Event) -> Option<String> {
    match &event.kind {
        EventKind::Started { .. } => Some("started".to_owned()),
        EventKind::Prompt { .. } | EventKind::ToolResult { .. } => Some("thinks".to_owned()),
        EventKind::Thinking { subject, .. } if !subject.trim().is_empty() => {
            Some(short(&format!("thinks: {subject}")))
        }
        EventKind::Thinking { .. } => Some("thinks".to_owned()),
        EventKind::Text { .. } => Some("answers".to_owned()),
        EventKind::ToolCall { name, input, .. } => {
            let told = TELLING.iter().find_map(|argument| input.get(argument).and_then(Value::as_str));
            Some(short(&told.map_or_else(|| name.clone(), |told| format!("{name}: {told}"))))
        }
        EventKind::Error { message } => Some(short(message)),
        _ => None,
    }
}

/// The first line of a text, cut.
pub(crate) fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
    }
}
