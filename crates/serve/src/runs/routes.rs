//! `/v1/runs`.

use std::io::{self, Write};
use std::sync::Arc;

use alhena_batch::meaning::Options;
use alhena_model::Outcome;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Kept, Key, RunState, RunView, Started, disk, perform};
use crate::extract::{Asked, Given, Json, Named, aside, json, limit, typed};
use crate::policy::Beginning;
use crate::problem::Problem;
use crate::state::Shared;
use crate::stream::{Form, Until, last_seen, response};
use crate::tar;
use crate::token::hex;

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

/// From where on events are wanted.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct From {
    /// The last event that you have; `Last-Event-ID` says the same.
    pub after: Option<u64>,
    /// Whether to wait for more; what there is otherwise. True if it is not said.
    pub follow: Option<bool>,
}

/// Starts a run. With an `Idempotency-Key`, the same request again gives the same run.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/runs", tag = "runs",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key is the same run", max_length = 200, pattern = "^[!-~]*$")),
    request_body(content = crate::openapi::RunOptions, content_type = "application/json"),
    responses((status = 201, body = RunView, headers(("location" = String, description = "The run"))), crate::openapi::Starting)))]
pub async fn start(
    State(app): State<Shared>,
    headers: HeaderMap,
    Given(given): Given<Options>,
) -> Result<Response, Problem> {
    let key = key(&headers, &given)?;
    if app.is_ending() {
        return Err(ending());
    }
    let app = app.clone();
    let (kept, is_new) = aside(move || {
        let options = admitted(&app, &given, Beginning::Run)?;
        match app.runs.begin(&options, key)? {
            Started::Before(kept) => Ok((kept, false)),
            Started::New(kept, log) => {
                let (inner, run, its_log) = (app.clone(), kept.clone(), log.clone());
                let hand = app.runs.hand();
                let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(move || {
                    perform::perform(&inner, &run, &its_log, &options);
                    drop(hand);
                });
                spawned.map_err(|error| {
                    perform::not_performed(&app, &kept, &log, &error);
                    Problem::broken(error)
                })?;
                Ok((kept, true))
            }
        }
    })
    .await?;
    let mut response = json(StatusCode::CREATED, &kept.view());
    let location = HeaderValue::from_str(&format!("/v1/runs/{}", kept.id)).map_err(Problem::broken)?;
    response.headers_mut().insert(header::LOCATION, location);
    if !is_new {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Nothing begins any more.
pub fn ending() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "ending", "the server is ending").retry_after(30)
}

/// The options, if they may be given and make sense.
pub fn admitted(app: &Shared, given: &Options, what: Beginning) -> Result<Options, Problem> {
    let mut options = app.policy.admit(given, what, &|name| app.meaning.is_option(name))?;
    if what == Beginning::Conversation {
        // A run has one; a conversation is begun without.
        options.insert("prompt".to_owned(), Value::from("."));
    }
    app.meaning.check(&options).map_err(Problem::faults)?;
    Ok(options)
}

/// The key that a request has, with a mark of what it asks.
pub fn key(headers: &HeaderMap, given: &Options) -> Result<Option<Key>, Problem> {
    let Some(name) = headers.get("idempotency-key") else { return Ok(None) };
    let name = name.to_str().ok().filter(|name| (1..=200).contains(&name.len()));
    let name = name.ok_or_else(|| Problem::input("Idempotency-Key has to be 1 to 200 plain characters"))?;
    // The order of the options and the spaces between them mean nothing.
    let sorted: std::collections::BTreeMap<&String, &Value> = given.iter().collect();
    let asked = serde_json::to_vec(&sorted).map_err(Problem::broken)?;
    Ok(Some(Key { name: name.to_owned(), asked: hex(&Sha256::digest(asked)) }))
}

/// Lists runs, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs", tag = "runs", params(Which),
    responses((status = 200, body = RunList), crate::openapi::Reading)))]
pub async fn list(State(app): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<RunList>, Problem> {
    let views = app.runs.list().into_iter().map(|kept| kept.view());
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

fn read_outcome(kept: &Kept) -> Result<Outcome, Problem> {
    let bytes = std::fs::read(kept.dir.join(disk::OUTCOME)).map_err(Problem::broken)?;
    serde_json::from_slice(&bytes).map_err(Problem::broken)
}

/// Stops a run: gently, and when asked again at once.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path)),
    responses((status = 202, body = RunView), crate::openapi::Finding)))]
pub async fn cancel(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let kept = app.runs.get(&id)?;
    kept.stop();
    Ok(json(StatusCode::ACCEPTED, &kept.view()))
}

/// The events of a run: server-sent events, or JSON lines for `Accept: application/jsonl`; to the last, as they come.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/events", tag = "runs", params(("id" = String, Path), From,
        ("Last-Event-ID" = Option<u64>, Header, description = "The last event that you have")),
    responses((status = 200, description = "Events", content((String = "text/event-stream"), (String = "application/jsonl"))), crate::openapi::Finding)))]
pub async fn events(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Asked(from): Asked<From>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = last_seen(&headers, from.after)?;
    let kept = app.runs.get(&id)?;
    let log = aside(move || kept.log().map_err(Problem::broken)).await?;
    Ok(response(&log, after, Form::of(&headers), Until::of(from.follow)))
}

/// How a run ended.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/outcome", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Object), crate::openapi::Finding, crate::openapi::NotYet)))]
pub async fn outcome(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let kept = over(&app, &id)?;
    let bytes = std::fs::read(kept.dir.join(disk::OUTCOME)).map_err(Problem::broken)?;
    Ok(typed(StatusCode::OK, "application/json", bytes))
}

fn over(app: &Shared, id: &str) -> Result<Arc<Kept>, Problem> {
    let kept = app.runs.get(id)?;
    match kept.is_over() {
        true => Ok(kept),
        false => Err(Problem::conflict("the run is not over").hint("Follow its events, or cancel it.")),
    }
}

/// Everything that the CLI wrote, as a tar file that `alhena parse` reads when it is unpacked.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/recording", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, description = "A tar file", body = String, content_type = "application/x-tar"), crate::openapi::Finding, crate::openapi::NotYet)))]
pub async fn recording(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let kept = over(&app, &id)?;
    let dir = kept.dir.join(disk::RECORDING);
    if !dir.is_dir() {
        return Err(Problem::not_found("the run never began, so there is no recording"));
    }
    let name = format!("alhena-{id}");
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let inner = name.clone();
    tokio::task::spawn_blocking(move || {
        let mut pieces = io::BufWriter::with_capacity(64 << 10, Pieces(sender));
        // Whoever does not take it any more does not want it.
        let _gone = tar::write(&dir, &inner, &mut pieces).and_then(|()| pieces.flush());
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
struct Pieces(tokio::sync::mpsc::Sender<Bytes>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        self.0.blocking_send(piece).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
