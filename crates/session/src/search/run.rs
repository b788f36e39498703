//! Building: messages in, sorted words out, with bounded memory.
//!
//! Words get numbers as they come, each message adds (word, message, times), and when enough have come together they are
//! sorted by counting and written as a segment. Segments are then merged.

use std::collections::HashMap;
use std::io;

use foldhash::fast::RandomState;

use super::segment::{Place, Posting, Writer};
use super::words::words;

/// So many (word, message) pairs are kept in memory: about 40 MB.
const MOST_PAIRS: usize = 3_000_000;

#[derive(Default)]
pub(super) struct Run {
    numbers: HashMap<Box<[u8]>, u32, RandomState>,
    pairs: Vec<(u32, u32, u32)>,
    /// How many messages have each word.
    spread: Vec<u32>,
    messages: Vec<(u32, Place)>,
    /// How often each word occurs in the message at hand, and which do.
    times: Vec<u32>,
    touched: Vec<u32>,
    in_message: u32,
    buffer: Vec<u8>,
}

impl Run {
    /// Adds text to the message at hand.
    pub(super) fn text(&mut self, text: &str) {
        let mut buffer = std::mem::take(&mut self.buffer);
        words(text, &mut buffer, |word, _| self.word(word));
        self.buffer = buffer;
    }

    fn word(&mut self, word: &[u8]) {
        self.in_message = self.in_message.saturating_add(1);
        let number = match self.numbers.get(word) {
            Some(number) => *number,
            None => {
                let number = self.numbers.len() as u32;
                self.numbers.insert(word.into(), number);
                self.times.push(0);
                self.spread.push(0);
                number
            }
        };
        if let Some(times) = self.times.get_mut(number as usize) {
            if *times == 0 {
                self.touched.push(number);
            }
            *times = times.saturating_add(1);
        }
    }

    /// Ends the message at hand.
    pub(super) fn end_message(&mut self, place: Place) {
        let message = self.messages.len() as u32;
        for number in self.touched.drain(..) {
            let at = number as usize;
            if let (Some(times), Some(spread)) = (self.times.get_mut(at), self.spread.get_mut(at)) {
                self.pairs.push((number, message, std::mem::take(times)));
                *spread += 1;
            }
        }
        self.messages.push((std::mem::take(&mut self.in_message), place));
    }

    pub(super) fn is_full(&self) -> bool {
        self.pairs.len() >= MOST_PAIRS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Writes everything as a segment and starts again.
    pub(super) fn flush(&mut self, file: &std::fs::File) -> io::Result<()> {
        let mut order: Vec<(&[u8], u32)> =
            self.numbers.iter().map(|(word, number)| (&**word, *number)).collect();
        order.sort_unstable();
        // Where the pairs of each word begin once they are sorted.
        let mut starts = vec![0_usize; self.spread.len()];
        let mut at = 0;
        for (_, number) in &order {
            if let (Some(start), Some(spread)) =
                (starts.get_mut(*number as usize), self.spread.get(*number as usize))
            {
                *start = at;
                at += *spread as usize;
            }
        }
        let mut sorted = vec![Posting { message: 0, times: 0 }; self.pairs.len()];
        for &(number, message, times) in &self.pairs {
            if let Some(start) = starts.get_mut(number as usize) {
                if let Some(slot) = sorted.get_mut(*start) {
                    *slot = Posting { message, times };
                }
                *start += 1;
            }
        }
        let mut writer = Writer::new(file)?;
        let mut rest = sorted.as_slice();
        for (word, number) in &order {
            let spread = self.spread.get(*number as usize).copied().unwrap_or(0) as usize;
            let (mine, others) = rest.split_at_checked(spread).unwrap_or((rest, &[]));
            writer.word(word, mine.iter().copied())?;
            rest = others;
        }
        drop(order);
        writer.finish(self.messages.drain(..))?;
        *self = Self { buffer: std::mem::take(&mut self.buffer), ..Self::default() };
        Ok(())
    }
}
