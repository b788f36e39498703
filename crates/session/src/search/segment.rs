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

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::bytes::{Take, damaged, put, read_at, read_exact_at, sum};
use crate::survey::Span;

const MAGIC: &[u8; 8] = b"alhena\0\x01";
const END: usize = 6 * 8 + 5 * 4 + 8;
/// Words in a block.
const BLOCK: usize = 64;
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

/// Writes a segment. Words must come in order, and the postings of a word in the order of the messages.
pub(super) struct Writer<'a> {
    out: BufWriter<&'a File>,
    written: u64,
    words: Vec<u8>,
    blocks: Vec<u8>,
    block: Vec<u8>,
    in_block: usize,
    last: Vec<u8>,
    postings: Vec<u8>,
    count: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(file: &'a File) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(MAGIC)?;
        Ok(Self {
            out,
            written: MAGIC.len() as u64,
            words: Vec::new(),
            blocks: Vec::new(),
            block: Vec::new(),
            in_block: 0,
            last: Vec::new(),
            postings: Vec::new(),
            count: 0,
        })
    }

    /// A word and its messages. Words without any are left out.
    pub(super) fn word(&mut self, word: &[u8], postings: impl Iterator<Item = Posting>) -> io::Result<()> {
        self.postings.clear();
        let (mut count, mut before) = (0, 0);
        for Posting { message, times } in postings {
            let step = u64::from(message - before);
            put(&mut self.postings, step << 1 | u64::from(times == 1));
            if times != 1 {
                put(&mut self.postings, u64::from(times));
            }
            before = message;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        self.entry(word, count);
        self.out.write_all(&self.postings)?;
        self.written += self.postings.len() as u64;
        Ok(())
    }

    fn entry(&mut self, word: &[u8], count: u64) {
        if self.in_block == BLOCK {
            self.end_block();
        }
        if self.in_block == 0 {
            self.last.clear();
            put(&mut self.blocks, word.len() as u64);
            self.blocks.extend_from_slice(word);
            put(&mut self.blocks, self.words.len() as u64);
            put(&mut self.block, self.written);
        }
        let shared = word.iter().zip(&self.last).take_while(|(one, other)| one == other).count();
        let rest = word.get(shared..).unwrap_or_default();
        put(&mut self.block, shared as u64);
        put(&mut self.block, rest.len() as u64);
        self.block.extend_from_slice(rest);
        put(&mut self.block, count);
        put(&mut self.block, self.postings.len() as u64);
        self.block.extend_from_slice(&(sum(&self.postings) as u16).to_le_bytes());
        self.last.clear();
        self.last.extend_from_slice(word);
        self.in_block += 1;
        self.count += 1;
    }

    fn end_block(&mut self) {
        let check = sum(&self.block);
        self.words.extend_from_slice(&(self.block.len() as u32).to_le_bytes());
        self.words.extend_from_slice(&check.to_le_bytes());
        self.words.append(&mut self.block);
        self.in_block = 0;
    }

    /// Ends the segment with its messages: how many words each has, and where it is.
    pub(super) fn finish(self, messages: impl Iterator<Item = (u32, Place)>) -> io::Result<()> {
        self.finish_short(messages.map(|(words, place)| (short_length(words), place)))
    }

    /// The same, with lengths as another segment has them.
    pub(super) fn finish_short(mut self, messages: impl Iterator<Item = (u8, Place)>) -> io::Result<()> {
        if self.in_block > 0 {
            self.end_block();
        }
        let (mut lengths, mut places) = (Vec::new(), Vec::new());
        for (length, place) in messages {
            lengths.push(length);
            places.extend_from_slice(&place.file.to_le_bytes());
            places.extend_from_slice(&place.span.offset.to_le_bytes());
            places.extend_from_slice(&place.span.length.to_le_bytes());
        }
        let words = self.count;
        let mut end = Vec::with_capacity(END);
        let mut at = self.written;
        for part in [&self.words, &self.blocks, &lengths, &places] {
            self.out.write_all(part)?;
            end.extend_from_slice(&at.to_le_bytes());
            at += part.len() as u64;
        }
        end.extend_from_slice(&at.to_le_bytes());
        end.extend_from_slice(&(at + END as u64).to_le_bytes());
        end.extend_from_slice(&words.to_le_bytes());
        end.extend_from_slice(&(lengths.len() as u32).to_le_bytes());
        end.extend_from_slice(&(sum(&self.blocks) ^ sum(&lengths)).to_le_bytes());
        end.extend_from_slice(&sum(&places).to_le_bytes());
        end.extend_from_slice(&sum(&end).to_le_bytes());
        end.extend_from_slice(MAGIC);
        self.out.write_all(&end)?;
        self.out.flush()
    }
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
    pub(super) fn places(&self) -> io::Result<Vec<Place>> {
        let raw = read_at(&self.file, self.places_at, self.lengths.len() * MESSAGE)?;
        if sum(&raw) != self.places_sum {
            return Err(damaged());
        }
        raw.chunks_exact(MESSAGE).map(place).collect::<Option<_>>().ok_or_else(damaged)
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
        self.block_into(at, &mut Window::default(), &mut block)?;
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
        Words {
            segment: self,
            next: 0,
            block: Vec::new(),
            at: 0,
            offset: 0,
            word: Vec::new(),
            blocks: Window::default(),
            postings: Window::default(),
        }
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

/// The words of one block.
struct Entries<'a> {
    take: Take<'a>,
    offset: u64,
    word: Vec<u8>,
}

impl<'a> Entries<'a> {
    fn new(block: &'a [u8]) -> Option<Self> {
        let mut take = Take(block);
        let offset = take.number()?;
        Some(Self { take, offset, word: Vec::new() })
    }

    fn next(&mut self) -> Option<Found> {
        read_entry(&mut self.take, &mut self.offset, &mut self.word)
    }
}

fn read_entry(take: &mut Take<'_>, offset: &mut u64, word: &mut Vec<u8>) -> Option<Found> {
    if take.0.is_empty() {
        return None;
    }
    let shared = take.length()?;
    let length = take.length()?;
    word.truncate(shared);
    word.extend_from_slice(take.bytes(length)?);
    let (count, length) = (take.number()?, take.length()?);
    let found = Found { count, offset: *offset, length, sum: take.fixed().map(u16::from_le_bytes)? };
    *offset = offset.checked_add(found.length as u64)?;
    Some(found)
}

/// All words of a segment, one after the other, read in large pieces.
pub(super) struct Words<'a> {
    segment: &'a Segment,
    next: usize,
    block: Vec<u8>,
    at: usize,
    offset: u64,
    /// The word at hand.
    pub(super) word: Vec<u8>,
    blocks: Window,
    postings: Window,
}

