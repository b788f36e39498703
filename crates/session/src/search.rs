//! Search: words and phrases over all sessions, ranked, with what stands around them; and regular expressions.
//!
//! Two threads read 1 GB of sessions in the page cache in 0.15 s, so an index has to be worth its place: it answers in a few
//! milliseconds, ranks, and takes a tenth of the text. It is kept in the user's cache directory and brought up to date
//! before each search; what could not be indexed is read. Nothing is ever written into Gemini CLI's own directory, where it
//! would be deleted.

mod bytes;
mod index;
mod merge;
mod query;
mod rank;
mod run;
mod segment;
mod snippet;
mod text;
mod words;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;

use regex::Regex;

pub use index::Progress;
pub use query::Query;
pub use snippet::{Place, Snippet};

use self::index::Index;
use self::rank::{Candidate, Ranking, Spot};
use crate::file::SessionFile;
use crate::store::{Scope, Session, Store};
use crate::{survey, threads};

/// So many places are shown of one session.
const SNIPPETS: usize = 3;
/// So many sessions are looked into at least for a phrase, whose words the index has but not their order; more only until
/// as many have it as are shown.
const LOOKED_INTO: usize = 100;

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
pub struct Found {
    /// The best first.
    pub hits: Vec<Hit>,
    /// How many sessions have it; at least so many, where not all were looked into.
    pub total: usize,
    /// Whether there may be more than `total`.
    pub more: bool,
}

impl Store {
    /// Looks for words and phrases.
    pub fn search(
        &self,
        scope: &Scope,
        query: &Query,
        limit: usize,
        progress: Progress<'_>,
    ) -> io::Result<Found> {
        let (files, sessions) = self.files_and_sessions(scope)?;
        let dir = self.own_cache().map(|cache| cache.join("search"));
        if let Some(dir) = dir {
            // Whatever is wrong with the index, the sessions are there to be read.
            let index = index::update(&dir, &files, progress).unwrap_or_default();
            match find(&index, &files, &sessions, query, limit) {
                Ok(found) => return Ok(found),
                Err(_) => drop(std::fs::remove_dir_all(&dir)),
            }
        }
        find(&Index::default(), &files, &sessions, query, limit)
    }

    /// How many bytes the search index takes; none when there is no place for one.
    pub fn index_size(&self) -> u64 {
        self.own_cache().map_or(0, |cache| Index::open(&cache.join("search")).bytes())
    }

    /// Looks for a regular expression in every text of every message.
    pub fn search_regex(&self, scope: &Scope, regex: &Regex, limit: usize) -> io::Result<Found> {
        let (files, sessions) = self.files_and_sessions(scope)?;
        let by_path = by_path(&sessions);
        let wanted: Vec<&SessionFile> =
            files.iter().filter(|file| by_path.contains_key(file.path.as_os_str())).collect();
        let found = threads::map(&wanted, Vec::new, |buffer, file| {
            in_file(file, buffer, |record, add| {
                let mut places = Vec::new();
                text::texts(record, &mut String::new(), |place, text| {
                    places.clear();
                    places.extend(regex.find_iter(text).take(20).map(|found| (0, found.range())));
                    add(place, text, &places);
                });
            })
        });
        let mut hits: Vec<Hit> = wanted
            .iter()
            .zip(found)
            .filter_map(|(file, (messages, snippets))| {
                let session = (*by_path.get(file.path.as_os_str())?).clone();
                (messages > 0).then_some(Hit { session, score: messages as f32, messages, snippets })
            })
            .collect();
        sort(&mut hits);
        let total = hits.len();
        hits.truncate(limit);
        Ok(Found { hits, total, more: false })
    }
}

fn sort(hits: &mut [Hit]) {
    hits.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| other.session.updated().cmp(&one.session.updated()))
    });
}

/// Sessions by their file. The text of a path is hashed in one go; a path would be taken apart for it.
fn by_path(sessions: &[Session]) -> HashMap<&OsStr, &Session> {
    let children = sessions.iter().flat_map(|session| session.children.iter());
    sessions.iter().chain(children).map(|session| (session.file.path.as_os_str(), session)).collect()
}

type Places = [(usize, std::ops::Range<usize>)];

/// Reads every message of a file; gives how many have something, and the first places.
fn in_file(
    file: &SessionFile,
    buffer: &mut Vec<u8>,
    look: impl Fn(&[u8], &mut dyn FnMut(text::Place, &str, &Places)),
) -> (usize, Vec<Snippet>) {
    let (mut messages, mut snippets) = (0, Vec::new());
    let Ok((_, outline)) = survey::outline(file, buffer) else { return (0, snippets) };
    let Ok(open) = File::open(&file.path) else { return (0, snippets) };
    for span in outline.said {
        let Ok(record) = read(&open, span) else { continue };
        let mut best: Option<Snippet> = None;
        look(&record, &mut |place, text, places| {
            if !places.is_empty() && best.is_none() {
                best = Some(Snippet::new(&record, place, text, places));
            }
        });
        if let Some(snippet) = best {
            messages += 1;
            if snippets.len() < SNIPPETS {
                snippets.push(snippet);
            }
        }
    }
    (messages, snippets)
}

