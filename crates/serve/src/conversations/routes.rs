//! `/v1/conversations`.

use alhena_batch::meaning::Options;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{ConversationView, Decision, PermissionView, hold, questions};
use crate::extract::{Asked, Given, Json, Named, aside, json};
use crate::policy::mode_name;
use crate::problem::Problem;
use crate::shelf::routes::{self, From, ending};
use crate::state::Shared;

/// Conversations, the newest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConversationList {
    /// The conversations.
    conversations: Vec<ConversationView>,
}

/// What waits to be allowed.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PermissionList {
    /// The questions.
    permissions: Vec<PermissionView>,
}

/// A prompt.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// What to say.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, pattern = "\\S"))]
    text: String,
}

/// An answer to a question.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Whether it may.
    decision: Decision,
    /// Why not, for the agent.
    reason: Option<String>,
}

/// What changes.
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

/// Opens a conversation. With an `Idempotency-Key`, the same request again gives the same one.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/conversations", tag = "conversations",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key is the same conversation", max_length = 200, pattern = "^[!-~]+$")),
    request_body(content = crate::openapi::ConversationOptions, content_type = "application/json"),
    responses((status = 201, body = ConversationView, headers(("location" = String, description = "The conversation"))), crate::openapi::Starting)))]
pub async fn open(
    State(app): State<Shared>,
    headers: HeaderMap,
    Given(given): Given<Options>,
) -> Result<Response, Problem> {
    routes::start::<ConversationView>(app, &headers, given).await
}

/// Lists conversations, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/conversations", tag = "conversations",
    responses((status = 200, body = ConversationList), crate::openapi::Reading)))]
pub async fn list(State(app): State<Shared>) -> Json<ConversationList> {
    Json(ConversationList {
        conversations: app.conversations.list().iter().map(|held| held.view()).collect(),
    })
}

/// Tells of a conversation.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = String, Path)),
    responses((status = 200, body = ConversationView), crate::openapi::Finding)))]
pub async fn show(
    State(app): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<ConversationView>, Problem> {
    Ok(Json(app.conversations.get(&id)?.view()))
}

/// Changes its mode or its model.
#[cfg_attr(feature = "openapi", utoipa::path(patch, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = String, Path)),
    request_body = Changes, responses((status = 200, body = ConversationView), crate::openapi::Changing)))]
pub async fn change(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Given(changes): Given<Changes>,
) -> Result<Json<ConversationView>, Problem> {
    let held = app.conversations.get(&id)?;
    let mode = changes.mode.as_deref().map(|mode| app.policy.mode(mode)).transpose()?;
    if changes.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
        return Err(
            Problem::input("model: a name is needed").hint("Leave it out to keep the one that it has.")
        );
    }
    aside(move || {
        let mut talk = held.talking();
        let talk = talk.as_mut().ok_or_else(|| Problem::conflict("the conversation is not open"))?;
        if let Some(mode) = mode {
            talk.set_mode(mode)?;
            app.conversations.changed(&held, |view| view.mode = Some(mode_name(mode).to_owned()));
        }
        if let Some(model) = changes.model {
            talk.set_model(model.clone())?;
            app.conversations.changed(&held, |view| view.model = Some(model));
        }
        Ok(Json(held.view()))
    })
    .await
}

/// Closes it, and answers when nothing of it is left.
#[cfg_attr(feature = "openapi", utoipa::path(delete, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = String, Path)),
    responses((status = 200, body = ConversationView), crate::openapi::Finding)))]
pub async fn close(
    State(app): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<ConversationView>, Problem> {
    let held = app.conversations.get(&id)?;
    aside(move || {
        hold::close(&app, &held);
        Ok(Json(held.view()))
    })
    .await
}

/// Begins a turn.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/conversations/{id}/prompt", tag = "conversations", params(("id" = String, Path)),
    request_body = Prompt, responses((status = 202, body = ConversationView), crate::openapi::Changing)))]
pub async fn prompt(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Given(prompt): Given<Prompt>,
) -> Result<Response, Problem> {
    let held = app.conversations.get(&id)?;
    if prompt.text.trim().is_empty() {
        return Err(Problem::input("the prompt is empty"));
    }
    if app.is_ending() {
        return Err(ending());
    }
    hold::prompt(&app, &held, prompt.text)?;
    Ok(json(StatusCode::ACCEPTED, &held.view()))
}

/// Cancels the turn that is on. The conversation goes on.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/conversations/{id}/cancel", tag = "conversations", params(("id" = String, Path)),
    responses((status = 202, body = ConversationView), crate::openapi::Finding)))]
pub async fn cancel(State(app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    let held = app.conversations.get(&id)?;
    hold::cancel(&held);
    Ok(json(StatusCode::ACCEPTED, &held.view()))
}

/// The events of a conversation, through all turns, as those of a run.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/conversations/{id}/events", tag = "conversations", params(("id" = String, Path), From,
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that you have", max_length = 18, pattern = "^[0-9]*$")),
    responses((status = 200, description = "Events", content((String = "text/event-stream"), (String = "application/jsonl"))), (status = 204, description = "It is over, and you have its last event"), crate::openapi::Finding)))]
pub async fn events(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Asked(from): Asked<From>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    routes::events(&app.conversations, &id, &from, &headers).await
}

/// What waits to be allowed.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/conversations/{id}/permissions", tag = "conversations", params(("id" = String, Path)),
    responses((status = 200, body = PermissionList), crate::openapi::Finding)))]
pub async fn permissions(
    State(app): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<PermissionList>, Problem> {
    Ok(Json(PermissionList { permissions: app.conversations.get(&id)?.view().permissions }))
}

/// Answers a question.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/conversations/{id}/permissions/{permission}", tag = "conversations",
    params(("id" = String, Path), ("permission" = String, Path)),
    request_body = Answer, responses((status = 200, body = ConversationView), crate::openapi::Changing)))]
pub async fn answer(
    State(app): State<Shared>,
    Named((id, permission)): Named<(String, String)>,
    Given(answer): Given<Answer>,
) -> Result<Json<ConversationView>, Problem> {
    let held = app.conversations.get(&id)?;
    aside(move || {
        questions::answer(&app, &held, &permission, answer.decision, answer.reason)?;
        Ok(Json(held.view()))
    })
    .await
}
