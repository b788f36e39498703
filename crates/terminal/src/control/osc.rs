//! Titles in the output of a pane: `ESC ] 0 ; TITLE BEL`, which may arrive in pieces.

/// Longer ones are no titles of the CLI's, which pads to 80 columns.
const LONGEST: usize = 1024;

#[derive(Debug, Default)]
enum Sequence {
    #[default]
    Ground,
    Escape,
    /// Inside of a sequence that ends with BEL or `ESC \`.
    Command(Vec<u8>),
    /// The same after an ESC.
    Closing(Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct Titles(Sequence);

impl Titles {
    /// The titles that end in this piece.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for byte in bytes {
            let state = std::mem::take(&mut self.0);
            self.0 = match (state, *byte) {
                (Sequence::Ground, 0x1b) => Sequence::Escape,
                (Sequence::Ground, _) => Sequence::Ground,
                (Sequence::Escape, b']') => Sequence::Command(Vec::new()),
                (Sequence::Escape, 0x1b) => Sequence::Escape,
                (Sequence::Escape, _) => Sequence::Ground,
                (Sequence::Command(command), 0x07) => {
                    found.extend(title(&command));
                    Sequence::Ground
                }
                (Sequence::Command(command), 0x1b) => Sequence::Closing(command),
                (Sequence::Closing(command), b'\\') => {
                    found.extend(title(&command));
                    Sequence::Ground
                }
                (Sequence::Closing(_), b']') => Sequence::Command(Vec::new()),
                (Sequence::Closing(_), 0x1b) => Sequence::Escape,
                (Sequence::Closing(_), _) => Sequence::Ground,
                (Sequence::Command(mut command), byte) => {
                    if command.len() < LONGEST {
                        command.push(byte);
                    }
                    Sequence::Command(command)
                }
            };
        }
        found
    }
}

fn title(command: &[u8]) -> Option<String> {
    let text = command.strip_prefix(b"0;").or_else(|| command.strip_prefix(b"2;"))?;
    Some(String::from_utf8_lossy(text).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_found_whole_in_pieces_and_among_other_sequences() {
        let mut titles = Titles::default();
        assert_eq!(titles.push("x\x1b]0;◇  Ready (a)   \x07y".as_bytes()), ["◇  Ready (a)"]);
        assert!(titles.push(b"\x1b]8;;http://x\x07\x1b[31mred\x1b]2;two").is_empty());
        assert!(titles.push(b" words\x1b").is_empty());
        assert_eq!(titles.push(b"\\"), ["two words"]);
        assert_eq!(titles.push(b"\x1b]0;a\x07\x1b]0;b\x07"), ["a", "b"]);
        assert_eq!(titles.push(b"\x1b]0;\x07"), [""]);
    }
}
