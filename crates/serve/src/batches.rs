//! `/v1/batches`: batches on this machine, which announce themselves in Alhena's state directory.

use std::io::Read;
use std::path::Path;

use alhena_batch::progress::Progress;
use alhena_batch::registry::{Record, Registry, State as Going};
use alhena_batch::summary::Summary;
use alhena_model::Timestamp;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;

use crate::extract::{Json, Named, aside, typed};
use crate::now::{Item, ItemKind};
use crate::problem::Problem;
use crate::state::{App, Shared};

/// So much of the results is read at once.
const PIECE: usize = 64 << 10;

/// A batch, as it is told.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Batch))]
pub struct BatchView {
    /// Its id.
    id: String,
    /// The name of the file with its jobs.
    title: String,
    /// `running`, `ended`, or `died`: it was killed, and the same command goes on with it.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    state: Going,
    /// Where its jobs come from; `-` is standard input.
    jobs_from: String,
    /// Where its results go.
    results_in: String,
    /// When it began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    started_at: Timestamp,
    /// When it last told how far it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    updated_at: Timestamp,
    /// How far it is.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    progress: Progress,
    /// What came of it, when it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Object))]
    summary: Option<Summary>,
}

/// Batches, the last one first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchList {
    /// The batches.
    batches: Vec<BatchView>,
}

impl BatchView {
    fn of(record: Record) -> Self {
        Self {
            title: title(&record),
            state: record.state(),
            jobs_from: record.jobs,
            results_in: record.results.display().to_string(),
            id: record.id,
            started_at: record.started,
            updated_at: record.updated,
            progress: record.progress,
            summary: record.summary,
        }
    }
}

fn title(record: &Record) -> String {
    let name = Path::new(&record.jobs).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| record.jobs.clone())
}

fn all(app: &App) -> Result<Vec<Record>, Problem> {
    match Registry::of(&app.environment) {
        None => Ok(Vec::new()),
        Some(registry) => registry.list().map_err(Problem::broken),
    }
}

fn get(app: &App, id: &str) -> Result<Record, Problem> {
    let found = match Registry::of(&app.environment) {
        None => None,
        Some(registry) => registry.get(id).map_err(Problem::broken)?,
    };
    found.ok_or_else(|| Problem::not_found(format!("there is no batch {id:?}")))
}

/// Those that are under way.
pub fn going(app: &App) -> Result<Vec<Item>, Problem> {
    let going = all(app)?.into_iter().filter(|record| record.state() == Going::Running);
    Ok(going.map(item).collect())
}

fn item(record: Record) -> Item {
    let progress = &record.progress;
    let done = progress.succeeded + progress.failed;
    let doing = match progress.jobs {
        Some(jobs) => format!("{done} of {jobs} jobs"),
        None => format!("{done} jobs, and more may come"),
    };
    Item {
        kind: ItemKind::Batch,
        title: title(&record),
        dir: None,
        state: "running".to_owned(),
        since: record.started,
        doing: Some(doing),
        tokens: Some(progress.spent.tokens).filter(|tokens| *tokens > 0),
        cost_usd: (progress.spent.tokens > 0 && !progress.spent.unpriced).then_some(progress.spent.cost_usd),
        waiting: None,
        id: record.id,
    }
}

/// Lists batches, the last one first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/batches", tag = "batches",
    responses((status = 200, body = BatchList), crate::openapi::Reading)))]
pub async fn list(State(app): State<Shared>) -> Result<Json<BatchList>, Problem> {
    aside(move || Ok(Json(BatchList { batches: all(&app)?.into_iter().map(BatchView::of).collect() }))).await
}

/// How far a batch is.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/batches/{id}", tag = "batches", params(("id" = String, Path)),
    responses((status = 200, body = BatchView), crate::openapi::Finding)))]
pub async fn show(State(app): State<Shared>, Named(id): Named<String>) -> Result<Json<BatchView>, Problem> {
    aside(move || Ok(Json(BatchView::of(get(&app, &id)?)))).await
}

/// Its results so far, as its results file has them: one a line.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/batches/{id}/results", tag = "batches", params(("id" = String, Path)),
    responses((status = 200, description = "Results", body = String, content_type = "application/jsonl"), crate::openapi::Finding)))]
pub async fn results(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let file = aside(move || {
        let record = get(&app, &id)?;
        match alhena_sys::files::open(&record.results) {
            Ok(file) => Ok(Some(file)),
            // Nothing is done yet, or somebody has put them elsewhere.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Problem::broken(format!("{}: {error}", record.results.display()))),
        }
    });
    let file = file.await?;
    let pieces = stream::unfold(file, |file| async {
        let mut file = file?;
        let mut piece = vec![0; PIECE];
        match file.read(&mut piece) {
            Ok(0) => None,
            Ok(count) => {
                piece.truncate(count);
                Some((Ok::<_, std::io::Error>(Bytes::from(piece)), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(typed(StatusCode::OK, "application/jsonl", Body::from_stream(pieces)))
}
