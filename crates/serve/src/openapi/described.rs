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
