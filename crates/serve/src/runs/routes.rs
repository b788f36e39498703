//! `/v1/runs`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use alhena_batch::meaning::Options;
use alhena_model::Outcome;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::{Run, RunState, RunView, disk};
use crate::extract::{Asked, Given, Json, Named, json, limit, typed};
use crate::problem::Problem;
use crate::shelf::routes::{self, From};
use crate::state::Shared;
use crate::tar;

/// Whoever takes nothing of a recording for this long does not want it.
const SLOWEST_PIECE: Duration = Duration::from_secs(30);

/// Runs, the newest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    /// The runs.
    runs: Vec<RunView>,
}

/// A run, with its outcome once it is over.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunWithOutcome {
    #[serde(flatten)]
    run: RunView,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::outcome))]
    outcome: Option<Outcome>,
}

/// Which runs.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// So many at most; 100 otherwise.
    #[cfg_attr(feature = "openapi", param(maximum = 10000))]
    limit: Option<u32>,
    /// Only those that are so far.
    state: Option<RunState>,
}

/// Starts a run. With an `Idempotency-Key`, the same request again gives the same run.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/runs", tag = "runs",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key is the same run", max_length = 200, pattern = "^[!-~]+$")),
    request_body(content = crate::openapi::RunOptions, content_type = "application/json"),
    responses((status = 201, body = RunView, headers(("location" = String, description = "The run"))), crate::openapi::Starting)))]
pub async fn start(
    State(app): State<Shared>,
    headers: HeaderMap,
    Given(given): Given<Options>,
) -> Result<Response, Problem> {
    routes::start::<RunView>(app, &headers, given).await
}

/// Lists runs, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs", tag = "runs", params(Which),
    responses((status = 200, body = RunList), crate::openapi::Reading)))]
pub async fn list(State(app): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<RunList>, Problem> {
    let views = app.runs.list().into_iter().map(|run| run.view());
    let wanted = views.filter(|view| which.state.is_none_or(|state| view.state == state));
    Ok(Json(RunList { runs: wanted.take(limit(which.limit, 100)?).collect() }))
}

/// Tells of a run, with its outcome once it is over.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunWithOutcome), crate::openapi::Finding)))]
pub async fn show(
    State(app): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<RunWithOutcome>, Problem> {
    let kept = app.runs.get(&id)?;
    let run = kept.view();
    let outcome = match run.state {
        RunState::Finished => Some(read_outcome(&kept)?),
        _ => None,
    };
    Ok(Json(RunWithOutcome { run, outcome }))
}

fn read_outcome(run: &Run) -> Result<Outcome, Problem> {
    let bytes = std::fs::read(run.dir.join(disk::OUTCOME)).map_err(Problem::broken)?;
    serde_json::from_slice(&bytes).map_err(Problem::broken)
}

/// Stops a run: gently, and when asked again at once.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path)),
    responses((status = 202, body = RunView), crate::openapi::Finding)))]
pub async fn cancel(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let run = app.runs.get(&id)?;
    run.stop();
    Ok(json(StatusCode::ACCEPTED, &run.view()))
}

/// The events of a run: server-sent events, or JSON lines for `Accept: application/jsonl`; to the last, as they come.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/events", tag = "runs", params(("id" = String, Path), From,
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that you have", max_length = 18, pattern = "^[0-9]*$")),
    responses((status = 200, description = "Events", content((String = "text/event-stream"), (String = "application/jsonl"))), (status = 204, description = "It is over, and you have its last event"), crate::openapi::Finding)))]
pub async fn events(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Asked(from): Asked<From>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    routes::events(&app.runs, &id, &from, &headers).await
}

/// How a run ended.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/outcome", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Object), crate::openapi::Finding, crate::openapi::NotYet)))]
pub async fn outcome(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let run = over(&app, &id)?;
    let bytes = std::fs::read(run.dir.join(disk::OUTCOME)).map_err(Problem::broken)?;
    Ok(typed(StatusCode::OK, "application/json", bytes))
}

fn over(app: &Shared, id: &str) -> Result<Arc<Run>, Problem> {
    let run = app.runs.get(id)?;
    match run.is_over() {
        true => Ok(run),
        false => Err(Problem::conflict("the run is not over").hint("Follow its events, or cancel it.")),
    }
}

/// Everything that the CLI wrote, as a tar file that `alhena parse` reads when it is unpacked.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/recording", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, description = "A tar file", body = String, content_type = "application/x-tar"), crate::openapi::Finding, crate::openapi::NotYet, crate::openapi::TooMany)))]
pub async fn recording(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let run = over(&app, &id)?;
    let dir = run.dir.join(disk::RECORDING);
    if !dir.is_dir() {
        return Err(Problem::not_found("the run never began, so there is no recording"));
    }
    let room = app.recordings.clone().try_acquire_owned().map_err(|_| {
        let detail = "many recordings are being read already";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many", detail)
            .hint("Wait until somebody has read one.")
            .retry_after(5)
    })?;
    let name = format!("alhena-{id}");
    let (sender, receiver) = mpsc::channel(4);
    let inner = name.clone();
    tokio::task::spawn_blocking(move || {
        let pieces = Pieces { sender, runtime: Handle::current() };
        let mut pieces = io::BufWriter::with_capacity(64 << 10, pieces);
        // Whoever does not take it any more does not want it.
        let _gone = tar::write(&dir, &inner, &mut pieces).and_then(|()| pieces.flush());
        drop(room);
    });
    let pieces = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (Ok::<_, io::Error>(piece), receiver))
    });
    let mut response = typed(StatusCode::OK, "application/x-tar", Body::from_stream(pieces));
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{name}.tar\""));
    response.headers_mut().insert(header::CONTENT_DISPOSITION, named.map_err(Problem::broken)?);
    Ok(response)
}

/// Hands on what is written, as fast as it is taken.
struct Pieces {
    sender: mpsc::Sender<Bytes>,
    runtime: Handle,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.sender.send_timeout(Bytes::copy_from_slice(bytes), SLOWEST_PIECE);
        self.runtime.block_on(sent).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
