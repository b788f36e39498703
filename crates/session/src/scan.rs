//! A quick look into JSON: where values begin and end, without decoding them.
//!
//! A list of sessions needs a few words of each record, and a record can hold megabytes of tool output (with its file's
//! contents before and after, since 0.2). Strings are skipped by looking for quotes, which is several times as fast as
//! reading them. Nothing here checks that what is skipped is valid; whoever needs a value decodes it and finds out.

/// A place in JSON text. Every step gives `None` when the text ends or is not JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether arrays over several lines may be taken for printed ones; not after one that was not.
    printed: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, printed: true }
    }

    /// The next byte that is no white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the next byte if it is this one.
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// The next value, skipped, as it is written.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_nested()?,
            _ => self.skip_word()?,
        }
        self.bytes.get(start..self.at)
    }

    /// The next value if it is an array over several lines, as `JSON.stringify(..., null, 2)` prints it; else nothing moves.
    ///
    /// A string has no line ends in it, so the first line with a bracket that is indented as the array is its end. That is
    /// found without looking at what is in between.
    pub(crate) fn printed_array(&mut self) -> Option<&'a [u8]> {
        if !self.printed {
            return None;
        }
        let mut ahead = *self;
        let start = (ahead.peek()? == b'[').then_some(ahead.at)?;
        let inside = ahead.bytes.get(start + 1..)?.strip_prefix(b"\n")?;
        let indent = inside.iter().take_while(|byte| **byte == b' ').count().checked_sub(2)?;
        let end = [b"\n".as_slice(), &b" ".repeat(indent), b"]"].concat();
        let found = memchr::memmem::find(inside, &end);
        self.printed &= found.is_some();
        let length = found? + end.len();
        self.at = start + 2 + length;
        self.bytes.get(start..self.at)
    }

    fn skip_string(&mut self) -> Option<()> {
        let mut from = self.at + 1;
        loop {
            let quote = from + memchr::memchr(b'"', self.bytes.get(from..)?)?;
            let before = self.bytes.get(from..quote)?;
            let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
            from = quote + 1;
            if escapes % 2 == 0 {
                self.at = from;
                return Some(());
            }
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Some(());
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A number, `true`, `false` or `null`: to what follows it, which must be there.
    fn skip_word(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let end =
            rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))?;
        self.at += end;
        (end > 0).then_some(())
    }

    /// Enters an object: from here on [`key`](Self::key) gives its keys.
    pub(crate) fn enter(&mut self, open: u8) -> Option<()> {
        self.take(open)
    }

    /// The next key of an object, up to its value; `None` at the object's end.
    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        if self.peek()? != b'"' {
            return None;
        }
        let key = self.value()?;
        self.take(b':')?;
        inside(key)
    }

    /// All that has not been looked at.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Whether another item of an array follows; up to it.
    pub(crate) fn item(&mut self) -> Option<()> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        (self.peek()? != b']').then_some(())
    }
}

/// What stands between the quotes of a string, still escaped.
pub(crate) fn inside(string: &[u8]) -> Option<&[u8]> {
    string.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// A string, decoded; anything else is `None`. Half a surrogate pair becomes U+FFFD.
pub(crate) fn text(value: &[u8]) -> Option<String> {
    let inner = std::str::from_utf8(inside(value)?).ok()?;
    match inner.contains('\\') {
        false => Some(inner.to_owned()),
        true => alhena_wire::Raw::from_text(std::str::from_utf8(value).ok()?)?.decode().ok(),
    }
}

/// A number that counts; anything else is 0.
pub(crate) fn count(value: &[u8]) -> u64 {
    let text = std::str::from_utf8(value).unwrap_or("");
    text.parse().or_else(|_| text.parse::<f64>().map(|number| number as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn values_end_where_they_end() {
        let text = br#" {"a\"b\\":[1,{"]":"}"},"\\"],"c" : null , "d":-1.5e3}  tail"#;
        let mut cursor = Cursor::new(text);
        cursor.enter(b'{').unwrap();
        let mut seen = Vec::new();
        while let Some(key) = cursor.key() {
            seen.push((key, cursor.value().unwrap()));
        }
        let expected: [(&[u8], &[u8]); 3] =
            [(br#"a\"b\\"#, br#"[1,{"]":"}"},"\\"]"#), (b"c", b"null"), (b"d", b"-1.5e3")];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_cut_off_has_no_end() {
        let whole = br#"{"a":"x\"y","b":[1,2]}"#;
        for end in 0..whole.len() {
            assert_eq!(Cursor::new(&whole[..end]).value(), None, "{end}");
        }
        assert_eq!(Cursor::new(whole).value(), Some(&whole[..]));
    }

    #[test]
    fn deep_nesting_and_many_escapes_cost_no_more_than_their_length() {
        let deep = [vec![b'['; 1 << 20], vec![b']'; 1 << 20]].concat();
        assert_eq!(Cursor::new(&deep).value().map(<[u8]>::len), Some(deep.len()));
        let escaped = [b"\"".to_vec(), br#"\\\""#.repeat(1 << 18), b"\"".to_vec()].concat();
        assert_eq!(Cursor::new(&escaped).value().map(<[u8]>::len), Some(escaped.len()));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\\n\u{e9}{}\\[\\],:]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,5}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_printed_array_ends_where_it_ends(items in prop::collection::vec(any_json(), 1..5)) {
            let text = serde_json::to_string_pretty(&json!({"a": items, "b": [[], [1]]})).unwrap();
            let mut cursor = Cursor::new(text.as_bytes());
            cursor.enter(b'{').unwrap();
            cursor.key().unwrap();
            let array = cursor.printed_array().unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(array).unwrap(), json!(items));
            prop_assert_eq!(cursor.key(), Some(&b"b"[..]));
            let compact = serde_json::to_vec(&items).unwrap();
            let mut cursor = Cursor::new(&compact);
            prop_assert_eq!(cursor.printed_array(), None);
            prop_assert_eq!(cursor.value().map(<[u8]>::len), Some(compact.len()));
        }

        #[test]
        fn a_skipped_value_is_the_value(value in any_json(), pretty in any::<bool>()) {
            let value = json!([value]);
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap() + "  {}";
            let skipped = Cursor::new(text.as_bytes()).value().unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(skipped).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut cursor = Cursor::new(&bytes);
            while let Some(value) = cursor.value() {
                prop_assert!(!value.is_empty());
            }
        }
    }
}
