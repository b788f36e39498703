//! Which sessions fit best, by what the index says.
//!
//! Messages are weighed as search engines do (BM25): rare words count more, and so do short messages. A session counts as its
//! best message, and a little for every other.

use std::collections::HashMap;
use std::io;

use super::index::Index;
use super::query::Query;
use super::segment::{Posting, Segment, long_length};
use crate::survey::Span;

/// A session that has all the words.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Its place among the files.
    pub(super) file: usize,
    pub(super) score: f32,
    /// The phrases that it may have.
    pub(super) phrases: u64,
    /// Its messages with words that were asked for, the best first.
    pub(super) spots: Vec<Spot>,
}

/// A message with words that were asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) span: Span,
    pub(super) phrases: u64,
    pub(super) score: f32,
}

const SATURATION: f32 = 1.2;
const LENGTH_MATTERS: f32 = 0.75;

/// Every session that has some of the words, the best first.
pub(super) fn candidates(
    index: &Index,
    covered: &[Vec<Option<usize>>],
    query: &Query,
) -> io::Result<Vec<Candidate>> {
    let postings = postings(index, query)?;
    let messages: f32 = index.segments.iter().map(|segment| segment.messages() as f32).sum();
    let weights: Vec<f32> = (0..query.words().len())
        .map(|word| {
            let have: f32 = postings.iter().filter_map(|of| of.get(word)).map(|list| list.len() as f32).sum();
            (1.0 + (messages - have + 0.5) / (have + 0.5)).ln()
        })
        .collect();
    let mut found: HashMap<usize, Candidate> = HashMap::new();
    for ((segment, live), lists) in index.segments.iter().zip(covered).zip(&postings) {
        weigh(segment, live, lists, &weights, query, &mut found)?;
    }
    let mut candidates: Vec<Candidate> = found.into_values().collect();
    for candidate in &mut candidates {
        candidate.spots.sort_by(|one, other| {
            let worth = |spot: &Spot| spot.phrases.count_ones();
            worth(other).cmp(&worth(one)).then_with(|| other.score.total_cmp(&one.score))
        });
        let best = candidate.spots.iter().map(|spot| spot.score).fold(0.0, f32::max);
        candidate.score = best + (candidate.spots.len() as f32).ln_1p() * 0.1;
    }
    candidates
        .sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.file.cmp(&other.file)));
    Ok(candidates)
}

/// For each segment and each word, the messages that have it.
fn postings(index: &Index, query: &Query) -> io::Result<Vec<Vec<Vec<Posting>>>> {
    let of_word = |segment: &Segment, word: &Vec<u8>| match segment.find(word)? {
        Some(found) => segment.postings(found),
        None => Ok(Vec::new()),
    };
    let of_segment = |segment: &Segment| query.words().iter().map(|word| of_word(segment, word)).collect();
    index.segments.iter().map(of_segment).collect()
}

fn weigh(
    segment: &Segment,
    live: &[Option<usize>],
    lists: &[Vec<Posting>],
    weights: &[f32],
    query: &Query,
    found: &mut HashMap<usize, Candidate>,
) -> io::Result<()> {
    if lists.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let all: f32 = segment.lengths.iter().map(|length| long_length(*length)).sum();
    let average = (all / (segment.messages() as f32).max(1.0)).max(1.0);
    let mut weighed = vec![(0.0_f32, 0_u64); segment.lengths.len()];
    for (word, (list, weight)) in lists.iter().zip(weights).enumerate() {
        for posting in list {
            let at = posting.message as usize;
            let (Some(seen), Some(length)) = (weighed.get_mut(at), segment.lengths.get(at)) else { continue };
            let times = posting.times as f32;
            let long = 1.0 - LENGTH_MATTERS + LENGTH_MATTERS * long_length(*length) / average;
            seen.0 += weight * times * (SATURATION + 1.0) / (times + SATURATION * long);
            seen.1 |= 1 << word;
        }
    }
    for (place, (score, words)) in segment.places()?.into_iter().zip(weighed) {
        if words == 0 {
            continue;
        }
        let Some(file) = live.get(place.file as usize).copied().flatten() else { continue };
        let candidate = found.entry(file).or_insert_with(|| Candidate {
            file,
            score: 0.0,
            phrases: 0,
            spots: Vec::new(),
        });
        let phrases = query.possible(words);
        candidate.phrases |= phrases;
        if phrases != 0 {
            candidate.spots.push(Spot { span: place.span, phrases, score });
        }
    }
    Ok(())
}
