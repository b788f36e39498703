//! What a session file says about one turn: everything that was written since its message was sent.
//!
//! Read from the end, line by line, and not from the folded session: after a failed request 0.61.0 takes the question out of
//! its history again (`$set.messages`), and the turn before would be taken for this one. The CLI's own notices are there too:
//! an `info` when an answer was stopped or cut off, an `error` when there is none.

use std::path::Path;
use std::time::Duration;

use alhena_model::Timestamp;
use serde_json::Value;

use crate::turn::How;

/// How long before a piece of an answer a notice can come that is about it. A second attempt takes longer.
const SAME_ATTEMPT: i64 = 700;

/// A turn whose answer is in the session is over when the screen stands still; without an answer it has to stand longer.
pub(crate) const STANDS: Duration = Duration::from_millis(60);
pub(crate) const STANDS_WITHOUT_ANSWER: Duration = Duration::from_millis(1500);
/// And longer still where the session has the question and not a word to it: on a busy machine the CLI may only be about to
/// begin.
pub(crate) const STANDS_IN_SILENCE: Duration = Duration::from_secs(6);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionTurn {
    pub(crate) queries: usize,
    /// The texts of the last one's answer.
    pub(crate) texts: Vec<String>,
    /// Whether the last thing that the model said was a call of tools: there is more to come.
    pub(crate) calls: bool,
    pub(crate) error: Option<String>,
    /// Why an answer that is there is not all of it.
    pub(crate) notice: Option<String>,
    pub(crate) cancelled: bool,
    /// What its calls of the model took, where the session says so.
    pub(crate) tokens: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) at: Timestamp,
    pub(crate) query: String,
    pub(crate) said: SessionTurn,
    /// When the last of that was written.
    pub(crate) until: Timestamp,
}

impl SessionTurn {
    /// What a session says since a moment. Nothing if it cannot be read.
    pub(crate) fn since(path: &Path, moment: Timestamp) -> Self {
        Self::between(path, moment, None)
    }

    pub(crate) fn between(path: &Path, moment: Timestamp, next: Option<Timestamp>) -> Self {
        let Ok(bytes) = std::fs::read(path) else { return Self::default() };
        let mut records = records(&bytes, moment);
        records.retain(|record| next.is_none_or(|next| record.at < next));
        let mut said = Self::default();
        for record in without_what_was_made_good(records) {
            said.add(&record);
        }
        said
    }

    /// Every question since a moment, apart from the others.
    pub(crate) fn each_since(path: &Path, moment: Timestamp) -> Vec<Exchange> {
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut pieces: Vec<Vec<Record>> = Vec::new();
        for record in records(&bytes, moment) {
            match pieces.last_mut() {
                Some(piece) if !record.is_query() => piece.push(record),
                None if !record.is_query() => {}
                _ => pieces.push(vec![record]),
            }
        }
        let exchange = |piece: Vec<Record>| {
            let (at, query) = piece.first().map(|first| (first.at, first.text.clone()))?;
            let until = piece.last().map_or(at, |last| last.at);
            let mut said = Self::default();
            without_what_was_made_good(piece).iter().for_each(|record| said.add(record));
            Some(Exchange { at, query, said, until })
        };
        pieces.into_iter().filter_map(exchange).collect()
    }

    fn add(&mut self, record: &Record) {
        if let Some(tokens) = record.tokens {
            *self.tokens.get_or_insert(0) += tokens;
        }
        match record.kind.as_str() {
            "user" if record.is_query() => {
                *self = Self { queries: self.queries + 1, ..Self::default() };
            }
            "gemini" => {
                if !record.text.trim().is_empty() {
                    self.texts.push(record.text.clone());
                    self.error = None;
                }
                self.calls = record.calls;
            }
            "error" => self.error = Some(record.text.clone()),
            "info" if record.text.starts_with("Request cancelled") => self.cancelled = true,
            "info" if stopped(&record.text) => self.notice = Some(plain(&record.text)),
            _ => {}
        }
    }

    /// Whether it tells that the turn has ended. Without that, only time does.
    pub(crate) fn is_final(&self) -> bool {
        self.queries > 0
            && (self.cancelled || self.error.is_some() || (!self.texts.is_empty() && !self.calls))
    }

    /// How long everything has to stand still before the turn is over.
    pub(crate) fn patience(&self) -> Duration {
        let silence = self.queries > 0 && *self == Self { queries: self.queries, ..Self::default() };
        if self.is_final() {
            STANDS
        } else if silence {
            STANDS_IN_SILENCE
        } else {
            STANDS_WITHOUT_ANSWER
        }
    }

    pub(crate) fn answer(&self) -> String {
        self.texts.join("\n\n")
    }

