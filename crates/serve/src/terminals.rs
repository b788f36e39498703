//! `/v1/terminals`: interactive agents in tmux.

use std::time::Duration;

use alhena_terminal::screen::Waiting;
use alhena_terminal::{At, Described, Force, Listed, Options, Reply, Terminal, Terminals};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::extract::{Given, Json, Named, aside, json};
use crate::policy;
use crate::problem::Problem;
use crate::state::{App, Shared};

/// How long an agent may take to leave by itself.
const LEAVE: Duration = Duration::from_secs(10);

/// Terminals, the oldest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TerminalList {
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::openapi::Terminal>))]
    terminals: Vec<Listed>,
}

/// A message for an agent.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = TerminalMessage))]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// What to say.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    text: String,
    /// Send it although the agent works, and throw away an unsent text.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    force: bool,
}

/// An answer to a dialog.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DialogAnswer {
    /// The number of an option, the beginning of its label, or a text where one is asked for.
    answer: Option<String>,
    /// Options, by number or by the beginning of their labels.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    choose: Vec<String>,
    /// A text of your own.
    text: Option<String>,
    /// The dialog that you mean, as the terminal has told it. When another one is shown by now nothing is answered, and the status is 409.
    /// Without it, or with null, whatever is shown is answered.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    waiting_for: Option<Map<String, Value>>,
}

/// Opened once: all who ask share one connection to tmux. Where there is none it is looked for again.
pub fn opened(app: &App) -> Result<Terminals, Problem> {
    let mut opened = app.terminals.lock();
    if let Some(terminals) = &*opened {
        return Ok(terminals.clone());
    }
    let named = app.settings.tmux.as_ref().filter(|tmux| tmux.components().nth(1).is_some());
    if let Some(missing) = named.filter(|tmux| !tmux.is_file()) {
        let detail = format!("there is no tmux at {}", missing.display());
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_tmux", detail)
            .hint("The server would have to be started with another tmux, or without one."));
    }
    let terminals = Terminals::open(Options {
        server: app.settings.tmux_server.clone(),
        tmux: app.settings.tmux.clone(),
        environment: app.environment.clone(),
        state: None,
    })?;
    Ok(opened.insert(terminals).clone())
}

/// All of them. Without tmux nobody knows: that there are none is not said.
pub fn all(app: &App) -> Result<Vec<Listed>, Problem> {
    Ok(opened(app)?.listed()?.into_iter().map(|(_, row)| row).collect())
}

/// One that may be used: neither outside of the root nor in a mode above the limit. Whoever is at its keyboard may change the mode
/// meanwhile, so that it is checked again right before anything is typed.
fn reachable(app: &App, name: &str) -> Result<Terminal, Problem> {
    let terminal = opened(app)?.find(name)?;
    if !policy::may_use(&app.policy, &terminal.record()?.dir) {
        return Err(Problem::forbidden(format!("the terminal {name:?} works outside of the server's root")));
    }
    policy::allowed(&app.policy, terminal.approval()?)?;
    Ok(terminal.at_most(app.policy.max_approval))
}

/// Lists terminals, and what their agents do.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/terminals", tag = "terminals",
    responses((status = 200, body = TerminalList), crate::openapi::Reading, crate::openapi::Unavailable)))]
pub async fn list(State(app): State<Shared>) -> Result<Json<TerminalList>, Problem> {
    aside(move || Ok(Json(TerminalList { terminals: all(&app)? }))).await
}

/// Tells what an agent does.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/terminals/{name}", tag = "terminals", params(("name" = String, Path)),
    responses((status = 200, body = crate::openapi::Terminal), crate::openapi::FindingTerminal)))]
pub async fn show(State(app): State<Shared>, Named(name): Named<String>) -> Result<Response, Problem> {
    aside(move || {
        let terminal = opened(&app)?.find(&name)?;
        let reading = terminal.status()?;
        Ok(json(StatusCode::OK, &Described { record: terminal.record()?, reading }))
    })
    .await
}

/// The screen as it is now.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/terminals/{name}/screen", tag = "terminals", params(("name" = String, Path)),
    responses((status = 200, body = crate::openapi::Screen), crate::openapi::FindingTerminal)))]
pub async fn screen(State(app): State<Shared>, Named(name): Named<String>) -> Result<Response, Problem> {
    aside(move || Ok(json(StatusCode::OK, &opened(&app)?.find(&name)?.captured()?))).await
}

/// Sends a message, and answers when the agent has taken it.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/terminals/{name}/send", tag = "terminals", params(("name" = String, Path)),
    request_body = Message, responses((status = 200, body = Object), crate::openapi::ChangingTerminal)))]
pub async fn send(
    State(app): State<Shared>,
    Named(name): Named<String>,
    Given(message): Given<Message>,
) -> Result<Response, Problem> {
    aside(move || {
        let force = if message.force { Force::Anyway } else { Force::OnlyWhenReady };
        let sent = reachable(&app, &name)?.send_with(&message.text, force, At::Text)?;
        app.news.tell();
        Ok(json(StatusCode::OK, &sent))
    })
    .await
}

/// Answers a dialog.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/terminals/{name}/answer", tag = "terminals", params(("name" = String, Path)),
    request_body = DialogAnswer, responses((status = 200, body = crate::openapi::Terminal), crate::openapi::ChangingTerminal)))]
pub async fn answer(
    State(app): State<Shared>,
    Named(name): Named<String>,
    Given(given): Given<DialogAnswer>,
) -> Result<Response, Problem> {
    aside(move || {
        let terminal = reachable(&app, &name)?;
        let reply = Reply { choose: given.choose, text: given.text };
        let seen = given.waiting_for.map(dialog).transpose()?;
        let reading = match (seen, given.answer) {
            (Some(seen), Some(answer)) => terminal.answer_seen(&seen, &answer)?,
            (Some(seen), None) => terminal.reply_seen(&seen, &reply)?,
            (None, Some(answer)) => terminal.answer(&answer)?,
            (None, None) => terminal.reply(&reply)?,
        };
        app.news.tell();
        Ok(json(StatusCode::OK, &Described { record: terminal.record()?, reading }))
    })
    .await
}

/// What is no dialog is none that is shown.
fn dialog(told: Map<String, Value>) -> Result<Waiting, Problem> {
    serde_json::from_value(Value::Object(told)).map_err(|error| {
        Problem::conflict(format!("waiting_for: no terminal shows such a dialog ({error})"))
            .hint("Give it as the terminal tells it.")
    })
}

/// Asks an agent to leave, ends what does not, and puts the terminal away.
#[cfg_attr(feature = "openapi", utoipa::path(post, path = "/v1/terminals/{name}/exit", tag = "terminals", params(("name" = String, Path)),
    responses((status = 200, body = Object), crate::openapi::ChangingTerminal)))]
pub async fn exit(State(app): State<Shared>, Named(name): Named<String>) -> Result<Response, Problem> {
    aside(move || {
        let exit = reachable(&app, &name)?.exit(LEAVE)?;
        app.news.tell();
        Ok(json(StatusCode::OK, &exit))
    })
    .await
}
