//! The text of a chunk, decoded in one pass.
//!
//! Most chunks of an answer have a line end or a quote in them. serde decodes such a string into memory that it lets grow step
//! by step, and then copies it; here memory is asked for once.

use std::borrow::Cow;

/// A JSON string with its quotes, if all its escapes are short ones (`\n`, not `\u000a`). Any other is for serde, which also
/// knows what is wrong with it.
pub(super) fn with_short_escapes(quoted: &str) -> Option<Cow<'_, str>> {
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    while let Some(at) = first_unplain(rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(at)?;
        let character = match *escape.as_bytes().first_chunk()? {
            [b'\\', b'n'] => '\n',
            [b'\\', b'"'] => '"',
            [b'\\', b'\\'] => '\\',
            [b'\\', b't'] => '\t',
            [b'\\', b'r'] => '\r',
            [b'\\', b'/'] => '/',
            [b'\\', b'b'] => '\u{8}',
            [b'\\', b'f'] => '\u{c}',
            _ => return None,
        };
        if text.capacity() == 0 {
            // What is decoded is never longer than what is written.
            text.reserve_exact(rest.len());
        }
        text.push_str(plain);
        text.push(character);
        rest = escape.get(2..)?;
    }
    if text.is_empty() {
        return Some(Cow::Borrowed(rest));
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// Where the first byte is that does not stand for itself in a JSON string, or must not stand there: eight at a time.
fn first_unplain(bytes: &[u8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    // In each byte the highest bit, where it is below a number; above the first one that is, it may be wrong.
    let below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word & HIGHEST;
    let is = |word: u64, byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = below(word, b' ') | is(word, b'"') | is(word, b'\\');
        if found != 0 {
            return Some(number * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let last = rest.iter().position(|byte| matches!(byte, 0..b' ' | b'"' | b'\\'))?;
    Some(words.len() * 8 + last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_needs_no_decoding_is_borrowed() {
        for text in ["", "plain", "größer als acht Bytes → 文字 😀", "\u{7f}\u{80}\u{ff}"] {
            let quoted = format!("\"{text}\"");
            assert!(matches!(with_short_escapes(&quoted), Some(Cow::Borrowed(same)) if same == text));
        }
    }

    #[test]
    fn what_it_cannot_read_is_left_to_others() {
        for quoted in
            [r#""\u00e9""#, r#""a\""#, r#""a"b""#, "\"a\nb\"", r#""\x""#, "\"", "", "null", r#""é\"#]
        {
            assert_eq!(with_short_escapes(quoted), None, "{quoted}");
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_reads(text in "[a-z\"\\\\/\n\t\r\u{8}\u{c}é文😀 ]{0,40}") {
            let quoted = serde_json::to_string(&text).unwrap();
            let read = with_short_escapes(&quoted);
            prop_assert_eq!(read.as_deref(), Some(&*text));
        }

        #[test]
        fn what_serde_does_not_read_it_does_not_read(quoted in "\"[a-z\"\\\\/un0\u{1}\u{1f}\u{20}é]{0,20}\"") {
            let read = serde_json::from_str::<String>(&quoted).ok();
            if let Some(text) = with_short_escapes(&quoted) {
                prop_assert_eq!(Some(text.into_owned()), read);
            }
        }

        #[test]
        fn the_first_byte_that_is_not_plain_is_found(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let first = bytes.iter().position(|byte| *byte < b' ' || [b'"', b'\\'].contains(byte));
            prop_assert_eq!(first_unplain(&bytes), first);
        }
    }
}
