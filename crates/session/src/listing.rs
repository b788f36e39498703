//! Sessions as programs are told of them: in lists, and where a search found them.

use alhena_model::{Timestamp, Usage};
use serde::Serialize;

use crate::search::{SearchResults, Snippet};
use crate::{Session, SessionState};

/// One session, for programs.
#[derive(Debug, Serialize)]
pub struct Entry<'a> {
    /// Its id.
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    state: SessionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    updated: Timestamp,
    messages: u64,
    prompts: u64,
    models: Vec<String>,
    usage: Usage,
    file: String,
    size: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagents: Vec<Entry<'a>>,
}

impl<'a> Entry<'a> {
    /// What is told of a session.
    pub fn of(session: &'a Session) -> Self {
        let survey = &session.survey;
        let usage = survey.usage();
        Self {
            id: &session.id,
            title: survey.title.as_deref(),
            project: session.file.project.root.as_ref().map(|root| root.display().to_string()),
            state: session.state(),
            started: survey.started.map(Timestamp::from_millis),
            updated: Timestamp::from_millis(session.updated()),
            messages: survey.messages,
            prompts: survey.prompts,
            models: usage.models.keys().cloned().collect(),
            usage,
            file: session.file.path.display().to_string(),
            size: session.file.stamp.size,
            other_files: session.others.iter().map(|(file, _)| file.path.display().to_string()).collect(),
            subagents: session.children.iter().map(Entry::of).collect(),
        }
    }
}

/// What a search found.
#[derive(Debug, Serialize)]
pub struct Found<'a> {
    total: usize,
    hits: Vec<FoundHit<'a>>,
}

/// A session in which it was found.
#[derive(Debug, Serialize)]
pub struct FoundHit<'a> {
    score: f32,
    messages: usize,
    snippets: &'a [Snippet],
    session: Entry<'a>,
}

impl<'a> Found<'a> {
    /// What is told of it.
    pub fn of(found: &'a SearchResults) -> Self {
        let hits = found.hits.iter().map(|hit| FoundHit {
            score: hit.score,
            messages: hit.messages,
            snippets: &hit.snippets,
            session: Entry::of(&hit.session),
        });
        Self { total: found.total, hits: hits.collect() }
    }
}
