//! Search: words and phrases over all sessions, ranked, with what stands around them; and regular expressions.
//!
//! Two threads read 1 GB of sessions in the page cache in 0.15 s, so there is no index that could go stale: every file is
//! read, on all cores. Its raw bytes say at once whether it can have the words (`needles`); only what can is decoded.

mod needles;
mod query;
mod snippet;
mod text;
mod words;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;

use alhena_sys::files;
use regex::Regex;

pub use query::Query;
pub use snippet::{MatchedIn, Snippet};

use self::needles::Needles;
use crate::file::SessionFile;
use crate::store::{Scope, Session, Store};
use crate::{survey, threads};

/// So many places are shown of one session.
const SNIPPETS: usize = 3;
/// A word that comes again counts less each time (BM25).
const SATURATION: f32 = 1.2;
/// How much it counts that a message is long.
const LENGTH_MATTERS: f32 = 0.75;

/// A session that has what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The session, or the sub-agent.
    pub session: Session,
    /// How well it fits; only good for comparing.
    pub score: f32,
    /// How many of its messages have a part of it.
    pub messages: usize,
    /// The best places.
    pub snippets: Vec<Snippet>,
}

/// What a search found.
#[derive(Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The best first.
    pub hits: Vec<Hit>,
    /// How many sessions have it.
    pub total: usize,
}

impl Store {
    /// Looks for words and phrases.
    pub fn search(&self, scope: &Scope, query: &Query, limit: usize) -> io::Result<SearchResults> {
        let needles = Needles::of(query).map_err(io::Error::other)?;
        let (files, sessions) = self.files_and_sessions(scope)?;
        let (wanted, of_file) = wanted(&files, &sessions);
        let sightings =
            threads::map(&wanted, Vec::new, |buffer, file| look_into(file, query, &needles, buffer));
        let seen: Vec<(&Session, Sighting)> =
            of_file.into_iter().zip(sightings).filter_map(|(session, seen)| Some((session, seen?))).collect();
        let ranking = Ranking::new(query, &sessions, seen.iter().map(|(_, sighting)| sighting));
        let have_all = seen.iter().filter(|(_, sighting)| sighting.phrases == query.all());
        let mut hits: Vec<Hit> = have_all
            .map(|(session, sighting)| {
                let (score, messages) = ranking.score(sighting);
                Hit { session: Session::clone(session), score, messages, snippets: Vec::new() }
            })
            .collect();
        let total = hits.len();
        sort(&mut hits);
        hits.truncate(limit);
        let snippets = threads::map(&hits, Vec::new, |buffer, hit| {
            best_places(&hit.session.file, query, &needles, &ranking, buffer)
        });
        for (hit, snippets) in hits.iter_mut().zip(snippets) {
            hit.snippets = snippets;
        }
        Ok(SearchResults { hits, total })
    }

    /// Looks for a regular expression in every text of every message.
    pub fn search_regex(&self, scope: &Scope, regex: &Regex, limit: usize) -> io::Result<SearchResults> {
        let (files, sessions) = self.files_and_sessions(scope)?;
        let (wanted, of_file) = wanted(&files, &sessions);
        let found = threads::map(&wanted, Vec::new, |buffer, file| {
            let (mut messages, mut snippets, mut text) = (0, Vec::new(), String::new());
            each_message(file, buffer, |record| {
                let mut first: Option<Snippet> = None;
                text::texts(record, &mut text, |place, text| {
                    if first.is_none() && regex.is_match(text) {
                        let places = regex.find_iter(text).take(20).map(|found| (0, found.range()));
                        first = Some(Snippet::new(record, place, text, &places.collect::<Vec<_>>()));
                    }
                });
                messages += usize::from(first.is_some());
                snippets.extend(first.filter(|_| snippets.len() < SNIPPETS));
            });
            (messages, snippets)
        });
        let mut hits: Vec<Hit> = of_file
            .into_iter()
            .zip(found)
            .filter(|(_, (messages, _))| *messages > 0)
            .map(|(session, (messages, snippets))| Hit {
                session: session.clone(),
                score: messages as f32,
                messages,
                snippets,
            })
            .collect();
        sort(&mut hits);
        let total = hits.len();
        hits.truncate(limit);
        Ok(SearchResults { hits, total })
    }
}

/// The best first, of those that fit equally well the newest.
fn sort(hits: &mut [Hit]) {
    hits.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| other.session.updated().cmp(&one.session.updated()))
    });
}

/// The files that are sessions, and the session of each.
fn wanted<'a>(files: &'a [SessionFile], sessions: &'a [Session]) -> (Vec<&'a SessionFile>, Vec<&'a Session>) {
    let children = sessions.iter().flat_map(|session| session.children.iter());
    // The text of a path is hashed in one go; a path would be taken apart for it.
    let by_path: HashMap<&OsStr, &Session> =
        sessions.iter().chain(children).map(|session| (session.file.path.as_os_str(), session)).collect();
    files.iter().filter_map(|file| Some((file, *by_path.get(file.path.as_os_str())?))).unzip()
}

/// Hands out every message of a file, each in its last version.
fn each_message(file: &SessionFile, buffer: &mut Vec<u8>, mut each: impl FnMut(&[u8])) {
    let Ok((_, outline)) = survey::outline(file, buffer) else { return };
    let Ok(open) = File::open(&file.path) else { return };
    let mut record = Vec::new();
    for span in outline.said {
        let Ok(length) = usize::try_from(span.length) else { continue };
        record.resize(length, 0);
        if files::read_exact_at(&open, &mut record, span.offset).is_ok() {
            each(&record);
        }
    }
}

