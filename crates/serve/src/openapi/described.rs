//! What other crates tell as JSON, described for the document.
#![allow(dead_code)]

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

/// Options of a run; replaced by those that the command line makes.
#[derive(ToSchema)]
pub struct RunOptions {}

/// Options of a conversation; the same.
#[derive(ToSchema)]
pub struct ConversationOptions {}

/// Sessions, the newest first.
#[derive(ToSchema)]
pub struct Sessions {
    sessions: Vec<Session>,
}

/// A session.
#[derive(ToSchema)]
pub struct Session {
    /// Its id.
    id: String,
    /// Its first prompt.
    #[schema(required = false)]
    title: String,
    /// Its folder.
    #[schema(required = false)]
    project: String,
    /// answered, open, empty, lost, endangered or headless.
    state: String,
    #[schema(required = false, format = DateTime)]
    started: String,
    #[schema(format = DateTime)]
    updated: String,
    messages: u64,
    prompts: u64,
    models: Vec<String>,
    #[schema(value_type = Object)]
    usage: Value,
    /// Where it is kept.
    file: String,
    size: u64,
    #[schema(required = false)]
    other_files: Vec<String>,
    #[schema(required = false, value_type = Vec<Object>)]
    subagents: Vec<Value>,
}

/// What a search found.
#[derive(ToSchema)]
pub struct Found {
    total: u64,
    hits: Vec<Hit>,
}

/// A session in which it was found.
#[derive(ToSchema)]
pub struct Hit {
    score: f32,
    messages: u64,
    #[schema(value_type = Vec<Object>)]
    snippets: Vec<Value>,
    session: Session,
}

/// A session with its messages or its events.
#[derive(ToSchema)]
pub struct SessionShown {
    session: Session,
    #[schema(required = false, value_type = Vec<Object>)]
    messages: Vec<Value>,
    #[schema(required = false, value_type = Vec<Object>)]
    events: Vec<Value>,
}

/// What was used.
#[derive(ToSchema)]
pub struct UsageTable {
    /// day, model, folder or project, as it was asked for.
    by: String,
    currency: String,
    /// The date of the prices.
    prices: String,
    rows: BTreeMap<String, UsageRow>,
    total: UsageRow,
}

/// The figures of one day, model or folder.
#[derive(ToSchema)]
pub struct UsageRow {
    prompt: u64,
    cached: u64,
    output: u64,
    thoughts: u64,
    tool: u64,
    total: u64,
    answers: u64,
    #[schema(required = false)]
    cost: f64,
    #[schema(required = false)]
    unpriced: Vec<String>,
    #[schema(required = false)]
    at_least: bool,
}

/// Terminals, the oldest first.
#[derive(ToSchema)]
pub struct TerminalList {
    terminals: Vec<Terminal>,
}

/// A terminal and what its agent does.
#[derive(ToSchema)]
pub struct Terminal {
    id: String,
    name: String,
    dir: String,
    /// starting, idle, processing, completed, waiting, error or exited.
    status: String,
    approval: String,
    #[schema(format = DateTime)]
    created: String,
    #[schema(required = false)]
    model: String,
    #[schema(required = false)]
    message: String,
    #[schema(required = false, value_type = Object)]
    waiting_for: Value,
}

/// What a terminal shows.
#[derive(ToSchema)]
pub struct Screen {
    text: String,
    title: String,
    columns: u16,
    rows: u16,
    alternate: bool,
}

/// The version of Alhena.
#[derive(ToSchema)]
pub struct Version {
    name: String,
    version: String,
}

/// What the found Gemini CLI can do.
#[derive(ToSchema)]
pub struct Capabilities {
    version: String,
    features: BTreeMap<String, bool>,
    every_process_is_found: bool,
}

/// One thing that was looked at.
#[derive(ToSchema)]
pub struct Examined {
    what: String,
    /// good, doubtful or bad.
    state: String,
    detail: String,
    #[schema(required = false)]
    cure: String,
}
