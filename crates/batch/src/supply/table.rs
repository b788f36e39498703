//! Tables: rows of fields between commas or tabs, in quotes where they need them (RFC 4180).
//!
//! Readers of such files take whatever comes. This one refuses what would make a job of half a file, above all a quote
//! that nobody closes.

use alhena_model::SettingError;

/// Where in a row one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Start,
    /// In a field without quotes.
    Plain,
    /// Inside of quotes.
    Quoted,
    /// Behind a quote that closes, or is the first of two.
    Closed,
}

impl State {
    /// The state behind this byte. A line end inside of quotes is a part of the field.
    pub fn after(self, byte: u8, separator: u8) -> Self {
        match (self, byte) {
            (State::Quoted, b'"') => State::Closed,
            (State::Quoted, _) | (State::Start | State::Closed, b'"') => State::Quoted,
            (_, byte) if byte == separator => State::Start,
            _ => State::Plain,
        }
    }
}

/// The fields of one row.
pub fn fields(row: &[u8], separator: u8) -> Result<Vec<String>, SettingError> {
    let fault = |message: &str| {
        SettingError::new(message, "Put the field into quotes, and write each quote in it twice.")
    };
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let (mut fields, mut field, mut state) = (Vec::new(), Vec::new(), State::Start);
    for &byte in row {
        let next = state.after(byte, separator);
        match (state, next) {
            (State::Start, State::Quoted) | (State::Quoted, State::Closed) => {}
            (State::Closed, State::Plain) => return Err(fault("there is text behind a quote that closes")),
            (_, State::Start) => fields.push(std::mem::take(&mut field)),
            _ => field.push(byte),
        }
        state = next;
    }
    if state == State::Quoted {
        return Err(fault("a quote is not closed"));
    }
    fields.push(field);
    let text = |bytes| {
        String::from_utf8(bytes).map_err(|_| SettingError::new("it is not UTF-8 text", "Save it as UTF-8."))
    };
    fields.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_what_others_write() {
        let cases: &[(&str, &[&str])] = &[
            ("a,b,c", &["a", "b", "c"]),
            ("a,,\r\n", &["a", "", ""]),
            ("\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\"\n", &["a,b", "say \"hi\"", "two\r\nlines"]),
            ("\"\",\"\"\"\"", &["", "\""]),
            ("5\" disk,b", &["5\" disk", "b"]),
            (" a , \"b\"", &[" a ", " \"b\""]),
            ("", &[""]),
            ("é,日本\n", &["é", "日本"]),
        ];
        for (row, expected) in cases {
            assert_eq!(fields(row.as_bytes(), b',').unwrap(), *expected, "{row:?}");
        }
        assert_eq!(fields(b"a,b\tc", b'\t').unwrap(), ["a,b", "c"]);
    }

    #[test]
    fn what_would_swallow_or_lose_something_is_refused() {
        for row in ["\"a", "a,\"b\n", "\"a\"b,c", "\"a\" ,c"] {
            assert!(fields(row.as_bytes(), b',').is_err(), "{row:?}");
        }
        assert!(fields(b"\xff,a", b',').is_err());
    }
}
