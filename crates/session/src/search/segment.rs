//! A segment: an immutable part of the index, one file.
//!
//! | Part | Holds |
//! |---|---|
//! | postings | for each word, in the order of the words: the messages that have it, and how often |
//! | words | blocks of words, each with how many messages have it and how long its postings are |
//! | blocks | the first word of each block, and where it is |
//! | lengths | how many words each message has, one byte each |
//! | messages | which file each message is in, and where |
//! | end | where all of these are, and sums over them; a block has its own, and so has each word in it for its postings |

mod words;
mod write;

use std::fs::File;
use std::io;
use std::path::Path;

use self::words::{Entries, Window};
use super::bytes::{Take, damaged, read_at, sum};
use crate::survey::Span;

pub(super) use words::Words;
pub(super) use write::Writer;

const MAGIC: &[u8; 8] = b"alhena\0\x01";
const END: usize = 6 * 8 + 5 * 4 + 8;
/// Words in a block.
const BLOCK: usize = 64;
/// More bytes than a block of words usually has.
const BLOCK_SIZE: usize = 2 << 10;
const MESSAGE: usize = 20;

/// Where a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: u32,
    pub(super) span: Span,
}

/// A message that has a word, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) message: u32,
    pub(super) times: u32,
}

/// A length in one byte: exact when short, then in steps of about a tenth.
fn short_length(words: u32) -> u8 {
    match words {
        0..=31 => words as u8,
        _ => {
            let steps = f64::from(words).log2() * 8.0 - 40.0;
            (32.0 + steps).clamp(32.0, 255.0) as u8
        }
    }
}

/// The length that a byte stands for, roughly.
pub(super) fn long_length(short: u8) -> f32 {
    match short {
        0..=31 => f32::from(short),
        _ => ((f32::from(short) - 32.0 + 40.5) / 8.0).exp2(),
    }
}

/// A segment that is open.
pub(super) struct Segment {
    file: File,
    words_at: u64,
    blocks: Vec<(Box<[u8]>, u64)>,
    words_end: u64,
    pub(super) lengths: Vec<u8>,
    places_at: u64,
    places_sum: u32,
    pub(super) bytes: u64,
}

/// Where the postings of a word are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) count: u64,
    offset: u64,
    length: usize,
    sum: u16,
}

