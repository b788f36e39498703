//! Bytes into lines, and foreign bytes into text that is safe to show.
//!
//! Gemini CLI ends each line with `\n` and leaves U+2028, U+2029 and U+0085 unescaped inside strings (0.61), so only the
//! byte `\n` ends a line.

/// The longest line that is kept whole, unless told otherwise: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// What the framer gives out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its `\n` or `\r\n`, never blank.
    Line(&'a [u8]),
    /// A line that was longer than the limit and was not kept.
    TooLong {
        /// Its true length, without the newline.
        bytes: u64,
        /// How it began, made safe by [`sample`].
        sample: String,
    },
}

/// Splits a byte stream into lines, whatever the chunks it arrives in.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    /// The beginning of a line whose end has not arrived; at most `limit` bytes.
    partial: Vec<u8>,
    /// How many bytes of the present line were dropped beyond the limit.
    dropped: u64,
}

impl Default for Framer {
    fn default() -> Self {
        Framer::new(DEFAULT_LIMIT)
    }
}

impl Framer {
    /// A framer that keeps lines of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Framer { limit, partial: Vec::new(), dropped: 0 }
    }

    /// Takes the next bytes and hands out every line that they complete.
    pub fn push(&mut self, bytes: &[u8], mut f: impl FnMut(Frame<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.end_line(line, &mut f);
            rest = after.split_first().map_or(&[], |(_, after)| after);
        }
        self.keep(rest);
    }

    /// Hands out what is left when the stream has ended without a newline.
    pub fn finish(&mut self, mut f: impl FnMut(Frame<'_>)) {
        self.end_line(&[], &mut f);
    }

    /// How many bytes of an unfinished line are held.
    pub fn pending(&self) -> u64 {
        self.partial.len() as u64 + self.dropped
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.partial.len());
        let (kept, dropped) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.partial.extend_from_slice(kept);
        self.dropped += dropped.len() as u64;
    }

    fn end_line(&mut self, tail: &[u8], f: &mut impl FnMut(Frame<'_>)) {
        if self.pending() == 0 && tail.len() <= self.limit {
            return give(tail, f);
        }
        self.keep(tail);
        if self.dropped > 0 {
            f(Frame::TooLong { bytes: self.pending(), sample: sample(&self.partial) });
            self.partial = Vec::new();
            self.dropped = 0;
        } else {
            give(&self.partial, f);
            self.partial.clear();
            self.partial.shrink_to(1 << 20);
        }
    }
}

fn give(line: &[u8], f: &mut impl FnMut(Frame<'_>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.iter().all(u8::is_ascii_whitespace) {
        f(Frame::Line(line));
    }
}

/// The beginning of foreign bytes as text that can be shown anywhere: at most about 200 characters, whatever is not UTF-8
/// replaced, control characters and escape sequences visible.
pub fn sample(bytes: &[u8]) -> String {
    let start = bytes.get(..1024).unwrap_or(bytes);
    let mut text = String::new();
    for character in String::from_utf8_lossy(start).chars().take(200) {
        if character.is_control() { text.extend(character.escape_default()) } else { text.push(character) }
    }
    text
}
