//! The lines of tmux's control mode: answers in blocks, and notifications between them.
//!
//! tmux 3.3a writes `%begin TIME NUMBER FLAGS`, the lines of an answer as they are, and `%end` or `%error` with the same three
//! words. Those make an answer safe: what a pane shows cannot end the block, unless it guesses the number.

use std::io::{self, BufRead};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Reply(Result<String, String>),
    Output {
        /// `%12`
        pane: String,
        /// What it wrote.
        bytes: Vec<u8>,
    },
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
}
