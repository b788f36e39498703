//! `/v1/runs` and `/v1/conversations`. A handler of both is told the kind by its router; `openapi.rs` describes those.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use alhena_batch::launcher::setting_error;
use alhena_model::{Failure, FailureKind, Outcome, RunOptions, SettingError};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

pub use super::questions::Decision;
use super::store::{Key, Started};
use super::{
    ConversationList, OUTCOME, PermissionList, RECORDING, RunList, RunState, RunView, Task, TaskEntry,
    TaskKind, TaskWithOutcome, conversation, questions, run,
};
use crate::extract::{Asked, Given, Json, Named, aside, json, limit, typed};
use crate::policy;
use crate::problem::Problem;
use crate::state::Shared;
use crate::stream::{Form, Until, last_seen, response};
use crate::tar;
use crate::token::hex;

/// How long a client may take nothing of a recording before it is given up.
const SLOWEST_PIECE: Duration = Duration::from_secs(30);

/// The runs to list.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Maximum number of runs; 100 if absent.
    #[cfg_attr(feature = "openapi", param(maximum = 10000))]
    limit: Option<u32>,
    /// Only runs in this state.
    state: Option<RunState>,
}

/// The events to read.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct From {
    /// The last event that you have; the same as `Last-Event-ID`.
    after: Option<u64>,
    /// False to get only the events that there are now; true if absent.
    follow: Option<bool>,
}

/// A prompt.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// Its text.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    text: String,
}

/// An answer to a question.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The decision.
    decision: Decision,
    /// Why it is rejected, for the agent.
    reason: Option<String>,
}

/// Changes of a conversation.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// What may be done without asking, from now on.
    #[cfg_attr(feature = "openapi", schema(pattern = "^(plan|default|auto-edit|yolo)$"))]
    mode: Option<String>,
    /// The model, from the next prompt on.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    model: Option<String>,
}

/// Returns the prompt and the options with which a task starts, if the policy admits them and they make sense.
fn admitted(
    app: &Shared,
    given: &Map<String, Value>,
    kind: TaskKind,
) -> Result<(Option<alhena_model::Prompt>, RunOptions), Problem> {
    let (mut prompt, mut options) = policy::read(given)?;
    policy::admit(&app.policy, kind, &mut prompt, &mut options)?;
    match &prompt {
        Some(prompt) => prompt.check()?,
        None if kind == TaskKind::Conversation => {}
        None => {
            return Err(SettingError::new("there is no prompt", "Give a prompt, or a prompt_file.").into());
        }
    }
    app.launcher.check(prompt.as_ref(), &options).map_err(|error| setting_error(&error))?;
    Ok((prompt, options))
}

/// Returns the key of a request, with a digest of its options.
fn key(headers: &HeaderMap, given: &Map<String, Value>) -> Result<Option<Key>, Problem> {
    let Some(name) = headers.get("idempotency-key") else { return Ok(None) };
    let is_plain =
        |name: &&str| (1..=200).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    let name = name.to_str().ok().filter(is_plain).ok_or_else(|| {
        Problem::input("Idempotency-Key has to be 1 to 200 plain characters without spaces")
    })?;
    // The order of the options and the spaces between them mean nothing.
    let sorted: BTreeMap<&String, &Value> = given.iter().collect();
    let asked = serde_json::to_vec(&sorted).map_err(Problem::broken)?;
    Ok(Some(Key { name: name.to_owned(), asked: hex(&Sha256::digest(asked)) }))
}

