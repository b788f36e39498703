//! What a session file is about: its id, its times, and whether there is a conversation in it.
//!
//! Gemini CLI 0.61.0 leaves files with a header and a `<session_context>` record only: a stub beside every resumed
//! session, and what a failed first call rolls back to. Its own clean-up takes such a file for rubbish and deletes it,
//! with every other file of the same short id. So they must not reach the user's store.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use alhena_sys::files;

/// The facts of one session file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionFacts {
    pub(super) id: String,
    /// As written: ISO-8601 in UTC, so text order is time order.
    pub(super) start: String,
    pub(super) last_updated: String,
    pub(super) is_subagent: bool,
    /// Whether there is a message of a person or of the model.
    pub(super) has_conversation: bool,
}

/// Reads a whole file, JSONL (0.39 and later) or one JSON object (before). None when it is not a session.
pub(super) fn scan(path: &Path) -> io::Result<Option<SessionFacts>> {
    let mut fold = Fold::default();
    let mut reader = BufReader::new(files::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // A line that is no JSON is skipped, as the CLI does: the last one may be cut off.
        if let Ok(record) = serde_json::from_slice::<Value>(&line) {
            fold.take(&record);
        }
    }
    if fold.facts.id.is_empty() || !fold.has_project {
        fold = Fold::default();
        if let Ok(record) = serde_json::from_slice::<Value>(&std::fs::read(path)?) {
            fold.header(&record);
        }
    }
    Ok(fold.end())
}

/// Reads only the first line: cheap, and enough to find a session among many. None when that does not tell.
pub(super) fn scan_header(path: &Path) -> io::Result<Option<SessionFacts>> {
    const LONGEST_HEADER: u64 = 64 * 1024;
    let mut line = Vec::new();
    io::Read::take(BufReader::new(files::open(path)?), LONGEST_HEADER).read_until(b'\n', &mut line)?;
    let mut fold = Fold::default();
    if let Ok(record) = serde_json::from_slice::<Value>(&line) {
        fold.header(&record);
    }
    Ok(fold.end())
}

/// The CLI's own fold of records, reduced to what matters here.
#[derive(Default)]
struct Fold {
    facts: SessionFacts,
    has_project: bool,
    order: Vec<String>,
    /// Per message its place in `order`, and whether it is conversation.
    messages: HashMap<String, (usize, bool)>,
}

impl Fold {
    fn take(&mut self, record: &Value) {
        if let Some(id) = record.get("$rewindTo").and_then(Value::as_str) {
            let keep = self.messages.get(id).map_or(0, |(place, _)| *place);
            for gone in self.order.drain(keep..) {
                self.messages.remove(&gone);
            }
        } else if record.get("id").is_some_and(Value::is_string) {
            self.message(record);
        } else if let Some(set) = record.get("$set").filter(|set| set.is_object()) {
            if let Some(messages) = set.get("messages").and_then(Value::as_array) {
                self.order.clear();
                self.messages.clear();
                messages.iter().for_each(|message| self.message(message));
            }
            self.metadata(set);
        } else if record.get("sessionId").is_some_and(Value::is_string) {
            self.header(record);
        }
    }

    fn header(&mut self, record: &Value) {
        self.metadata(record);
        for message in record.get("messages").and_then(Value::as_array).into_iter().flatten() {
            self.message(message);
        }
    }

    fn metadata(&mut self, record: &Value) {
        let text = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
        let facts = &mut self.facts;
        facts.id = text("sessionId").unwrap_or_else(|| std::mem::take(&mut facts.id));
        facts.start = text("startTime").unwrap_or_else(|| std::mem::take(&mut facts.start));
        facts.last_updated = text("lastUpdated").unwrap_or_else(|| std::mem::take(&mut facts.last_updated));
        if let Some(kind) = text("kind") {
            facts.is_subagent = kind == "subagent";
        }
        self.has_project |= record.get("projectHash").is_some_and(Value::is_string);
    }

