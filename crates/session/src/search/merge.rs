//! Several segments into one, without what has been replaced since.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;

use super::segment::{Found, Place, Posting, Segment, Words, Writer};

/// What becomes of the messages of one segment.
pub(super) struct Source<'a> {
    pub(super) segment: &'a Segment,
    /// The new number of each of its files; none for those that are left out.
    pub(super) files: Vec<Option<u32>>,
}

/// Writes one segment with all that is to be kept. Messages keep their order.
pub(super) fn merge(sources: &[Source<'_>], out: &File) -> io::Result<()> {
    let (mut messages, mut renumbered) = (Vec::new(), Vec::new());
    for source in sources {
        let places = source.segment.places()?;
        let mut numbers = Vec::with_capacity(source.segment.lengths.len());
        for (place, length) in places.iter().zip(&source.segment.lengths) {
            let file = source.files.get(place.file as usize).copied().flatten();
            numbers.push(file.map(|file| {
                messages.push((*length, Place { file, ..place }));
                messages.len() as u32 - 1
            }));
        }
        renumbered.push(numbers);
    }
    let mut writer = Writer::new(out)?;
    let mut heads = Heads::new(sources)?;
    let mut postings = Vec::new();
    while let Some(word) = heads.next_word(&renumbered, &mut postings)? {
        writer.word(&word, postings.iter().copied())?;
    }
    writer.finish_short(messages.into_iter())
}

/// The next word of each segment.
struct Heads<'a> {
    words: Vec<Words<'a>>,
    found: Vec<Option<Found>>,
    /// By word, and then by segment, so that messages come in order.
    queue: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

impl<'a> Heads<'a> {
    fn new(sources: &[Source<'a>]) -> io::Result<Self> {
        let mut heads = Self {
            words: sources.iter().map(|source| source.segment.words()).collect(),
            found: vec![None; sources.len()],
            queue: BinaryHeap::new(),
        };
        for index in 0..sources.len() {
            heads.advance(index)?;
        }
        Ok(heads)
    }

    fn advance(&mut self, index: usize) -> io::Result<()> {
        let Some(words) = self.words.get_mut(index) else { return Ok(()) };
        let found = words.next()?;
        if found.is_some() {
            self.queue.push(Reverse((words.word.clone(), index)));
        }
        if let Some(slot) = self.found.get_mut(index) {
            *slot = found;
        }
        Ok(())
    }

    fn next_word(
        &mut self,
        renumbered: &[Vec<Option<u32>>],
        postings: &mut Vec<Posting>,
    ) -> io::Result<Option<Vec<u8>>> {
        postings.clear();
        let Some(Reverse((word, first))) = self.queue.pop() else { return Ok(None) };
        let mut index = first;
        loop {
            let found = self.found.get(index).copied().flatten();
            if let (Some(words), Some(numbers), Some(found)) =
                (self.words.get_mut(index), renumbered.get(index), found)
            {
                words.postings(found, |posting| {
                    if let Some(message) = numbers.get(posting.message as usize).copied().flatten() {
                        postings.push(Posting { message, ..posting });
                    }
                })?;
            }
            self.advance(index)?;
            match self.queue.peek() {
                Some(Reverse((next, _))) if *next == word => {}
                _ => return Ok(Some(word)),
            }
            let Some(Reverse((_, next))) = self.queue.pop() else { return Ok(Some(word)) };
            index = next;
        }
    }
}
