//! Writing a segment.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::{BLOCK, END, MAGIC, Place, Posting, short_length};
use crate::search::bytes::{put, sum};

/// Writes a segment. Words must come in order, and the postings of a word in the order of the messages.
pub(in crate::search) struct Writer<'a> {
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
    pub(in crate::search) fn new(file: &'a File) -> io::Result<Self> {
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
    pub(in crate::search) fn word(
        &mut self,
        word: &[u8],
        postings: impl Iterator<Item = Posting>,
    ) -> io::Result<()> {
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
    pub(in crate::search) fn finish(self, messages: impl Iterator<Item = (u32, Place)>) -> io::Result<()> {
        self.finish_short(messages.map(|(words, place)| (short_length(words), place)))
    }

    /// The same, with lengths as another segment has them.
    pub(in crate::search) fn finish_short(
        mut self,
        messages: impl Iterator<Item = (u8, Place)>,
    ) -> io::Result<()> {
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
