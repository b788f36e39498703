//! Text into words, the same way for what is searched and for what is asked.
//!
//! A word is a run of letters and digits, in lower case. Everything else divides, so `run_shell_command` is three words,
//! and whoever asks for it asks for the three in a row. Scripts that do not put spaces between words count by character.

use std::ops::Range;

/// The longest word that is kept apart from others, in bytes: what is longer (hashes, encoded data) is known by its
/// beginning.
pub(crate) const LONGEST: usize = 32;

/// Hands out every word of a text, and where it stands. The buffer is used again for each.
pub(crate) fn words(text: &str, buffer: &mut Vec<u8>, mut each: impl FnMut(&[u8], Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            if byte.is_ascii_alphanumeric() {
                at = word(text, at, buffer, &mut each);
            } else {
                at += 1;
            }
            continue;
        }
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        if !character.is_alphanumeric() {
            at += character.len_utf8();
        } else if is_a_word_alone(character) {
            let end = at + character.len_utf8();
            each(bytes.get(at..end).unwrap_or_default(), at..end);
            at = end;
        } else {
            at = word(text, at, buffer, &mut each);
        }
    }
}

/// One word from its first character on; gives the place after it.
fn word(text: &str, start: usize, buffer: &mut Vec<u8>, each: &mut impl FnMut(&[u8], Range<usize>)) -> usize {
    buffer.clear();
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            if !byte.is_ascii_alphanumeric() {
                break;
            }
            if buffer.len() < LONGEST {
                buffer.push(byte.to_ascii_lowercase());
            }
            at += 1;
            continue;
        }
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        if !character.is_alphanumeric() || is_a_word_alone(character) {
            break;
        }
        if buffer.len() < LONGEST {
            for lower in character.to_lowercase() {
                buffer.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        at += character.len_utf8();
    }
    each(buffer, start..at);
    at
}

/// Chinese, Japanese, Thai, Lao, Khmer and Burmese do not divide words.
fn is_a_word_alone(character: char) -> bool {
    matches!(u32::from(character),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff
        | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// All words of a text.
pub(crate) fn list(text: &str) -> Vec<Vec<u8>> {
    let mut list = Vec::new();
    words(text, &mut Vec::new(), |word, _| list.push(word.to_vec()));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Vec<String> {
        list(text).into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        assert_eq!(
            of("Run_shell-command(x2);  Ünïcode É\u{2028}b"),
            ["run", "shell", "command", "x2", "ünïcode", "é", "b"]
        );
        assert_eq!(of("日本語 and ไทย"), ["日", "本", "語", "and", "ไ", "ท", "ย"]);
        assert_eq!(of(" .,;\n"), [] as [&str; 0]);
        assert_eq!(of("naïveté日x"), ["naïveté", "日", "x"]);
    }

    #[test]
    fn long_words_are_known_by_their_beginning() {
        let long = "a".repeat(100);
        assert_eq!(of(&long), ["a".repeat(LONGEST)]);
        let umlauts = "ä".repeat(100);
        assert_eq!(of(&umlauts), ["ä".repeat(LONGEST / 2)]);
    }

    proptest! {
        #[test]
        fn words_do_not_depend_on_case_or_on_what_divides_them(words in prop::collection::vec("[a-z0-9]{1,10}", 0..10)) {
            prop_assert_eq!(of(&words.join("-- ").to_uppercase()), words);
        }

        #[test]
        fn every_word_is_text(text in any::<String>()) {
            for word in list(&text) {
                prop_assert!(!word.is_empty() && word.len() <= LONGEST + 12);
                prop_assert!(std::str::from_utf8(&word).is_ok());
            }
        }
    }
}
