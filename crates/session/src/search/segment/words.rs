//! The words of a segment: those of one block, and all of them in order.

use std::fs::File;
use std::io;

use super::{Found, Posting, Segment};
use crate::search::bytes::{Take, damaged, read_exact_at};

/// The words of one block.
pub(super) struct Entries<'a> {
    take: Take<'a>,
    offset: u64,
    pub(super) word: Vec<u8>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(block: &'a [u8]) -> Option<Self> {
        let mut take = Take(block);
        let offset = take.number()?;
        Some(Self { take, offset, word: Vec::new() })
    }

    pub(super) fn next(&mut self) -> Option<Found> {
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
pub(in crate::search) struct Words<'a> {
    segment: &'a Segment,
    next: usize,
    block: Vec<u8>,
    at: usize,
    offset: u64,
    /// The word at hand.
    pub(in crate::search) word: Vec<u8>,
    blocks: Window,
    postings: Window,
}

impl<'a> Words<'a> {
    pub(super) fn of(segment: &'a Segment) -> Self {
        Words {
            segment,
            next: 0,
            block: Vec::new(),
            at: 0,
            offset: 0,
            word: Vec::new(),
            blocks: Window::default(),
            postings: Window::default(),
        }
    }

    /// Goes to the next word.
    pub(in crate::search) fn next(&mut self) -> io::Result<Option<Found>> {
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
    pub(in crate::search) fn postings(&mut self, found: Found, each: impl FnMut(Posting)) -> io::Result<()> {
        self.segment.check(found)?;
        let raw = self.postings.bytes(&self.segment.file, found.offset, found.length)?;
        self.segment.decode(raw, found.sum, each)
    }
}

/// A part of a file in memory, for reading on in one direction.
pub(super) struct Window {
    size: usize,
    start: u64,
    held: Vec<u8>,
}

impl Default for Window {
    fn default() -> Self {
        Self::of(256 << 10)
    }
}

impl Window {
    /// One that reads so many bytes at a time.
    pub(super) fn of(size: usize) -> Self {
        Self { size, start: 0, held: Vec::new() }
    }

    pub(super) fn bytes(&mut self, file: &File, offset: u64, length: usize) -> io::Result<&[u8]> {
        let end = offset.checked_add(length as u64).ok_or_else(damaged)?;
        if offset < self.start || end > self.start + self.held.len() as u64 {
            let size = file.metadata()?.len();
            let wanted = (self.size as u64).max(length as u64).min(size.saturating_sub(offset));
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
