//! What tmux writes: the lines of its control mode, and the titles in a pane's output.
//!
//! tmux 3.3a writes `%begin TIME NUMBER FLAGS`, the lines of an answer as they are, and `%end` or `%error` with the same three
//! words. Those make an answer safe: what a pane shows cannot end the block, unless it guesses the number.

use std::io::{self, BufRead};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Reply(Result<String, String>),
    Output { pane: String, bytes: Vec<u8> },
    Windows,
    Exit,
    Other,
}

pub(super) struct NoticeReader<R> {
    from: R,
    line: Vec<u8>,
}

impl<R: BufRead> NoticeReader<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, line: Vec::new() }
    }

    /// The next thing; none when tmux is gone.
    pub(super) fn next(&mut self) -> io::Result<Option<Notice>> {
        if !self.read()? {
            return Ok(None);
        }
        let (word, rest) = words(&self.line);
        Ok(Some(match word {
            b"%begin" => {
                let id = rest.to_vec();
                return self.block(&id).map(Some);
            }
            b"%output" => {
                let (pane, data) = words(rest);
                Notice::Output { pane: text(pane), bytes: unescaped(data) }
            }
            b"%extended-output" => {
                let (pane, rest) = words(rest);
                let data =
                    rest.windows(3).position(|three| three == b" : ").and_then(|at| rest.get(at + 3..));
                Notice::Output { pane: text(pane), bytes: unescaped(data.unwrap_or_default()) }
            }
            b"%exit" => Notice::Exit,
            b"%window-add" | b"%window-close" | b"%unlinked-window-close" | b"%sessions-changed" => {
                Notice::Windows
            }
            _ => Notice::Other,
        }))
    }

    fn block(&mut self, id: &[u8]) -> io::Result<Notice> {
        let mut answer = Vec::new();
        while self.read()? {
            let (word, rest) = words(&self.line);
            if rest == id && (word == b"%end" || word == b"%error") {
                let failed = word == b"%error";
                let answer = String::from_utf8_lossy(&answer).into_owned();
                return Ok(Notice::Reply(if failed { Err(answer.trim().to_owned()) } else { Ok(answer) }));
            }
            answer.extend_from_slice(&self.line);
            answer.push(b'\n');
        }
        Ok(Notice::Exit)
    }

    fn read(&mut self) -> io::Result<bool> {
        self.line.clear();
        if self.from.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(true)
    }
}

fn words(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default()),
        None => (line, &[]),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output has control characters and the backslash as three octal digits.
fn unescaped(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match digits.filter(|_| *first == b'\\') {
            Some(digits) => {
                bytes.push(digits.iter().fold(0u8, |sum, digit| (sum << 3) | (digit - b'0')));
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

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

/// Finds titles in the output of a pane: `ESC ] 0 ; TITLE BEL`, which may arrive in pieces.
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

    fn all(text: &str) -> Vec<Notice> {
        let mut reader = NoticeReader::new(text.as_bytes());
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    #[test]
    fn answers_and_notifications_are_told_apart() {
        let said = "%begin 1 7 1\nfirst\n%end 1 8 1\n%end 1 7 1\n%output %3 a\\033]0;x\\007\\134z é\n\
                    %begin 2 9 1\ncan't find pane\n%error 2 9 1\n%window-close @3\n%exit\n";
        assert_eq!(
            all(said),
            [
                Notice::Reply(Ok("first\n%end 1 8 1\n".to_owned())),
                Notice::Output { pane: "%3".to_owned(), bytes: "a\x1b]0;x\x07\\z é".into() },
                Notice::Reply(Err("can't find pane".to_owned())),
                Notice::Windows,
                Notice::Exit,
            ]
        );
    }

    #[test]
    fn extended_output_is_output() {
        assert_eq!(
            all("%extended-output %12 30 : x : y\n"),
            [Notice::Output { pane: "%12".to_owned(), bytes: b"x : y".to_vec() }]
        );
    }

    #[test]
    fn half_a_block_is_the_end() {
        assert_eq!(all("%begin 1 1 1\nhalf"), [Notice::Exit]);
    }

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