impl Words<'_> {
    /// Goes to the next word.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        if self.at >= self.block.len() {
            let Some((_, at)) = self.segment.blocks.get(self.next) else { return Ok(None) };
            self.next += 1;
            self.block.clear();
            self.segment.block_into(*at, &mut self.blocks, &mut self.block)?;
            let mut take = Take(&self.block);
            self.offset = take.number().ok_or_else(damaged)?;
            self.at = self.block.len() - take.0.len();
            self.word.clear();
        }
        let mut take = Take(self.block.get(self.at..).unwrap_or_default());
        let found = read_entry(&mut take, &mut self.offset, &mut self.word).ok_or_else(damaged)?;
        self.at = self.block.len() - take.0.len();
        Ok(Some(found))
    }

    /// Hands out the messages of the word at hand.
    pub(super) fn postings(&mut self, found: Found, each: impl FnMut(Posting)) -> io::Result<()> {
        self.segment.check(found)?;
        let raw = self.postings.bytes(&self.segment.file, found.offset, found.length)?;
        self.segment.decode(raw, found.sum, each)
    }
}

/// A part of a file in memory, for reading on in one direction.
#[derive(Default)]
struct Window {
    start: u64,
    held: Vec<u8>,
}

impl Window {
    const SIZE: usize = 256 << 10;

    fn bytes(&mut self, file: &File, offset: u64, length: usize) -> io::Result<&[u8]> {
        let end = offset.checked_add(length as u64).ok_or_else(damaged)?;
        if offset < self.start || end > self.start + self.held.len() as u64 {
            let size = file.metadata()?.len();
            let wanted = (Self::SIZE as u64).max(length as u64).min(size.saturating_sub(offset));
            if wanted < length as u64 {
                return Err(damaged());
            }
            self.held.resize(usize::try_from(wanted).map_err(|_| damaged())?, 0);
            read_exact_at(file, &mut self.held, offset)?;
            self.start = offset;
        }
        let from = usize::try_from(offset - self.start).map_err(|_| damaged())?;
        self.held.get(from..from + length).ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests;
