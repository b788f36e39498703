//! The words of a record: what somebody could look for in it.
//!
//! Prompts, answers, thoughts, the arguments of tools and what they gave back; not the file contents that Gemini CLI keeps
//! beside every diff (`originalContent`, `newContent`), which repeat the arguments, and no media.

use crate::scan::{Cursor, inside};

/// Where in a record a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Text,
    Thought,
    Argument,
    Result,
}

/// Hands out every text of a message record, decoded, with its place. The buffer is used again for each.
pub(crate) fn texts(record: &[u8], buffer: &mut String, mut each: impl FnMut(TextKind, &str)) {
    let mut walk = Walk { buffer, each: &mut each };
    let _broken = walk.record(record);
}

struct Walk<'a> {
    buffer: &'a mut String,
    each: &'a mut dyn FnMut(TextKind, &str),
}

impl Walk<'_> {
    fn record(&mut self, record: &[u8]) -> Option<()> {
        let mut keys = Cursor::new(record);
        keys.enter(b'{')?;
        while let Some(key) = keys.key() {
            let value = keys.value()?;
            match key {
                b"content" => self.parts(value, TextKind::Text)?,
                b"thoughts" => self.strings(value, TextKind::Thought, 0)?,
                b"toolCalls" => self.calls(value)?,
                _ => {}
            }
        }
        Some(())
    }

    fn calls(&mut self, list: &[u8]) -> Option<()> {
        let mut items = Cursor::new(list);
        items.enter(b'[')?;
        while items.item().is_some() {
            let mut keys = Cursor::new(items.value()?);
            keys.enter(b'{')?;
            while let Some(key) = keys.key() {
                let value = keys.value()?;
                match key {
                    b"name" => self.string(value, TextKind::Argument),
                    b"args" => self.strings(value, TextKind::Argument, 0)?,
                    b"result" => self.parts(value, TextKind::Result)?,
                    _ => {}
                }
            }
        }
        Some(())
    }

    /// A string, a part, or parts.
    fn parts(&mut self, content: &[u8], place: TextKind) -> Option<()> {
        match content.first()? {
            b'"' => self.string(content, place),
            b'{' => self.part(content, place)?,
            b'[' => {
                let mut items = Cursor::new(content);
                items.enter(b'[')?;
                while items.item().is_some() {
                    match items.value()? {
                        text if text.starts_with(b"\"") => self.string(text, place),
                        part => self.part(part, place)?,
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn part(&mut self, part: &[u8], place: TextKind) -> Option<()> {
        let mut keys = Cursor::new(part);
        keys.enter(b'{')?;
        while let Some(key) = keys.key() {
            let value = keys.value()?;
            match key {
                b"text" => self.string(value, place),
                b"functionCall" => self.strings(value, TextKind::Argument, 0)?,
                // The same results stand in the tool calls; a record of nothing else is not looked at.
                b"functionResponse" if place == TextKind::Result => self.response(value)?,
                _ => {}
            }
        }
        Some(())
    }

    fn response(&mut self, response: &[u8]) -> Option<()> {
        let mut keys = Cursor::new(response);
        keys.enter(b'{')?;
        while let Some(key) = keys.key() {
            let value = keys.value()?;
            if key == b"response" {
                self.strings(value, TextKind::Result, 0)?;
            }
        }
        Some(())
    }

    /// Every string in a value, however deep; keys and times are not.
    fn strings(&mut self, value: &[u8], place: TextKind, depth: u32) -> Option<()> {
        const DEEPEST: u32 = 16;
        match value.first()? {
            b'"' => self.string(value, place),
            b'[' if depth < DEEPEST => {
                let mut items = Cursor::new(value);
                items.enter(b'[')?;
                while items.item().is_some() {
                    self.strings(items.value()?, place, depth + 1)?;
                }
            }
            b'{' if depth < DEEPEST => {
                let mut keys = Cursor::new(value);
                keys.enter(b'{')?;
                while let Some(key) = keys.key() {
                    let value = keys.value()?;
                    if !matches!(key, b"id" | b"timestamp" | b"data" | b"thoughtSignature") {
                        self.strings(value, place, depth + 1)?;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn string(&mut self, string: &[u8], place: TextKind) {
        self.buffer.clear();
        if let Some(inner) = inside(string) {
            unescape(inner, self.buffer);
        }
        if !self.buffer.is_empty() {
            (self.each)(place, self.buffer);
        }
    }
}

/// Decodes the inside of a JSON string. What is wrong in it becomes U+FFFD.
fn unescape(mut rest: &[u8], out: &mut String) {
    while let Some(at) = memchr::memchr(b'\\', rest) {
        push(rest.get(..at).unwrap_or_default(), out);
        let escape = rest.get(at + 1).copied();
        let mut used = at + 2;
        match escape {
            Some(b'n') => out.push('\n'),
            Some(b't') => out.push('\t'),
            Some(b'r') => out.push('\r'),
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{c}'),
            Some(b'u') => {
                let (decoded, length) = unicode(rest.get(at..).unwrap_or_default());
                out.push(decoded);
                used = at + length;
            }
            Some(other) => out.push(char::from(other)),
            None => {}
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    push(rest, out);
}

fn push(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}

/// The character at `\uXXXX` or `\uXXXX\uXXXX`, and how long that is.
fn unicode(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    };
    match (unit(0), unit(6)) {
        (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        (Some(code), _) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        (None, _) => (char::REPLACEMENT_CHARACTER, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn of(record: &serde_json::Value) -> Vec<(TextKind, String)> {
        let mut found = Vec::new();
        texts(record.to_string().as_bytes(), &mut String::new(), |place, text| {
            found.push((place, text.to_owned()))
        });
        found
    }

    #[test]
    fn everything_that_was_said_is_found_and_nothing_else() {
        let record = json!({
            "id": "g", "timestamp": "2026", "type": "gemini", "content": "An \"answer\"",
            "thoughts": [{"subject": "S", "description": "D", "timestamp": "2026"}],
            "tokens": {"input": 1}, "model": "m",
            "toolCalls": [{
                "id": "c", "name": "write_file", "args": {"file_path": "a.txt", "content": "Grüße\n", "n": 1},
                "result": [
                    {"functionResponse": {"id": "c", "name": "write_file", "response": {"output": "Wrote it"}}},
                    {"inlineData": {"data": "AAAA", "mimeType": "image/png"}},
                ],
                "status": "success", "resultDisplay": {"originalContent": "old", "newContent": "Grüße"},
                "description": "Writing",
            }],
        });
        let expected = [
            (TextKind::Text, "An \"answer\""),
            (TextKind::Thought, "S"),
            (TextKind::Thought, "D"),
            (TextKind::Argument, "write_file"),
            (TextKind::Argument, "a.txt"),
            (TextKind::Argument, "Grüße\n"),
            (TextKind::Result, "Wrote it"),
        ];
        assert_eq!(of(&record), expected.map(|(place, text)| (place, text.to_owned())));
    }

    #[test]
    fn parts_of_every_kind_are_understood() {
        let texts = |content: serde_json::Value| of(&json!({"id": "u", "type": "user", "content": content}));
        let text = |text: &str| vec![(TextKind::Text, text.to_owned())];
        assert_eq!(texts(json!("plain")), text("plain"));
        assert_eq!(texts(json!({"text": "part"})), text("part"));
        assert_eq!(
            texts(json!([{"text": "a"}, "b", {"inlineData": {"data": "x"}}])),
            [text("a"), text("b")].concat()
        );
        assert_eq!(
            texts(json!([{"functionCall": {"id": "c", "name": "glob", "args": {"pattern": "*"}}}])),
            [(TextKind::Argument, "glob".to_owned()), (TextKind::Argument, "*".to_owned())]
        );
        assert_eq!(texts(json!([{"functionResponse": {"response": {"output": "x"}}}])), []);
    }

    proptest! {
        #[test]
        fn decoding_agrees_with_serde(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            let mut decoded = String::new();
            unescape(inside(json.as_bytes()).unwrap(), &mut decoded);
            prop_assert_eq!(decoded, text);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            texts(&bytes, &mut String::new(), |_, _| ());
            unescape(&bytes, &mut String::new());
        }
    }

    #[test]
    fn surrogates_are_put_together_and_lone_ones_replaced() {
        let decode = |text: &str| {
            let mut out = String::new();
            unescape(text.as_bytes(), &mut out);
            out
        };
        assert_eq!(decode(r"\ud83c\udf0d \ud83c \u00e9\/"), "🌍 \u{fffd} é/");
    }
}
