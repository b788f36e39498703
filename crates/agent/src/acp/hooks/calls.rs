//! The calls that the model asked for, from what the CLI records of the API's answers (`--record-responses`).
//!
//! A line is an answer, written when its stream has ended and before any of its tools runs. Its calls have the ids by which the
//! CLI asks about them, since 0.43.0.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use alhena_wire::frame::{Frame, Framer};
use serde_json::{Value, json};

use crate::follow::Follower;
use crate::recording::LONGEST_LINE;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub name: String,
    pub input: Value,
}

/// The calls that nobody has taken yet.
pub(super) struct Calls {
    file: Follower,
    framer: Framer,
    known: HashMap<String, Call>,
}

/// Calls that the CLI never asks about are forgotten when there are so many.
const MOST: usize = 10_000;

impl Calls {
    pub(super) fn follow(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Follower::open(path)?, framer: Framer::new(LONGEST_LINE), known: HashMap::new() })
    }

    /// The call of this id, once.
    pub(super) fn take(&mut self, id: &str) -> Option<Call> {
        self.read();
        self.known.remove(id)
    }

    fn read(&mut self) {
        let Self { file, framer, known } = self;
        loop {
            let bytes = file.next().unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    if known.len() > MOST {
                        known.clear();
                    }
                    read_line(line, known);
                }
            });
        }
        // Nobody reads it twice.
        file.forget();
    }
}

fn read_line(line: &[u8], known: &mut HashMap<String, Call>) {
    let Ok(mut answer) = serde_json::from_slice::<Value>(line) else { return };
    let chunks = answer.get_mut("response").and_then(Value::as_array_mut).map(std::mem::take);
    for chunk in chunks.unwrap_or_default() {
        let candidates = chunk.get("candidates").and_then(Value::as_array).into_iter().flatten();
        let parts =
            candidates.filter_map(|candidate| candidate.pointer("/content/parts")?.as_array()).flatten();
        for call in parts.filter_map(|part| part.get("functionCall")) {
            let text = |key: &str| call.get(key).and_then(Value::as_str).map(str::to_owned);
            if let (Some(id), Some(name)) = (text("id"), text("name")) {
                let input = call.get("args").cloned().unwrap_or_else(|| json!({}));
                known.insert(id, Call { name, input });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn answer(id: &str, name: &str, args: &Value) -> String {
        let part = json!({"functionCall": {"id": id, "name": name, "args": args}});
        let chunk = json!({"candidates": [{"content": {"parts": [{"text": "x"}, part]}}]});
        json!({"method": "generateContentStream", "response": [{}, chunk]}).to_string()
    }

    #[test]
    fn a_call_is_known_by_its_id_as_soon_as_its_answer_is_written_and_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("responses");
        let mut calls = Calls::follow(&path).unwrap();
        assert_eq!(calls.take("a"), None);
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        writeln!(file, "not json\n[]\n{}", answer("a", "read_file", &json!({"file_path": "x"}))).unwrap();
        write!(file, "{}", answer("b", "glob", &json!({}))).unwrap();
        let call = Call { name: "read_file".to_owned(), input: json!({"file_path": "x"}) };
        assert_eq!(calls.take("a"), Some(call));
        assert_eq!((calls.take("a"), calls.take("b")), (None, None));
        writeln!(file).unwrap();
        assert_eq!(calls.take("b").unwrap().name, "glob");
    }
}
