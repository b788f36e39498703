//! What somebody gave to `alhena parse`: told by the keys of the first JSON in it.

use std::io::{self, Read};

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::From;

/// How far to look: noise of the CLI may come first.
const FARTHEST: usize = 1 << 20;

/// Reads no more than it takes to tell, and gives that back too. What cannot be told is taken for a stream.
pub fn look(input: &mut dyn Read) -> io::Result<(Vec<u8>, From)> {
    let (mut head, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = input.read(&mut buffer)?;
        head.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let all = count == 0 || head.len() >= FARTHEST;
        match (recognised(&head), all) {
            (Some(from), _) => return Ok((head, from)),
            (None, true) => return Ok((head, From::StreamJson)),
            (None, false) => {}
        }
    }
}

fn recognised(head: &[u8]) -> Option<From> {
    let mut rest = head;
    while !rest.is_empty() {
        let start = rest.trim_ascii_start();
        let found = match start.first() {
            Some(b'{') => ObjectOutline::of(start).form(),
            // Records of a session, in an array.
            Some(b'[') => {
                let first = start.get(1..).unwrap_or_default().trim_ascii_start();
                ObjectOutline::of(first).form().filter(|form| *form == From::Message)
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        // Noise takes whole lines.
        let end = start.iter().position(|byte| *byte == b'\n').map_or(start.len(), |at| at + 1);
        rest = start.get(end..).unwrap_or_default();
    }
    None
}

/// What can be seen of an object, also of one that goes on.
#[derive(Default)]
struct ObjectOutline {
    keys: Vec<String>,
    kind: Option<String>,
}

impl ObjectOutline {
    fn of(text: &[u8]) -> Self {
        let mut seen = Self::default();
        let _goes_on = serde_json::Deserializer::from_slice(text).deserialize_map(&mut seen);
        seen
    }

    fn form(&self) -> Option<From> {
        let has = |key: &str| self.keys.iter().any(|seen| seen == key);
        let kind = self.kind.as_deref().unwrap_or("");
        let is_record = has("id") && ["user", "gemini", "info", "warning", "error"].contains(&kind);
        let is_event = ["init", "message", "tool_use", "tool_result", "error", "result"].contains(&kind);
        let is_session =
            has("sessionId") && ["projectHash", "startTime", "messages"].iter().any(|key| has(key));
        if is_session || has("$set") || has("$rewindTo") {
            Some(From::Session)
        } else if is_record {
            Some(From::Message)
        } else if is_event {
            Some(From::StreamJson)
        } else if has("response") || has("stats") || (has("error") && !has("type")) {
            Some(From::Json)
        } else {
            None
        }
    }
}

impl<'de> Visitor<'de> for &mut ObjectOutline {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.keys.push(key);
            match self.keys.last().is_some_and(|key| key == "type") {
                true => self.kind = map.next_value::<Value>()?.as_str().map(str::to_owned),
                false => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> From {
        look(&mut text.as_bytes()).unwrap_or_else(|_| unreachable!()).1
    }

    #[test]
    fn what_was_given_is_told_by_its_keys() {
        assert_eq!(told(r#"{"type":"init","session_id":"s"}"#), From::StreamJson);
        assert_eq!(told("Loaded.\n{\n  \"session_id\": \"s\",\n  \"response\": \"Hi\"\n}"), From::Json);
        assert_eq!(told(r#"{"error":{"type":"Error","message":"no"}}"#), From::Json);
        assert_eq!(told(r#"{"sessionId":"s","projectHash":"h","kind":"main"}"#), From::Session);
        assert_eq!(told("{\n  \"sessionId\": \"s\",\n  \"messages\": [{\"id\": \"1\""), From::Session);
        assert_eq!(told(r#"{"id":"1","type":"gemini","content":"Hi"}"#), From::Message);
        assert_eq!(told(r#"[ {"id":"1","type":"user","content":"Hi"} ]"#), From::Message);
        // An event of the stream has no id.
        assert_eq!(told(r#"{"type":"error","severity":"error","message":"no"}"#), From::StreamJson);
        for other in ["", "plain text", "{", "[1]", "{\"a\": 1}"] {
            assert_eq!(told(other), From::StreamJson, "{other}");
        }
    }

    #[test]
    fn every_recording_is_told() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/data/recordings");
        let mut told_of = 0;
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stdout = std::fs::read_to_string(entry.path().join("stdout")).unwrap_or_default();
            // Of a run that failed early there is nothing to tell by.
            if stdout.contains('{') && name.contains("json") {
                let expected = if name.contains("streamjson") { From::StreamJson } else { From::Json };
                assert_eq!(told(&stdout), expected, "{name}");
                told_of += 1;
            }
        }
        assert!(told_of > 10, "{told_of}");
    }

    #[test]
    fn no_more_is_read_than_it_takes() {
        let mut endless = (&b"{\"type\":\"init\"}\n"[..]).chain(io::repeat(b'x'));
        let (head, from) = look(&mut endless).unwrap_or_else(|_| unreachable!());
        assert_eq!((from, head.len() <= 64 << 10), (From::StreamJson, true));
        assert_eq!(
            look(&mut io::repeat(b'x')).map(|(head, _)| head.len() <= FARTHEST + (64 << 10)).ok(),
            Some(true)
        );
    }
}