    /// How the turn ended, given that it has, and what people should know about that.
    pub(crate) fn ending(&self) -> (How, Option<String>) {
        if self.cancelled {
            return (How::Cancelled, Some("The request was cancelled.".to_owned()));
        }
        match (&self.error, &self.notice) {
            (Some(error), _) => (how_of(error), Some(error.clone())),
            (None, Some(notice)) => (how_of(notice), Some(notice.clone())),
            (None, None) if self.texts.is_empty() => {
                (How::Empty, Some("The model returned no text.".to_owned()))
            }
            (None, None) => (How::Answered, None),
        }
    }
}

pub(crate) fn how_of(complaint: &str) -> How {
    let about = |words: &[&str]| words.iter().any(|word| complaint.contains(word));
    if about(&["truncated", "token limit"]) {
        How::CutOff
    } else if about(&["empty response", "no text"]) {
        How::Empty
    } else if about(&["blocked", "safety", "Response stopped", "prohibited"]) {
        How::Blocked
    } else {
        How::Error
    }
}

fn stopped(info: &str) -> bool {
    plain(info).starts_with("Response ")
}

/// Without the sign in front.
fn plain(info: &str) -> String {
    info.trim_start_matches(|c: char| !c.is_alphanumeric()).trim().to_owned()
}

struct Record {
    id: String,
    at: Timestamp,
    kind: String,
    text: String,
    calls: bool,
    tokens: Option<u64>,
}

/// The records since a moment, the first one first; of those with the same id the last.
fn records(bytes: &[u8], moment: Timestamp) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut take = |value: &Value| -> bool {
        let Some(record) = Record::read(value) else { return true };
        if record.at < moment {
            return false;
        }
        if !records.iter().any(|later| later.id == record.id) {
            records.push(record);
        }
        true
    };
    let whole = alhena_wire::from_slice::<Value>(bytes).ok();
    match whole.as_ref().and_then(|whole| whole.get("messages")).and_then(Value::as_array) {
        // Until 0.38 a session is one object.
        Some(messages) => {
            let _first = messages.iter().rev().find(|message| !take(message));
        }
        None => {
            let mut restated = Restated::default();
            for line in bytes.split(|byte| *byte == b'\n').rev() {
                if line.is_empty() || restated.is_checkpoint(line) {
                    continue;
                }
                let Ok(value) = alhena_wire::from_slice::<Value>(line) else { continue };
                if restated.go_back_to(value).iter().any(|value| !take(value)) {
                    break;
                }
            }
        }
    }
    records.reverse();
    records
}

/// The history as the CLI writes it once more, with new ids and times, after a call was cancelled (0.61.0): from a record of
/// the context to a `$set.messages` that names them all. Nobody said any of it then.
#[derive(Default)]
struct Restated {
    /// The messages of the checkpoint that was read last.
    named: Vec<String>,
    /// Those of them that stand right before it.
    held: Vec<Value>,
}

impl Restated {
    /// Whether a line is no record; of a checkpoint it is noted what it names.
    fn is_checkpoint(&mut self, line: &[u8]) -> bool {
        if !line.starts_with(b"{\"$") {
            return false;
        }
        let value = alhena_wire::from_slice::<Value>(line).unwrap_or_default();
        if let Some(messages) = value.pointer("/$set/messages").and_then(Value::as_array) {
            let ids = messages.iter().filter_map(|message| message.get("id")?.as_str());
            self.named = ids.map(str::to_owned).collect();
        }
        true
    }

    /// The records that are known to be no repetition, the last one first.
    fn go_back_to(&mut self, record: Value) -> Vec<Value> {
        let id = record.get("id").and_then(Value::as_str);
        if id.is_some_and(|id| self.named.iter().any(|named| named == id)) {
            if is_context(&record) {
                self.held.clear();
                self.named.clear();
            } else {
                self.held.push(record);
            }
            return Vec::new();
        }
        self.named.clear();
        let mut said = std::mem::take(&mut self.held);
        said.push(record);
        said
    }
}

/// Whether a record is the context that the CLI gives the model before anything is said.
fn is_context(record: &Value) -> bool {
    let text = record.pointer("/content/0/text").or_else(|| record.get("content"));
    text.and_then(Value::as_str).is_some_and(|text| text.starts_with("<session_context>"))
}

fn without_what_was_made_good(mut records: Vec<Record>) -> Vec<Record> {
    let last = records.iter().rev().find(|record| record.kind == "gemini" && !record.text.trim().is_empty());
    if let Some(last) = last.map(|record| record.at.as_millis()) {
        records.retain(|record| record.kind != "info" || record.at.as_millis() + SAME_ATTEMPT >= last);
    }
    records
}

