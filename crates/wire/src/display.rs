//! The one definition of characters that are unsafe to show: those that a terminal interprets, and invisible ones that
//! reorder, hide or split the text around them.
//!
//! It is here because every crate that shows or writes foreign text depends on this one. The page of `alhena serve` has the
//! same list in `crates/serve/page/text.js`.

/// Returns true for a character that a terminal interprets, or that makes the text around it look different from what it is.
///
/// Zero-width joiners are safe: emoji and several scripts need them.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(character, '\u{e0000}'..='\u{e007f}')
}

/// The same for text of several lines, in which newlines and tabs are safe.
pub fn is_unsafe_in_text(character: char) -> bool {
    !matches!(character, '\n' | '\t') && is_unsafe(character)
}

/// Appends a character in the form that JSON has for it: `\u001b`, or two of these.
pub fn push_escaped(character: char, text: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        text.push_str(&format!("\\u{unit:04x}"));
    }
}

/// The length of that form.
pub fn escaped_len(character: char) -> usize {
    character.len_utf16() * 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_acts_or_hides_is_unsafe_and_text_is_not() {
        let bad = [
            '\0'..='\u{1f}',           // C0
            '\u{7f}'..='\u{9f}',       // DEL and C1
            '\u{61c}'..='\u{61c}',     // bidirectional mark
            '\u{200b}'..='\u{200b}',   // zero-width space
            '\u{200e}'..='\u{200f}',   // bidirectional marks
            '\u{2028}'..='\u{2029}',   // line and paragraph separators
            '\u{202a}'..='\u{202e}',   // bidirectional embeddings and overrides
            '\u{2060}'..='\u{206f}',   // word joiner, bidirectional isolates, invisible operators
            '\u{feff}'..='\u{feff}',   // byte order mark
            '\u{fff9}'..='\u{fffb}',   // interlinear annotations
            '\u{e0000}'..='\u{e007f}', // tags
        ];
        for character in '\0'..=char::MAX {
            assert_eq!(
                is_unsafe(character),
                bad.iter().any(|range| range.contains(&character)),
                "{character:?}"
            );
        }
        assert!(!"Größe 日本語 👩\u{200d}💻 क\u{200c}ष\u{a0}".chars().any(is_unsafe));
    }

    #[test]
    fn text_may_have_lines_and_tabs() {
        let allowed: String =
            ('\0'..=char::MAX).filter(|c| is_unsafe(*c) && !is_unsafe_in_text(*c)).collect();
        assert_eq!(allowed, "\t\n");
    }

    #[test]
    fn an_escaped_character_is_the_same_in_json() {
        for character in ('\0'..=char::MAX).filter(|character| is_unsafe(*character)) {
            let mut text = "\"".to_owned();
            push_escaped(character, &mut text);
            assert_eq!(text.len(), 1 + escaped_len(character));
            text.push('"');
            assert_eq!(serde_json::from_str::<char>(&text).unwrap(), character);
        }
    }
}
