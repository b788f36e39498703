//! `/v1/now`: everything that runs, what waits for a person first.
//!
//! One task looks, as long as somebody follows, and all who follow get the same text: a look at terminals costs something.

use std::sync::Arc;
use std::time::Duration;

use alhena_model::Timestamp;
use alhena_terminal::screen::Status;
use alhena_terminal::{Listed, status_name};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::extract::{Asked, Json, aside};
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::stream::{STILL_HERE, Until, streamed};
use crate::tasks::{TaskEntry, TaskKind, TaskState};
use crate::{batches, terminals};

/// No more often is it told.
const AT_MOST_EACH: Duration = Duration::from_millis(500);
/// Terminals and batches do not tell when they change.
const LOOK_EACH: Duration = Duration::from_secs(2);

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A run.
    Run,
    /// A conversation.
    Conversation,
    /// A terminal.
    Terminal,
    /// A batch.
    Batch,
}

/// Something that runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its id, or its name.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// Where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// What it is doing, in a word of its kind.
    pub state: String,
    /// Since when it is there.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// What it is doing, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Tokens so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What it cost so far, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What it waits for a person with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
}

/// Everything that runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NowView {
    /// What waits for a person first, then the newest first.
    pub items: Vec<Item>,
    /// What could not be looked at: whether such things run is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub unseen: Vec<Unseen>,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unseen {
    /// What would be there.
    pub kind: ItemKind,
    /// Why nobody knows.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::openapi::problem))]
    pub problem: Problem,
}

impl NowView {
    fn add(&mut self, kind: ItemKind, items: Result<Vec<Item>, Problem>) {
        match items {
            Ok(items) => self.items.extend(items),
            Err(problem) => self.unseen.push(Unseen { kind, problem }),
        }
    }
}

/// Who looks.
pub struct Now {
    told: watch::Sender<Arc<str>>,
    is_looking: Mutex<bool>,
}

impl Default for Now {
    fn default() -> Self {
        Self { told: watch::Sender::new(Arc::from("")), is_looking: Mutex::new(false) }
    }
}

fn look(app: &App) -> NowView {
    let items = app.tasks.active().iter().map(|entry| task(entry)).collect();
    let mut view = NowView { items, unseen: Vec::new() };
    let terminals = terminals::all(app).map(|rows| rows.iter().filter_map(terminal).collect());
    view.add(ItemKind::Terminal, terminals);
    view.add(ItemKind::Batch, batches::going(app));
    view.items.sort_by_key(|item| (item.waiting.is_none(), std::cmp::Reverse(item.since)));
    view
}

fn task(entry: &TaskEntry) -> Item {
    let task = entry.task();
    let (kind, state, title) = match entry.kind {
        TaskKind::Run => {
            let state = if task.state == TaskState::Starting { "queued" } else { "running" };
            let prompt = task.title.unwrap_or_default();
            (ItemKind::Run, state, prompt.lines().next().unwrap_or_default().chars().take(200).collect())
        }
        TaskKind::Conversation => (
            ItemKind::Conversation,
            task.state.name(),
            task.title.unwrap_or_else(|| "Conversation".to_owned()),
        ),
    };
    let waiting = task.permissions.first().map(|permission| match (&permission.command, &permission.path) {
        (Some(command), _) => format!("Run {command}"),
        (None, Some(path)) => format!("Change {path}"),
        (None, None) => permission.title.clone(),
    });
    Item {
        kind,
        id: task.id,
        title,
        dir: Some(task.dir),
        state: state.to_owned(),
        since: task.created_at,
        doing: task.doing,
        tokens: task.tokens,
        cost_usd: task.cost_usd,
        waiting,
    }
}

