//! Bytes into lines, and foreign bytes into text that is safe to show.
//!
//! Gemini CLI ends each line with `\n` and leaves U+2028, U+2029 and U+0085 unescaped inside strings (0.61), so only the
//! byte `\n` ends a line.

use crate::display::is_unsafe;

/// The longest line that is kept whole, unless told otherwise: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// What a framer holds on to between lines, so that lines cut by a chunk's end cost no allocation each.
const SPARE: usize = 256 << 10;

/// What the framer gives out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its `\n` or `\r\n`. Blank lines are left out.
    Line(&'a [u8]),
    /// A line that was longer than the limit and was not kept.
    TooLong {
        /// Its true length, without the `\n`.
        bytes: u64,
        /// How it began, made safe by [`sample`].
        sample: String,
    },
}

/// Splits a byte stream into lines, whatever the chunks it arrives in.
///
/// A line that lies within one chunk is handed out from that chunk, without a copy.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    /// The beginning of a line whose end has not arrived; at most `limit` bytes.
    partial: Vec<u8>,
    /// Set once that line has outgrown the limit and its beginning was let go.
    overlong: Option<Overlong>,
}

#[derive(Debug)]
struct Overlong {
    bytes: u64,
    sample: String,
}

impl Default for Framer {
    fn default() -> Self {
        Framer::new(DEFAULT_LIMIT)
    }
}

impl Framer {
    /// A framer that keeps lines of up to `limit` bytes (a `\r` at the end counts).
    pub fn new(limit: usize) -> Self {
        Framer { limit, partial: Vec::new(), overlong: None }
    }

    /// Takes the next bytes and hands out every line that they complete.
    pub fn push(&mut self, bytes: &[u8], mut f: impl FnMut(Frame<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.end_line(line, &mut f);
            rest = after.strip_prefix(b"\n").unwrap_or(after);
        }
        self.keep(rest);
    }

    /// Hands out what is left when the stream has ended without a newline. The framer can be used again.
    pub fn finish(&mut self, mut f: impl FnMut(Frame<'_>)) {
        self.end_line(&[], &mut f);
    }

    /// How many bytes of an unfinished line have arrived.
    pub fn pending(&self) -> u64 {
        self.overlong.as_ref().map_or(self.partial.len() as u64, |overlong| overlong.bytes)
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(overlong) = &mut self.overlong {
            overlong.bytes += bytes.len() as u64;
            return;
        }
        let room = self.limit.saturating_sub(self.partial.len());
        match bytes.split_at_checked(room) {
            Some((kept, beyond)) if !beyond.is_empty() => {
                let bytes = self.partial.len() as u64 + bytes.len() as u64;
                let mut start = std::mem::take(&mut self.partial);
                start.truncate(SAMPLED);
                start.extend(kept.iter().take(SAMPLED));
                self.overlong = Some(Overlong { bytes, sample: sample(&start) });
            }
            _ => self.extend(bytes),
        }
    }

    /// Grows by doubling, so that a line fed byte by byte is not copied again and again, but never past the limit.
    fn extend(&mut self, bytes: &[u8]) {
        let needed = self.partial.len() + bytes.len();
        if needed > self.partial.capacity() {
            let capacity = (self.partial.capacity() * 2).min(self.limit).max(needed);
            self.partial.reserve_exact(capacity - self.partial.len());
        }
        self.partial.extend_from_slice(bytes);
    }

    fn end_line(&mut self, tail: &[u8], f: &mut impl FnMut(Frame<'_>)) {
        if self.pending() == 0 && tail.len() <= self.limit {
            return give(tail, f);
        }
        self.keep(tail);
        match self.overlong.take() {
            Some(Overlong { bytes, sample }) => f(Frame::TooLong { bytes, sample }),
            None => {
                give(&self.partial, f);
                self.partial.clear();
                self.partial.shrink_to(SPARE);
            }
        }
    }
}

fn give(line: &[u8], f: &mut impl FnMut(Frame<'_>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.iter().all(u8::is_ascii_whitespace) {
        f(Frame::Line(line));
    }
}

/// How many bytes can matter for a sample: 200 characters of four bytes, and some.
const SAMPLED: usize = 1024;

/// The longest sample, in characters.
const SAMPLE_LENGTH: usize = 200;

/// The beginning of foreign bytes as text that can be shown anywhere: at most 200 characters, then `…`; what is not UTF-8
/// replaced by U+FFFD; control characters, escape sequences and characters that reorder or hide text made visible.
pub fn sample(bytes: &[u8]) -> String {
    let start = bytes.get(..SAMPLED).unwrap_or(bytes);
    let mut text = String::new();
    let mut length = 0;
    for character in String::from_utf8_lossy(start).chars() {
        let escaped = is_unsafe(character).then(|| character.escape_default());
        length += escaped.as_ref().map_or(1, ExactSizeIterator::len);
        if length > SAMPLE_LENGTH {
            text.push('…');
            return text;
        }
        match escaped {
            Some(escaped) => text.extend(escaped),
            None => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_long_line_is_given_back() {
        let mut framer = Framer::default();
        let chunk = vec![b'x'; 1 << 20];
        (0..40).for_each(|_| framer.push(&chunk, |_| {}));
        assert!(framer.partial.capacity() >= 40 << 20);
        framer.push(b"\n", |_| {});
        assert!(framer.partial.capacity() <= SPARE);
    }

    #[test]
    fn no_more_than_the_limit_is_ever_held() {
        let mut framer = Framer::new(10 << 20);
        let chunk = vec![b'x'; 3 << 20];
        for _ in 0..40 {
            framer.push(&chunk, |_| {});
            assert!(framer.partial.capacity() <= 10 << 20);
        }
        assert_eq!(framer.partial.capacity(), 0);
    }
}