    fn message(&mut self, message: &Value) {
        let Some(id) = message.get("id").and_then(Value::as_str) else { return };
        let is_conversation = is_conversation(message);
        if let Some((_, known)) = self.messages.get_mut(id) {
            *known = is_conversation;
            return;
        }
        self.messages.insert(id.to_owned(), (self.order.len(), is_conversation));
        self.order.push(id.to_owned());
    }

    fn end(mut self) -> Option<SessionFacts> {
        self.facts.has_conversation = self.messages.values().any(|(_, is_conversation)| *is_conversation);
        (!self.facts.id.is_empty()).then_some(self.facts)
    }
}

fn is_conversation(message: &Value) -> bool {
    let text = message.get("content").map(text_of).unwrap_or_default();
    let text = text.trim();
    match message.get("type").and_then(Value::as_str) {
        Some("user") => {
            !text.is_empty() && !text.starts_with("<session_context>") && !text.starts_with("<hook_context>")
        }
        Some("gemini") => {
            let filled =
                |key| message.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
            !text.is_empty() || filled("toolCalls") || filled("thoughts")
        }
        _ => false,
    }
}

/// The text of a content: a string, a part, or a list of both. Enough of it to judge its beginning.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        // An image without a word is a prompt too.
        Value::Object(part) => match part.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None if part.contains_key("inlineData") || part.contains_key("fileData") => "[data]".to_owned(),
            None => String::new(),
        },
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"sessionId":"s1","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}"#;
    const CONTEXT: &str = r#"{"$set":{"messages":[{"id":"c","type":"user","content":[{"text":"<session_context>x"}]}],"lastUpdated":"2026-01-01T00:00:01.000Z"}}"#;
    const PROMPT: &str = r#"{"id":"u","type":"user","content":[{"text":"hi"}]}"#;

    fn scanned(lines: &[&str]) -> Option<SessionFacts> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        scan(file.path()).unwrap()
    }

    fn facts(last_updated: &str, has_conversation: bool) -> Option<SessionFacts> {
        Some(SessionFacts {
            id: "s1".into(),
            start: "2026-01-01T00:00:00.000Z".into(),
            last_updated: format!("2026-01-01T00:00:0{last_updated}.000Z"),
            is_subagent: false,
            has_conversation,
        })
    }

    #[test]
    fn a_stub_holds_no_conversation_and_a_prompt_is_one() {
        assert_eq!(scanned(&[HEADER, CONTEXT]), facts("1", false));
        assert_eq!(scanned(&[HEADER, CONTEXT, PROMPT]), facts("1", true));
        assert_eq!(scanned(&[HEADER, CONTEXT, PROMPT, r#"{"id":"g","type":"gem"#]), facts("1", true));
    }

    #[test]
    fn what_is_rolled_back_or_rewound_does_not_count() {
        assert_eq!(scanned(&[HEADER, CONTEXT, PROMPT, CONTEXT]), facts("1", false));
        assert_eq!(scanned(&[HEADER, PROMPT, r#"{"$rewindTo":"u"}"#]), facts("0", false));
        assert_eq!(scanned(&[HEADER, PROMPT, r#"{"$rewindTo":"unknown"}"#]), facts("0", false));
        let answer = r#"{"id":"g","type":"gemini","content":"","toolCalls":[{"id":"t"}]}"#;
        assert_eq!(scanned(&[HEADER, PROMPT, answer, r#"{"$rewindTo":"g"}"#]), facts("0", true));
        assert_eq!(scanned(&[HEADER, answer]), facts("0", true));
    }

    #[test]
    fn a_file_of_the_time_before_jsonl_is_read_as_a_whole() {
        let text = r#"{
  "sessionId": "s1", "projectHash": "h",
  "startTime": "2026-01-01T00:00:00.000Z", "lastUpdated": "2026-01-01T00:00:02.000Z",
  "messages": [ { "id": "u", "type": "user", "content": "hi" } ]
}"#;
        assert_eq!(scanned(&[text]), facts("2", true));
    }

    #[test]
    fn garbage_is_no_session() {
        assert_eq!(scanned(&["", "nonsense", "[1]", "{}", "\u{0}"]), None);
        assert_eq!(scanned(&[PROMPT]), None);
    }
}