pub async fn start(
    State(app): State<Shared>,
    Extension(kind): Extension<TaskKind>,
    headers: HeaderMap,
    Given(given): Given<Map<String, Value>>,
) -> Result<Response, Problem> {
    let key = key(&headers, &given)?;
    if app.is_ending() {
        return Err(Problem::ending());
    }
    let started = aside(move || {
        // Whether it could be started now says nothing about one that was: its folder may be gone.
        if let Some(before) = app.tasks.before(kind, key.as_ref())? {
            return Ok(Started::Before(before));
        }
        let (prompt, options) = admitted(&app, &given, kind)?;
        let started = app.tasks.start(kind, key, |id| Task::new(id, prompt.as_ref(), &options))?;
        if let Started::New(entry) = &started {
            perform(&app, entry, prompt, options)?;
        }
        Ok(started)
    });
    let (entry, is_replayed) = match started.await? {
        Started::New(entry) => (entry, false),
        Started::Before(entry) => (entry, true),
    };
    let mut response = json(StatusCode::CREATED, &entry.view());
    let location = HeaderValue::from_str(&format!("/v1/{}s/{}", kind.name(), entry.id));
    response.headers_mut().insert(header::LOCATION, location.map_err(Problem::broken)?);
    if is_replayed {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Starts the thread of a new task.
fn perform(
    app: &Shared,
    entry: &Arc<TaskEntry>,
    prompt: Option<alhena_model::Prompt>,
    options: RunOptions,
) -> Result<(), Problem> {
    let spawned = app.spawn(entry.kind.name(), entry, move |app, entry| match entry.kind {
        TaskKind::Run => run::perform(app, entry, prompt.as_ref(), &options),
        TaskKind::Conversation => conversation::open(app, entry, &options),
    });
    spawned.map_err(|error| {
        let failure = Failure::new(FailureKind::Crashed, format!("it could not be started: {error}"));
        match entry.kind {
            TaskKind::Run => run::finish(&app.tasks, entry, Outcome::not_begun(failure)),
            TaskKind::Conversation => conversation::not_opened(app, entry, failure),
        }
        Problem::broken(error)
    })
}

pub async fn show(
    State(app): State<Shared>,
    Extension(kind): Extension<TaskKind>,
    Named(id): Named<String>,
) -> Result<Json<TaskWithOutcome>, Problem> {
    let entry = app.tasks.get(kind, &id)?;
    let task = entry.view();
    let is_finished = matches!(&task, super::TaskView::Run(run) if run.state == RunState::Finished);
    let outcome = match is_finished {
        true => Some(serde_json::from_slice(&read_outcome(&entry)?).map_err(Problem::broken)?),
        false => None,
    };
    Ok(Json(TaskWithOutcome { task, outcome }))
}

pub async fn cancel(
    State(app): State<Shared>,
    Extension(kind): Extension<TaskKind>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    let entry = app.tasks.get(kind, &id)?;
    match kind {
        TaskKind::Run => entry.stop(),
        TaskKind::Conversation => conversation::cancel(&entry),
    }
    Ok(json(StatusCode::ACCEPTED, &entry.view()))
}

pub async fn events(
    State(app): State<Shared>,
    Extension(kind): Extension<TaskKind>,
    Named(id): Named<String>,
    Asked(from): Asked<From>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = last_seen(&headers, from.after)?;
    let entry = app.tasks.get(kind, &id)?;
    let log = aside(move || entry.log().map_err(Problem::broken)).await?;
    let form = Form::of(&headers);
    if form == Form::Sse && headers.contains_key("last-event-id") && log.has_nothing_after(after) {
        // Nothing else ends an EventSource: it would reconnect for ever to a stream that has ended.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(response(&log, after, form, Until::of(from.follow)))
}

/// Lists runs, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs", tag = "runs", operation_id = "list", params(Which),
    responses((status = 200, body = RunList), crate::openapi::Reading)))]
pub async fn runs(State(app): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<RunList>, Problem> {
    let views = app.tasks.list(TaskKind::Run).into_iter().map(|run| RunView::from(run.task()));
    let wanted = views.filter(|view| which.state.is_none_or(|state| view.state == state));
    Ok(Json(RunList { runs: wanted.take(limit(which.limit, 100)?).collect() }))
}

/// Lists conversations, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/conversations", tag = "conversations", operation_id = "list",
    responses((status = 200, body = ConversationList), crate::openapi::Reading)))]
pub async fn conversations(State(app): State<Shared>) -> Json<ConversationList> {
    let entries = app.tasks.list(TaskKind::Conversation);
    Json(ConversationList { conversations: entries.iter().map(|entry| entry.task().into()).collect() })
}

/// Shows how a run ended.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/outcome", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = Object), crate::openapi::Finding, crate::openapi::NotYet)))]
pub async fn outcome(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    Ok(typed(StatusCode::OK, "application/json", read_outcome(&*over(&app, &id)?)?))
}

fn read_outcome(run: &TaskEntry) -> Result<Vec<u8>, Problem> {
    std::fs::read(run.dir.join(OUTCOME)).map_err(Problem::broken)
}

