//! Which sessions fit best, by what the index says.
//!
//! Messages are weighed as search engines do (BM25): rare words count more, and so do short messages. A session counts as its
//! best message, and a little for every other.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::LazyLock;

use super::index::Index;
use super::query::Query;
use super::segment::{Places, Posting, Segment, long_length};
use crate::survey::Span;

/// A session that has some of the words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// Its place among the files.
    pub(super) file: usize,
    pub(super) score: f32,
    /// The phrases that it may have.
    pub(super) phrases: u64,
    /// How many of its messages may have a phrase.
    pub(super) messages: usize,
}

/// A message with words that were asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) span: Span,
    phrases: u64,
    score: f32,
}

const SATURATION: f32 = 1.2;
const LENGTH_MATTERS: f32 = 0.75;

/// What the index says about a query. A common word is in a hundred thousand messages, so they are gone through twice
/// instead of being kept: for the sessions' scores, and for the messages of those few that are shown.
pub(super) struct Ranking<'a> {
    query: &'a Query,
    weights: Vec<f32>,
    parts: Vec<Part<'a>>,
}

/// What one segment has.
struct Part<'a> {
    segment: &'a Segment,
    /// The place among the files of each of its own, if it is still the same.
    live: &'a [Option<usize>],
    /// For each word, the messages that have it.
    lists: Vec<Vec<Posting>>,
    places: Places,
}

impl<'a> Ranking<'a> {
    pub(super) fn new(
        index: &'a Index,
        covered: &'a [Vec<Option<usize>>],
        query: &'a Query,
    ) -> io::Result<Self> {
        let of_word = |segment: &Segment, word: &Vec<u8>| match segment.find(word)? {
            Some(found) => segment.postings(found),
            None => Ok(Vec::new()),
        };
        let mut parts = Vec::new();
        for (segment, live) in index.segments.iter().zip(covered) {
            let lists: io::Result<Vec<_>> = query.words().iter().map(|word| of_word(segment, word)).collect();
            let lists = lists?;
            if lists.iter().any(|list| !list.is_empty()) {
                parts.push(Part { segment, live, lists, places: segment.places()? });
            }
        }
        let messages: f32 = index.segments.iter().map(|segment| segment.messages() as f32).sum();
        let weight = |word: usize| {
            let have: f32 =
                parts.iter().filter_map(|part| part.lists.get(word)).map(|list| list.len() as f32).sum();
            (1.0 + (messages - have + 0.5) / (have + 0.5)).ln()
        };
        let weights = (0..query.words().len()).map(weight).collect();
        Ok(Self { query, weights, parts })
    }

    /// Every session that has some of the words, the best first.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let mut found: HashMap<usize, Candidate> = HashMap::new();
        for part in &self.parts {
            let mut last: Option<Candidate> = None;
            self.each(part, |file, _, phrases, score| {
                let known = last.take_if(|known| known.file != file);
                keep(&mut found, known);
                let known = last.get_or_insert(Candidate { file, score: 0.0, phrases: 0, messages: 0 });
                known.phrases |= phrases;
                if phrases != 0 {
                    known.messages += 1;
                    known.score = known.score.max(score);
                }
            });
            keep(&mut found, last);
        }
        let mut candidates: Vec<Candidate> = found.into_values().collect();
        for candidate in &mut candidates {
            candidate.score += (candidate.messages as f32).ln_1p() * 0.1;
        }
        candidates
            .sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.file.cmp(&other.file)));
        candidates
    }

    /// The messages of some sessions that may have a phrase, the best first.
    pub(super) fn spots(&self, files: &HashSet<usize>) -> HashMap<usize, Vec<Spot>> {
        let mut spots: HashMap<usize, Vec<Spot>> = HashMap::new();
        for part in &self.parts {
            self.each(part, |file, span, phrases, score| {
                if phrases != 0 && files.contains(&file) {
                    spots.entry(file).or_default().push(Spot { span, phrases, score });
                }
            });
        }
        for list in spots.values_mut() {
            list.sort_by(|one, other| {
                let worth = |spot: &Spot| spot.phrases.count_ones();
                worth(other).cmp(&worth(one)).then_with(|| other.score.total_cmp(&one.score))
            });
        }
        spots
    }

    /// Goes through the messages that have a word, in order: their file, where they are, what they may have, and how well
    /// they fit.
    fn each(&self, part: &Part<'_>, mut each: impl FnMut(usize, Span, u64, f32)) {
        let lengths = &part.segment.lengths;
        let all: f32 = lengths.iter().map(|length| length_of(*length)).sum();
        let average = (all / (lengths.len() as f32).max(1.0)).max(1.0);
        let mut lists: Vec<_> = part.lists.iter().map(|list| list.iter().peekable()).collect();
        loop {
            let heads = lists.iter_mut().filter_map(|list| list.peek().map(|posting| posting.message));
            let Some(message) = heads.min() else { break };
            let length = lengths.get(message as usize).copied().unwrap_or_default();
            let long = 1.0 - LENGTH_MATTERS + LENGTH_MATTERS * length_of(length) / average;
            let (mut score, mut words) = (0.0, 0_u64);
            for (word, (list, weight)) in lists.iter_mut().zip(&self.weights).enumerate() {
                if let Some(posting) = list.next_if(|posting| posting.message == message) {
                    let times = posting.times as f32;
                    score += weight * times * (SATURATION + 1.0) / (times + SATURATION * long);
                    words |= 1 << word;
                }
            }
            let Some(place) = part.places.get(message) else { continue };
            if let Some(file) = part.live.get(place.file as usize).copied().flatten() {
                each(file, place.span, self.query.possible(words), score);
            }
        }
    }
}

/// Messages of one session stand together, so a session is looked up once for many of them.
fn keep(found: &mut HashMap<usize, Candidate>, candidate: Option<Candidate>) {
    let Some(new) = candidate else { return };
    let known = found.entry(new.file).or_insert(Candidate { score: 0.0, phrases: 0, messages: 0, ..new });
    known.phrases |= new.phrases;
    known.messages += new.messages;
    known.score = known.score.max(new.score);
}

/// The length that a byte stands for: there are only 256.
fn length_of(short: u8) -> f32 {
    static LENGTHS: LazyLock<Vec<f32>> = LazyLock::new(|| (0..=u8::MAX).map(long_length).collect());
    LENGTHS.get(usize::from(short)).copied().unwrap_or(0.0)
}