/// What one file has of the words.
#[derive(Default)]
struct Sighting {
    /// The phrases that it has.
    phrases: u64,
    /// The messages with a word.
    messages: Vec<Message>,
}

struct Message {
    /// How many words it has.
    length: usize,
    phrases: u64,
    /// How often it has each word: the number of the word, and the times.
    times: Vec<(usize, u32)>,
}

/// None when it has not all of the words.
fn look_into(file: &SessionFile, query: &Query, needles: &Needles, buffer: &mut Vec<u8>) -> Option<Sighting> {
    let mut open = File::open(&file.path).ok()?;
    if !needles.all_in(&mut open, buffer).ok()? {
        return None;
    }
    let (mut seen, mut text) = (Sighting::default(), String::new());
    each_message(file, buffer, |record| {
        if let Some(message) = message(record, query, needles, &mut text) {
            seen.phrases |= message.phrases;
            seen.messages.push(message);
        }
    });
    Some(seen)
}

fn message(record: &[u8], query: &Query, needles: &Needles, text: &mut String) -> Option<Message> {
    if !needles.any_in(record) {
        return None;
    }
    let mut message = Message { length: 0, phrases: 0, times: Vec::new() };
    let mut places = Vec::new();
    text::texts(record, text, |_, text| {
        message.length += query.matches(text, &mut places, &mut message.times);
        message.phrases |= bits(&places);
    });
    (!message.times.is_empty()).then_some(message)
}

fn bits(places: &[(usize, std::ops::Range<usize>)]) -> u64 {
    places.iter().fold(0, |bits, (phrase, _)| bits | 1 << phrase)
}

/// How well messages fit.
struct Ranking {
    /// What each word is worth: the rarer, the more.
    weights: Vec<f32>,
    /// How many words the messages with one of them have.
    average: f32,
}

impl Ranking {
    fn new<'a>(query: &Query, sessions: &[Session], seen: impl Iterator<Item = &'a Sighting>) -> Self {
        let all: u64 = sessions.iter().map(|session| session.survey.messages).sum();
        let (mut have, mut messages, mut length) = (vec![0_u64; query.words().len()], 0_u64, 0);
        for message in seen.flat_map(|sighting| &sighting.messages) {
            messages += 1;
            length += message.length;
            for (word, _) in &message.times {
                if let Some(have) = have.get_mut(*word) {
                    *have += 1;
                }
            }
        }
        let all = all.max(messages) as f32;
        let weight = |have: u64| (1.0 + (all - have as f32 + 0.5) / (have as f32 + 0.5)).ln();
        let weights = have.into_iter().map(weight).collect();
        Self { weights, average: (length as f32 / messages.max(1) as f32).max(1.0) }
    }

    fn of_message(&self, message: &Message) -> f32 {
        let long = 1.0 - LENGTH_MATTERS + LENGTH_MATTERS * message.length as f32 / self.average;
        let worth = |&(word, times): &(usize, u32)| {
            let (weight, times) = (self.weights.get(word).copied().unwrap_or(0.0), times as f32);
            weight * times * (SATURATION + 1.0) / (times + SATURATION * long)
        };
        message.times.iter().map(worth).sum()
    }

    /// How well a session fits, and how many of its messages have a phrase.
    fn score(&self, seen: &Sighting) -> (f32, usize) {
        let fitting = || seen.messages.iter().filter(|message| message.phrases != 0);
        let best = fitting().map(|message| self.of_message(message)).fold(0.0, f32::max);
        let count = fitting().count();
        (best + (count as f32).ln_1p() * 0.1, count)
    }
}

/// The places of a session that are shown: those of the messages with the most phrases, and of those the best.
fn best_places(
    file: &SessionFile,
    query: &Query,
    needles: &Needles,
    ranking: &Ranking,
    buffer: &mut Vec<u8>,
) -> Vec<Snippet> {
    let (mut best, mut text): (Vec<(u32, f32, Snippet)>, _) = (Vec::new(), String::new());
    each_message(file, buffer, |record| {
        let Some(message) = message(record, query, needles, &mut text).filter(|message| message.phrases != 0)
        else {
            return;
        };
        let worth = (message.phrases.count_ones(), ranking.of_message(&message));
        let beaten = |(phrases, score, _): &(u32, f32, Snippet)| (*phrases, *score) >= worth;
        let at = best.partition_point(beaten);
        if at < SNIPPETS
            && let Some(snippet) = snippet(record, query, &mut text)
        {
            best.insert(at, (worth.0, worth.1, snippet));
            best.truncate(SNIPPETS);
        }
    });
    best.into_iter().map(|(_, _, snippet)| snippet).collect()
}

/// The text of a message with the most phrases.
fn snippet(record: &[u8], query: &Query, text: &mut String) -> Option<Snippet> {
    let (mut best, mut places): (Option<(u32, Snippet)>, _) = (None, Vec::new());
    text::texts(record, text, |place, text| {
        let _length = query.matches(text, &mut places, &mut Vec::new());
        let worth = bits(&places).count_ones();
        if worth > 0 && best.as_ref().is_none_or(|(known, _)| worth > *known) {
            best = Some((worth, Snippet::new(record, place, text, &places)));
        }
    });
    best.map(|(_, snippet)| snippet)
}

#[cfg(test)]
mod tests;