fn over(app: &Shared, id: &str) -> Result<Arc<TaskEntry>, Problem> {
    let run = app.tasks.get(TaskKind::Run, id)?;
    match run.is_over() {
        true => Ok(run),
        false => Err(Problem::conflict("the run is not over").hint("Follow its events, or cancel it.")),
    }
}

/// Downloads everything that the CLI wrote, as a tar file that `alhena parse` reads when it is unpacked.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/runs/{id}/recording", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, description = "A tar file", body = String, content_type = "application/x-tar"), crate::openapi::Finding, crate::openapi::NotYet, crate::openapi::TooMany)))]
pub async fn recording(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let run = over(&app, &id)?;
    let dir = run.dir.join(RECORDING);
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
        // An error means that the client has gone.
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

/// Passes on what is written, as fast as the client takes it.
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

/// Changes the mode or the model of a conversation.
#[cfg_attr(feature = "openapi", utoipa::path(patch, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = String, Path)),
    request_body = Changes, responses((status = 200, body = super::ConversationView), crate::openapi::Changing)))]
pub async fn change(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Given(changes): Given<Changes>,
) -> Result<Response, Problem> {
    let entry = app.tasks.get(TaskKind::Conversation, &id)?;
    let mode = changes.mode.as_deref().map(|mode| policy::mode(&app.policy, mode)).transpose()?;
    if changes.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
        return Err(
            Problem::input("model: a name is needed").hint("Leave it out to keep the one that it has.")
        );
    }
    aside(move || {
        let mut talk = entry.talk();
        let talk = talk.as_mut().ok_or_else(|| Problem::conflict("the conversation is not open"))?;
        if let Some(mode) = mode {
            talk.set_mode(mode)?;
            app.tasks.change(&entry, |task| task.approval = Some(mode.to_string()));
        }
        if let Some(model) = changes.model {
            talk.set_model(model.clone())?;
            app.tasks.change(&entry, |task| task.model = Some(model));
        }
        Ok(json(StatusCode::OK, &entry.view()))
    })
    .await
}

/// Closes a conversation, and answers when nothing of it is left.
#[cfg_attr(feature = "openapi", utoipa::path(delete, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = String, Path)),
    responses((status = 200, body = super::ConversationView), crate::openapi::Finding)))]
pub async fn close(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let entry = app.tasks.get(TaskKind::Conversation, &id)?;
    aside(move || {
        conversation::close(&app, &entry);
        Ok(json(StatusCode::OK, &entry.view()))
    })
    .await
}

/// Begins a turn.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/conversations/{id}/prompt", tag = "conversations", params(("id" = String, Path)),
    request_body = Prompt, responses((status = 202, body = super::ConversationView), crate::openapi::Changing)))]
pub async fn prompt(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Given(prompt): Given<Prompt>,
) -> Result<Response, Problem> {
    let entry = app.tasks.get(TaskKind::Conversation, &id)?;
    if prompt.text.trim().is_empty() {
        return Err(Problem::input("the prompt is empty"));
    }
    if app.is_ending() {
        return Err(Problem::ending());
    }
    conversation::prompt(&app, &entry, prompt.text)?;
    Ok(json(StatusCode::ACCEPTED, &entry.view()))
}

/// Lists the questions of a conversation that wait for an answer.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/conversations/{id}/permissions", tag = "conversations", params(("id" = String, Path)),
    responses((status = 200, body = PermissionList), crate::openapi::Finding)))]
pub async fn permissions(
    State(app): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<PermissionList>, Problem> {
    let permissions = app.tasks.get(TaskKind::Conversation, &id)?.task().permissions;
    Ok(Json(PermissionList { permissions }))
}

/// Answers a question.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/conversations/{id}/permissions/{permission}", tag = "conversations",
    params(("id" = String, Path), ("permission" = String, Path)),
    request_body = Answer, responses((status = 200, body = super::ConversationView), crate::openapi::Changing)))]
pub async fn answer(
    State(app): State<Shared>,
    Named((id, permission)): Named<(String, String)>,
    Given(answer): Given<Answer>,
) -> Result<Response, Problem> {
    let entry = app.tasks.get(TaskKind::Conversation, &id)?;
    aside(move || {
        questions::answer(&app, &entry, &permission, answer.decision, answer.reason)?;
        Ok(json(StatusCode::OK, &entry.view()))
    })
    .await
}