impl Segment {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let start = bytes.checked_sub(END as u64).ok_or_else(damaged)?;
        let end = read_at(&file, start, END)?;
        Self::read_end(file, bytes, &end).and_then(|segment| segment.ok_or_else(damaged))
    }

    fn read_end(file: File, bytes: u64, end: &[u8]) -> io::Result<Option<Self>> {
        let mut take = Take(end);
        let mut part = || take.u64();
        let offsets = [part(), part(), part(), part(), part(), part()];
        let [Some(words_at), Some(blocks_at), Some(lengths_at), Some(places_at), Some(end_at), Some(whole)] =
            offsets
        else {
            return Ok(None);
        };
        let (words, messages, open_sum, places_sum) = (take.u32(), take.u32(), take.u32(), take.u32());
        let end_sum = take.u32();
        let checked = end.get(..END - 12).unwrap_or_default();
        let sizes = [words_at, blocks_at, lengths_at, places_at, end_at, whole];
        let in_order = sizes.is_sorted() && whole == bytes;
        let messages = messages.unwrap_or(0) as u64;
        let fits = lengths_at.checked_add(messages) == Some(places_at)
            && places_at.checked_add(messages * MESSAGE as u64) == Some(end_at);
        if Some(sum(checked)) != end_sum || take.0 != MAGIC || !in_order || !fits {
            return Ok(None);
        }
        let size = |from: u64, to: u64| usize::try_from(to - from).unwrap_or(usize::MAX);
        let raw = read_at(&file, blocks_at, size(blocks_at, lengths_at))?;
        let Some(blocks) = read_blocks(&raw, words.unwrap_or(0)) else { return Ok(None) };
        let lengths = read_at(&file, lengths_at, size(lengths_at, places_at))?;
        if Some(sum(&raw) ^ sum(&lengths)) != open_sum {
            return Ok(None);
        }
        let places_sum = places_sum.unwrap_or(0);
        Ok(Some(Self { file, words_at, blocks, words_end: blocks_at, lengths, places_at, places_sum, bytes }))
    }

    /// How many messages it has.
    pub(super) fn messages(&self) -> u32 {
        self.lengths.len() as u32
    }

    /// Where all messages are.
    pub(super) fn places(&self) -> io::Result<Places> {
        let raw = read_at(&self.file, self.places_at, self.lengths.len() * MESSAGE)?;
        if sum(&raw) == self.places_sum { Ok(Places(raw)) } else { Err(damaged()) }
    }

    /// Looks for a word.
    pub(super) fn find(&self, word: &[u8]) -> io::Result<Option<Found>> {
        let after = self.blocks.partition_point(|(first, _)| &**first <= word);
        let Some((_, at)) = after.checked_sub(1).and_then(|index| self.blocks.get(index)) else {
            return Ok(None);
        };
        let block = self.block(*at)?;
        let mut entries = Entries::new(&block).ok_or_else(damaged)?;
        while let Some(found) = entries.next() {
            match entries.word.as_slice().cmp(word) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(Some(found)),
                std::cmp::Ordering::Greater => return Ok(None),
            }
        }
        Ok(None)
    }

    fn block(&self, at: u64) -> io::Result<Vec<u8>> {
        let mut block = Vec::new();
        self.block_into(at, &mut Window::of(BLOCK_SIZE), &mut block)?;
        Ok(block)
    }

    fn block_into(&self, at: u64, window: &mut Window, block: &mut Vec<u8>) -> io::Result<()> {
        let offset = self.words_at.checked_add(at).ok_or_else(damaged)?;
        let mut take = Take(window.bytes(&self.file, offset, 8)?);
        let (length, check) = (take.u32().unwrap_or(0), take.u32().unwrap_or(0));
        if offset + 8 + u64::from(length) > self.words_end {
            return Err(damaged());
        }
        let bytes = window.bytes(&self.file, offset + 8, length as usize)?;
        if sum(bytes) != check {
            return Err(damaged());
        }
        block.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, found: Found) -> io::Result<()> {
        let end = found.offset.checked_add(found.length as u64);
        if end.is_some_and(|end| end <= self.words_at) { Ok(()) } else { Err(damaged()) }
    }

    /// The messages that have a word.
    pub(super) fn postings(&self, found: Found) -> io::Result<Vec<Posting>> {
        self.check(found)?;
        let raw = read_at(&self.file, found.offset, found.length)?;
        let mut postings = Vec::with_capacity(usize::try_from(found.count).unwrap_or(0).min(raw.len()));
        self.decode(&raw, found.sum, |posting| postings.push(posting))?;
        Ok(postings)
    }

    fn decode(&self, raw: &[u8], check: u16, mut each: impl FnMut(Posting)) -> io::Result<()> {
        if sum(raw) as u16 != check {
            return Err(damaged());
        }
        let (mut take, mut message) = (Take(raw), 0_u64);
        while !take.0.is_empty() {
            let step = take.number().ok_or_else(damaged)?;
            message += step >> 1;
            let times = if step & 1 == 1 { 1 } else { take.number().ok_or_else(damaged)? };
            if message >= self.lengths.len() as u64 {
                return Err(damaged());
            }
            each(Posting { message: message as u32, times: u32::try_from(times).unwrap_or(u32::MAX) });
        }
        Ok(())
    }

    /// All words in order, for merging.
    pub(super) fn words(&self) -> Words<'_> {
        Words::of(self)
    }
}

/// Where the messages of a segment are, as it is written.
pub(super) struct Places(Vec<u8>);

impl Places {
    /// Where a message is.
    pub(super) fn get(&self, message: u32) -> Option<Place> {
        let start = (message as usize).checked_mul(MESSAGE)?;
        self.0.get(start..start.checked_add(MESSAGE)?).and_then(place)
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Place> {
        self.0.chunks_exact(MESSAGE).filter_map(place)
    }
}

fn place(raw: &[u8]) -> Option<Place> {
    let mut take = Take(raw);
    Some(Place { file: take.u32()?, span: Span { offset: take.u64()?, length: take.u64()? } })
}

fn read_blocks(raw: &[u8], words: u32) -> Option<Vec<(Box<[u8]>, u64)>> {
    let mut take = Take(raw);
    let mut blocks = Vec::with_capacity((words as usize / BLOCK + 1).min(raw.len()));
    while !take.0.is_empty() {
        let length = take.length()?;
        let first = take.bytes(length)?;
        blocks.push((first.into(), take.number()?));
    }
    Some(blocks)
}

#[cfg(test)]
mod tests;
