//! What an agent is doing, in a few words, for a line on a screen.

use alhena_model::{Event, EventKind};
use serde_json::Value;

use crate::result::Spent;

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

/// What has been seen of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    doing: String,
    spent: Spent,
}

impl Seen {
    /// Something happened. Whether that changes what the run does or has used.
    pub fn saw(&mut self, event: &Event) -> bool {
        if let EventKind::Usage(call) = &event.kind {
            self.spent.hear(&call.usage);
            return true;
        }
        match of(event) {
            Some(what) if what != self.doing => {
                self.doing = what;
                true
            }
            _ => false,
        }
    }

    /// What it does, in a few words.
    pub fn doing(&self) -> Option<&str> {
        Some(self.doing.as_str()).filter(|doing| !doing.is_empty())
    }

    /// Tokens, and what they cost where that is known.
    pub fn spent(&self) -> (Option<u64>, Option<f64>) {
        let Spent { tokens, cost_usd, unpriced } = self.spent;
        let used = tokens > 0;
        (used.then_some(tokens), (used && !unpriced).then_some(cost_usd))
    }
}

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
