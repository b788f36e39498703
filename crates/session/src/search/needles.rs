//! Whether raw bytes can have what is asked for: most files and most records have not, and need not be decoded to know it.
//!
//! Gemini CLI writes letters as they are (0.61.0). Whoever else wrote a file may have escaped them; what is escaped is
//! therefore always looked into.

use std::io::{self, Read};

use regex::bytes::{Regex, RegexBuilder};

use super::query::Query;

/// So much of a file is held at once.
const CHUNK: usize = 1 << 20;
/// A word of 32 bytes can be written in three times as many, in other cases.
const OVERLAP: usize = 128;

/// The words of a query, as they can stand in JSON.
pub(super) struct Needles {
    /// The longest first: it is in the fewest files.
    words: Vec<Regex>,
    /// Any of them.
    any: Regex,
}

impl Needles {
    pub(super) fn of(query: &Query) -> Result<Self, regex::Error> {
        let mut words: Vec<String> =
            query.words().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let patterns: Vec<String> = words.iter().map(|word| pattern(word)).collect();
        Ok(Self {
            words: patterns.iter().map(|pattern| build(pattern)).collect::<Result<_, _>>()?,
            any: build(&patterns.join("|"))?,
        })
    }

    /// Whether a record can have one of the words.
    pub(super) fn any_in(&self, record: &[u8]) -> bool {
        self.any.is_match(record)
    }

    /// Whether a file can have all of them. The buffer is used again.
    pub(super) fn all_in(&self, file: &mut (impl Read + io::Seek), buffer: &mut Vec<u8>) -> io::Result<bool> {
        for (at, word) in self.words.iter().enumerate() {
            if at > 0 {
                file.rewind()?;
            }
            if !in_file(word, file, buffer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn in_file(word: &Regex, file: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.resize(CHUNK + OVERLAP, 0);
    let mut kept = 0;
    loop {
        let count = match file.read(buffer.get_mut(kept..).unwrap_or_default()) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let held = kept + count;
        if word.is_match(buffer.get(..held).unwrap_or_default()) {
            return Ok(true);
        }
        // A word may stand in two pieces.
        let start = held.saturating_sub(OVERLAP);
        buffer.copy_within(start..held, 0);
        kept = held - start;
    }
}

/// The word in any case, or an escape that can stand for a letter of it.
fn pattern(word: &str) -> String {
    let escaped = if word.is_ascii() { r"\\u00[3-7]" } else { r"\\u" };
    let word = regex::escape(word);
    format!("{word}|{escaped}")
}

fn build(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).case_insensitive(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(words: &[&str], text: &str) -> bool {
        let needles = Needles::of(&Query::new(words).unwrap()).unwrap();
        needles.all_in(&mut io::Cursor::new(text), &mut Vec::new()).unwrap()
    }

    #[test]
    fn every_word_has_to_be_there_in_any_case_and_anywhere() {
        assert!(has(&["needle", "HAY"], "some Hay and a NEEDLE"));
        assert!(!has(&["needle", "straw"], "some Hay and a NEEDLE"));
        assert!(has(&["grüße"], "GRÜSSE GRÜßE"));
        for before in CHUNK - 10..CHUNK + OVERLAP + 10 {
            assert!(has(&["needle"], &format!("{}needle", ".".repeat(before))), "{before}");
        }
    }

    #[test]
    fn what_is_escaped_is_looked_into() {
        assert!(has(&["abc"], r"\u0041bc") && has(&["grüße"], r"gr\u00fc\u00dfe"));
        assert!(!has(&["abc"], r"\u001b[31m"));
    }
}
