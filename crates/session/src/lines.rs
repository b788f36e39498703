//! Lines of a file with their places, however long they are, with no more memory than the longest takes.
//!
//! Gemini CLI ends records with `\n` and nothing else (0.39 on); a resume can put a whole conversation on one line.

use std::io::{self, Read};

const CHUNK: usize = 256 << 10;

/// A line and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Without its line end.
    pub(crate) bytes: &'a [u8],
    /// Whether its line end is there; otherwise somebody may still be writing.
    pub(crate) ended: bool,
}

/// Reads lines. Its buffer can be kept for the next file.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer holds bytes that were not handed out.
    start: usize,
    end: usize,
    /// Where in the file `start` is.
    offset: u64,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R, mut buffer: Vec<u8>) -> Self {
        buffer.resize(buffer.len().max(CHUNK), 0);
        Self { input, buffer, start: 0, end: 0, offset: 0 }
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.start;
        let (length, ended) = loop {
            let fresh = self.buffer.get(searched..self.end).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                break (searched + at - self.start, true);
            }
            searched = self.end;
            if self.start > 0 {
                let moved = self.start;
                self.buffer.copy_within(self.start..self.end, 0);
                (searched, self.end, self.start) = (searched - moved, self.end - moved, 0);
            }
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            match self.input.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) if self.end == self.start => return Ok(None),
                Ok(0) => break (self.end - self.start, false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        let (start, offset) = (self.start, self.offset);
        let taken = length + usize::from(ended);
        self.start += taken;
        self.offset += taken as u64;
        let bytes = self.buffer.get(start..start + length).unwrap_or_default();
        Ok(Some(Line { offset, bytes, ended }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(bytes: &[u8], step: usize) -> Vec<(u64, Vec<u8>, bool)> {
        let mut lines = Lines::new(Slow(bytes, step), Vec::new());
        lines.buffer.truncate(8);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.offset, line.bytes.to_vec(), line.ended));
        }
        found
    }

    proptest! {
        #[test]
        fn lines_and_places_are_right_however_the_bytes_arrive(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), any::<u8>()], 0..200),
            step in 1_usize..50,
        ) {
            let mut expected = Vec::new();
            let mut offset = 0;
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                let text = line.strip_suffix(b"\n").unwrap_or(line);
                expected.push((offset, text.to_vec(), text.len() < line.len()));
                offset += line.len() as u64;
            }
            prop_assert_eq!(all(&bytes, step), expected);
        }
    }
}