fn read(file: &File, span: survey::Span) -> io::Result<Vec<u8>> {
    let length = usize::try_from(span.length).map_err(|_| bytes::damaged())?;
    bytes::read_at(file, span.offset, length)
}

fn find(
    index: &Index,
    files: &[SessionFile],
    sessions: &[Session],
    query: &Query,
    limit: usize,
) -> io::Result<Found> {
    let by_path = by_path(sessions);
    let session_of = |file: &SessionFile| by_path.get(file.path.as_os_str()).copied();
    let covered = index.covered(files);
    let ranking = Ranking::new(index, &covered, query)?;
    let mut candidates = ranking.candidates();
    candidates.retain(|candidate| {
        candidate.phrases == query.all()
            && files.get(candidate.file).is_some_and(|file| session_of(file).is_some())
    });
    // Of those that fit equally well the newest come first, before only a few are looked into.
    let updated =
        |candidate: &Candidate| files.get(candidate.file).and_then(session_of).map(Session::updated);
    candidates.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| updated(other).cmp(&updated(one)))
    });
    let asked = candidates.len();
    let (mut hits, mut looked_into, mut total) = (Vec::new(), 0, 0);
    let least = if query.is_plain() { limit } else { LOOKED_INTO };
    while looked_into < asked && (hits.len() < limit || looked_into < least) {
        let next = candidates.get(looked_into..).unwrap_or_default();
        let next = next.get(..least.max(looked_into).max(1)).unwrap_or(next);
        looked_into += next.len();
        let spots = ranking.spots(&next.iter().map(|candidate| candidate.file).collect());
        let looks = threads::map(
            next,
            || (),
            |(), candidate| {
                let (file, spots) = (files.get(candidate.file)?, spots.get(&candidate.file)?);
                look_into(file, spots, query).transpose()
            },
        );
        for (candidate, look) in next.iter().zip(looks) {
            let Some(snippets) = look.transpose()? else { continue };
            total += 1;
            let Some(session) = files.get(candidate.file).and_then(session_of) else { continue };
            let (score, messages) = (candidate.score, candidate.messages);
            hits.push(Hit { session: session.clone(), score, messages, snippets });
        }
    }
    let (mut total, more) = if query.is_plain() { (asked, false) } else { (total, looked_into < asked) };
    let rest: Vec<&SessionFile> = index::missing(&covered, files.len())
        .into_iter()
        .filter_map(|at| files.get(at))
        .filter(|file| session_of(file).is_some())
        .collect();
    let scanned = threads::map(&rest, Vec::new, |buffer, file| scan(file, query, buffer));
    for (file, hit) in rest.iter().zip(scanned) {
        if let (Some((score, messages, snippets)), Some(session)) = (hit, session_of(file)) {
            total += 1;
            hits.push(Hit { session: session.clone(), score, messages, snippets });
        }
    }
    sort(&mut hits);
    hits.truncate(limit);
    Ok(Found { hits, total, more })
}

/// Finds the words in the messages that the index names; `None` when they are there but not in a row.
fn look_into(file: &SessionFile, spots: &[Spot], query: &Query) -> io::Result<Option<Vec<Snippet>>> {
    let Ok(open) = File::open(&file.path) else { return Ok(None) };
    let (mut snippets, mut phrases, mut places) = (Vec::new(), 0_u64, Vec::new());
    let mut text = String::new();
    for Spot { span, .. } in spots {
        if snippets.len() >= SNIPPETS && phrases == query.all() {
            break;
        }
        let record = read(&open, *span)?;
        let mut best: Option<(usize, Snippet)> = None;
        let mut any = false;
        text::texts(&record, &mut text, |place, text| {
            query.matches(text, &mut places);
            let here = places.iter().fold(0_u64, |bits, (phrase, _)| bits | 1 << phrase);
            any |= here != 0;
            phrases |= here;
            let worth = here.count_ones() as usize;
            if worth > 0 && best.as_ref().is_none_or(|(known, _)| worth > *known) {
                best = Some((worth, Snippet::new(&record, place, text, &places)));
            }
        });
        if query.is_plain() && !any {
            // The file is the one that was indexed, so the index is wrong.
            return Err(bytes::damaged());
        }
        snippets.extend(best.map(|(_, snippet)| snippet).filter(|_| snippets.len() < SNIPPETS));
    }
    Ok((phrases == query.all()).then_some(snippets))
}

/// The same without an index.
fn scan(file: &SessionFile, query: &Query, buffer: &mut Vec<u8>) -> Option<(f32, usize, Vec<Snippet>)> {
    let phrases = std::cell::Cell::new(0_u64);
    let (messages, snippets) = in_file(file, buffer, |record, add| {
        let mut places = Vec::new();
        text::texts(record, &mut String::new(), |place, text| {
            query.matches(text, &mut places);
            let here = places.iter().fold(0_u64, |bits, (phrase, _)| bits | 1 << phrase);
            phrases.set(phrases.get() | here);
            add(place, text, &places);
        });
    });
    (phrases.get() == query.all()).then(|| ((messages as f32).ln_1p(), messages, snippets))
}

#[cfg(test)]
mod tests;