impl Record {
    fn is_query(&self) -> bool {
        self.kind == "user" && !self.text.trim().is_empty()
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let kind = text("type")?.to_owned();
        let content = match value.get("content")? {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts
                .iter()
                .filter(|part| part.get("thought").and_then(Value::as_bool) != Some(true))
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect(),
            _ => String::new(),
        };
        let own = ["<session_context>", "<hook_context>"].iter().any(|tag| content.starts_with(tag));
        Some(Self {
            id: text("id")?.to_owned(),
            at: Timestamp::parse(text("timestamp")?)?,
            text: if kind == "user" && own { String::new() } else { content },
            kind,
            tokens: value.pointer("/tokens/total").and_then(Value::as_u64),
            calls: value.get("toolCalls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: u32, kind: &str, text: &str) -> String {
        let time = format!("2026-11-16T05:40:{second:02}.000Z");
        serde_json::json!({"id": format!("{second}{kind}"), "timestamp": time, "type": kind, "content": text})
            .to_string()
    }

    fn said(lines: &[String]) -> SessionTurn {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("session.jsonl");
        let earlier = [line(1, "user", "earlier"), line(2, "gemini", "The answer before.")];
        let checkpoint = ["{\"$set\":{\"messages\":[]}}".to_owned()];
        let all: Vec<String> = earlier.iter().chain(lines).chain(&checkpoint).cloned().collect();
        std::fs::write(&path, all.join("\n") + "\n").unwrap();
        SessionTurn::since(&path, Timestamp::parse("2026-11-16T05:40:03.000Z").unwrap())
    }

    #[test]
    fn a_turn_is_only_what_came_after_its_message() {
        let nothing = said(&[]);
        assert_eq!((nothing.queries, nothing.is_final()), (0, false));
        let begun = said(&[line(4, "user", "hello")]);
        assert_eq!(begun.patience(), STANDS_IN_SILENCE);
        assert_eq!(
            said(&[line(4, "user", "x"), line(5, "info", "Response stopped")]).patience(),
            STANDS_WITHOUT_ANSWER
        );
        assert_eq!((begun.queries, begun.is_final(), begun.answer()), (1, false, String::new()));
        let done = said(&[line(4, "user", "hello"), line(5, "gemini", "Hi.")]);
        assert_eq!(
            (done.is_final(), done.answer(), done.ending()),
            (true, "Hi.".into(), (How::Answered, None))
        );
    }

    /// As 0.61.0 writes it when a call is refused.
    #[test]
    fn a_history_that_is_written_once_more_is_not_said_again() {
        let named = |id: &str, kind: &str, text: &str| {
            let time = "2026-11-16T05:40:06.000Z";
            serde_json::json!({"id": id, "timestamp": time, "type": kind, "content": [{"text": text}]})
        };
        let again = [
            named("n1", "user", "<session_context>"),
            named("n2", "gemini", "The answer before."),
            named("n3", "user", "earlier"),
        ];
        let checkpoint = serde_json::json!({"$set": {"messages": again}}).to_string();
        let cancelled = [line(4, "user", "do it"), line(5, "info", "Request cancelled.")];
        let mut lines: Vec<String> = cancelled.to_vec();
        lines.extend(again.iter().map(Value::to_string));
        lines.push(checkpoint);
        let seen = said(&lines);
        assert_eq!((seen.queries, seen.answer()), (1, String::new()));
        assert_eq!(seen.ending().0, How::Cancelled);
        lines.extend([line(8, "user", "and then"), line(9, "gemini", "Then this.")]);
        let seen = said(&lines);
        assert_eq!((seen.queries, seen.answer(), seen.ending().0), (2, "Then this.".into(), How::Answered));
    }

    #[test]
    fn an_answer_that_is_missing_or_cut_off_says_why() {
        let how = |lines: &[String]| said(lines).ending().0;
        let asked = line(4, "user", "hello");
        let complaint = |text| how(&[asked.clone(), line(5, "error", text)]);
        assert_eq!(complaint("The model returned an empty response with no text or thoughts."), How::Empty);
        assert_eq!(complaint("The model response was blocked due to safety settings."), How::Blocked);
        assert_eq!(
            complaint("Model response was truncated because it exceeded the token limit."),
            How::CutOff
        );
        assert_eq!(complaint("[API Error: {\"error\":{\"code\":500}}]"), How::Error);
        let notice = |text| how(&[asked.clone(), line(5, "info", text), line(5, "gemini", "Half")]);
        assert_eq!(notice("⚠️  Response truncated due to token limits."), How::CutOff);
        assert_eq!(notice("⚠️  Response stopped due to safety reasons."), How::Blocked);
        assert_eq!(notice("Something else"), How::Answered);
        assert_eq!(how(&[asked.clone(), line(5, "info", "Request cancelled.")]), How::Cancelled);
        // A second attempt made it good.
        let retried = [
            asked,
            line(5, "info", "⚠️  Response stopped due to safety reasons."),
            line(8, "gemini", "Whole"),
        ];
        assert_eq!(how(&retried), How::Answered);
    }
}