fn terminal(row: &Listed) -> Option<Item> {
    let (record, reading) = (&row.described.record, &row.described.reading);
    let doing = reading.turn.as_ref().and_then(|turn| serde_json::to_value(turn).ok());
    let doing = doing.and_then(|turn| turn.get("text").and_then(|text| text.as_str().map(str::to_owned)));
    (reading.status != Status::Exited).then(|| Item {
        kind: ItemKind::Terminal,
        id: record.name.clone(),
        title: record.name.clone(),
        dir: Some(record.dir.display().to_string()),
        state: status_name(reading.status).to_owned(),
        since: record.created,
        doing: doing.map(|text| text.chars().take(200).collect()),
        tokens: None,
        cost_usd: None,
        waiting: reading.waiting_for.as_ref().map(|waiting| waiting.question.clone()),
    })
}

/// Everything that runs, what waits for a person first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/now", tag = "now",
    responses((status = 200, body = NowView), crate::openapi::Reading)))]
pub async fn show(State(app): State<Shared>) -> Result<Json<NowView>, Problem> {
    aside(move || Ok(Json(look(&app)))).await
}

/// How long to follow.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct HowLong {
    /// Whether to wait for changes; what there is now otherwise. True if it is not said.
    follow: Option<bool>,
}

/// The same as server-sent events: all of it at each change.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/now/events", tag = "now", params(HowLong),
    responses((status = 200, description = "Snapshots", body = String, content_type = "text/event-stream"), crate::openapi::Reading)))]
pub async fn events(State(app): State<Shared>, Asked(how): Asked<HowLong>) -> Result<Response, Problem> {
    // Before the first look, so that no change is missed behind it.
    let told = match Until::of(how.follow) {
        Until::End => Some(followed(&app)),
        Until::Now => None,
    };
    let ending = app.ending.subscribe();
    let first = aside(move || Ok(serde_json::to_string(&look(&app)).unwrap_or_default())).await?;
    let first = format!("retry: 1000\n\ndata: {first}\n\n");
    let snapshots = stream::unfold((Some(first), told, ending), |(first, mut told, mut ending)| async move {
        let text = match (first, &mut told) {
            (Some(first), _) => first.into(),
            (None, Some(told)) => next(told, &mut ending).await?,
            (None, None) => return None,
        };
        Some((Ok::<_, std::io::Error>(text), (None, told, ending)))
    });
    Ok(streamed("text/event-stream", Body::from_stream(snapshots)))
}

/// What is told from now on.
fn followed(app: &Shared) -> watch::Receiver<Arc<str>> {
    let mut told = app.now.told.subscribe();
    // What was told to others before may be old.
    told.mark_unchanged();
    keep_looking(app);
    app.news.tell();
    told
}

async fn next(told: &mut watch::Receiver<Arc<str>>, ending: &mut watch::Receiver<u32>) -> Option<Bytes> {
    tokio::select! {
        // One that follows for ever must not hold up the end.
        _ = ending.wait_for(|asked| *asked > 1) => None,
        changed = tokio::time::timeout(STILL_HERE, told.changed()) => match changed {
            Ok(Ok(())) => Some(format!("data: {}\n\n", told.borrow_and_update().clone()).into()),
            Ok(Err(_nobody_looks)) => None,
            Err(_) => Some(Bytes::from_static(b": \n\n")),
        },
    }
}

/// Looks from now on, until nobody follows any more.
fn keep_looking(app: &Shared) {
    let mut is_looking = app.now.is_looking.lock();
    if std::mem::replace(&mut *is_looking, true) {
        return;
    }
    drop(is_looking);
    let app = app.clone();
    tokio::spawn(async move {
        let mut news = app.news.follow();
        let mut last: Option<NowView> = None;
        loop {
            {
                let mut is_looking = app.now.is_looking.lock();
                if app.now.told.receiver_count() == 0 {
                    *is_looking = false;
                    return;
                }
            }
            let looked = aside({
                let app = app.clone();
                move || Ok(look(&app))
            });
            if let Ok(view) = looked.await
                && last.as_ref() != Some(&view)
            {
                app.now.told.send_replace(serde_json::to_string(&view).unwrap_or_default().into());
                last = Some(view);
            }
            tokio::time::sleep(AT_MOST_EACH).await;
            let _or_not = tokio::time::timeout(LOOK_EACH, news.changed()).await;
        }
    });
}
