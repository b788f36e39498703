//! Playing a cassette back: each request gets the answer that was recorded for it.
//!
//! Gemini CLI asks side questions beside the turns, at the same time and in any order, so a request is found by what it
//! asks and not by its number. Equal ones are answered in the order of the recording. A side question that is asked more
//! often than it was gets its last answer again; a turn does not.

use std::io;
use std::path::{Path, PathBuf};

use super::{
    Answered, Asked, Body, Cassette, CassetteError, Complaints, Interaction, Line, Normal, Tape, asked,
    differs,
};
use alhena_sys::http::Request;
use parking_lot::Mutex;

/// A cassette that is played back.
pub struct Player {
    path: PathBuf,
    interactions: Vec<Interaction>,
    client: Option<String>,
    used: Mutex<Vec<usize>>,
    normal: Normal,
    complaints: Complaints,
}

impl Player {
    /// Reads a cassette.
    pub fn open(path: &Path, normal: Normal) -> Result<Self, CassetteError> {
        Ok(Self::of(Cassette::read(path)?, path, normal))
    }

    /// One that was read, from this file.
    pub fn of(cassette: Cassette, path: &Path, normal: Normal) -> Self {
        let Cassette { mut interactions, client, .. } = cassette;
        // Whoever wrote it may have known another table, and other secrets.
        for each in &mut interactions {
            each.request = normal.again(&each.request);
        }
        let used = Mutex::new(vec![0; interactions.len()]);
        let complaints = Complaints::default();
        Player { path: path.to_owned(), interactions, client, used, normal, complaints }
    }

    /// What was asked and is not on it.
    pub fn complaints(&self) -> Complaints {
        self.complaints.clone()
    }

    /// That another program asks than the one that was recorded: another release asks otherwise.
    fn another_client(&self, request: &Request) -> Option<String> {
        let (there, here) = (self.client.as_deref()?, super::client_of(request)?);
        (there != here).then(|| format!("; it was recorded with {there}, and this is {here}"))
    }

    /// The answer to a request; what differs when there is none.
    fn find(&self, asked: &Asked) -> Result<&Answered, String> {
        let mut used = self.used.lock();
        let fitting: Vec<usize> = (0..self.interactions.len())
            .filter(|index| {
                self.interactions.get(*index).is_some_and(|each| differs::same(&each.request, asked))
            })
            .collect();
        let is_free = |index: &&usize| used.get(**index).is_some_and(|used| *used == 0);
        let fresh =
            fitting.iter().find(is_free).or_else(|| fitting.last().filter(|_| !asked.is_turn())).copied();
        if let Some(answer) = fresh.and_then(|index| self.interactions.get(index)) {
            fresh.and_then(|index| used.get_mut(index)).into_iter().for_each(|used| *used += 1);
            return Ok(&answer.response);
        }
        if !fitting.is_empty() {
            return Err(format!("it was recorded {} times and is asked once more", fitting.len()));
        }
        let unused = self.interactions.iter().zip(used.iter()).filter(|(_, used)| **used == 0);
        let nearest = unused.map(|(each, _)| &each.request).min_by_key(|each| differs::distance(each, asked));
        Err(nearest
            .and_then(|nearest| differs::in_words(nearest, asked))
            .unwrap_or_else(|| "everything that was recorded has been asked already".to_owned()))
    }
}

impl Tape for Player {
    fn answer(&self, request: Request, line: &Line<'_>) -> io::Result<()> {
        let (asked, normal) = asked(&request, &self.normal);
        let answer = match self.find(&asked) {
            Ok(answer) => answer,
            Err(why) => {
                let said = format!(
                    "This request is not on the cassette {} (`cassette_mode` record records it anew): {why}{}",
                    self.path.display(),
                    self.another_client(&request).unwrap_or_default()
                );
                self.complaints.add(said.clone());
                return line.refuse(400, &said);
            }
        };
        line.open(answer.status, &answer.headers)?;
        match &answer.body {
            Body::Events(events) => {
                for event in events {
                    line.piece(format!("data: {}\r\n\r\n", normal.here_value(event)).as_bytes())?;
                }
            }
            Body::Json(value) => line.piece(normal.here_value(value).to_string().as_bytes())?,
            Body::Chunks(chunks) => {
                for chunk in chunks {
                    line.piece(normal.here(chunk).as_bytes())?;
                }
            }
        }
        line.close()
    }
}
