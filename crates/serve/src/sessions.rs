//! `/v1/sessions` and `/v1/usage`: the session store, as the commands tell of it.

use std::path::Path;

use alhena_agent::dirs::Dirs;
use alhena_model::message::in_claude_order;
use alhena_model::{Event, Message};
use alhena_session::export;
use alhena_session::listing::{Entry, Found};
use alhena_session::read::{Files, What};
use alhena_session::search::{Query, SearchResults};
use alhena_session::usage::{self, UsageTable};
use alhena_session::{FindError, Scope, Session, Store, Which};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::extract::{Asked, Named, aside, json, limit, typed};
use crate::problem::Problem;
use crate::state::{App, Shared};

/// Which sessions.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Only those of this folder.
    #[cfg_attr(feature = "openapi", param(pattern = "^/"))]
    dir: Option<String>,
    /// So many at most; 200 otherwise.
    #[cfg_attr(feature = "openapi", param(maximum = 10000))]
    limit: Option<u32>,
}

/// What to look for.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Searching {
    /// Words, and phrases in quotation marks; all have to be there. Signs are not searched.
    q: String,
    /// Only in the sessions of this folder.
    #[cfg_attr(feature = "openapi", param(pattern = "^/"))]
    dir: Option<String>,
    /// So many at most; 20 otherwise.
    #[cfg_attr(feature = "openapi", param(maximum = 10000))]
    limit: Option<u32>,
}

/// In which form.
#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Claude-shaped messages, an array.
    #[default]
    Messages,
    /// The events that a run of it would have given, an array.
    Events,
}

/// How to show a session.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Showing {
    /// In which form; messages otherwise.
    #[serde(rename = "as")]
    #[cfg_attr(feature = "openapi", param(inline))]
    form: Option<Shown>,
}

/// In which form.
#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exported {
    /// Markdown with folded parts.
    Markdown,
    /// One page without scripts.
    #[default]
    Html,
    /// The session and its messages.
    Json,
}

/// How to export a session.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Exporting {
    /// In which form; HTML otherwise.
    #[serde(rename = "as")]
    #[cfg_attr(feature = "openapi", param(inline))]
    form: Option<Exported>,
}

/// What to add up by.
#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The day, in UTC.
    #[default]
    Day,
    /// The model.
    Model,
    /// The folder.
    Folder,
    /// The same.
    Project,
}

/// How to add up.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Adding {
    /// By what; by day otherwise.
    #[cfg_attr(feature = "openapi", param(inline))]
    by: Option<By>,
    /// Only from this day on.
    #[cfg_attr(feature = "openapi", param(format = Date))]
    since: Option<String>,
    /// Only the sessions of this folder.
    #[cfg_attr(feature = "openapi", param(pattern = "^/"))]
    dir: Option<String>,
}

/// Sessions, the newest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sessions<'a> {
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::openapi::Session>))]
    sessions: Vec<Entry<'a>>,
}

/// A session with its messages or its events.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionShown<'a> {
    #[cfg_attr(feature = "openapi", schema(value_type = crate::openapi::Session))]
    session: Entry<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Vec<Object>))]
    messages: Option<Vec<Message<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Vec<Object>))]
    events: Option<Vec<Event>>,
}

impl<'a> SessionShown<'a> {
    fn messages(session: &'a Session, messages: &[Message<'a>]) -> Self {
        let messages = Some(in_claude_order(messages.to_vec()));
        Self { session: Entry::of(session), messages, events: None }
    }
}

fn store(app: &App) -> Result<Store, Problem> {
    let home = app.environment.gemini_home().ok_or_else(|| Problem::broken("there is no home directory"))?;
    let store = Store::at(home.join(".gemini"));
    Ok(match Dirs::of(&app.environment) {
        Some(dirs) => store.with_cache(dirs.cache),
        None => store,
    })
}

fn scope(dir: Option<&str>) -> Result<Scope, Problem> {
    match dir.map(Path::new) {
        None => Ok(Scope::All),
        Some(dir) if dir.is_absolute() => {
            Ok(Scope::Folder(dir.canonicalize().unwrap_or_else(|_| dir.to_owned())))
        }
        Some(_) => Err(Problem::input("dir has to be an absolute path")),
    }
}

/// Lists sessions, the newest first.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(Listing),
    responses((status = 200, body = Sessions), crate::openapi::Reading)))]
pub async fn list(State(app): State<Shared>, Asked(asked): Asked<Listing>) -> Result<Response, Problem> {
    aside(move || {
        let mut sessions = store(&app)?.list(&scope(asked.dir.as_deref())?).map_err(Problem::broken)?;
        sessions.truncate(limit(asked.limit, 200)?);
        let sessions = sessions.iter().map(Entry::of).collect();
        Ok(json(StatusCode::OK, &Sessions { sessions }))
    })
    .await
}

/// Finds sessions by what was said, thought, called or printed in them.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/sessions/search", tag = "sessions", params(Searching),
    responses((status = 200, body = crate::openapi::Found), crate::openapi::Reading)))]
pub async fn search(State(app): State<Shared>, Asked(asked): Asked<Searching>) -> Result<Response, Problem> {
    aside(move || {
        let words = words(&asked.q);
        let (scope, most) = (scope(asked.dir.as_deref())?, limit(asked.limit, 20)?);
        // Somebody who types has not typed a word yet.
        let Some(query) = Query::new(&words) else {
            return Ok(json(StatusCode::OK, &Found::of(&SearchResults::default())));
        };
        let found = store(&app)?.search(&scope, &query, most).map_err(Problem::broken)?;
        Ok(json(StatusCode::OK, &Found::of(&found)))
    })
    .await
}

/// Words, and what stands in quotation marks as one.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ if part.trim().is_empty() => {}
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn find(app: &App, id: &str) -> Result<Session, Problem> {
    // An id, its beginning, or `latest`; never a file.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if id.is_empty() || !id.bytes().all(is_plain) {
        return Err(Problem::not_found(format!("there is no session {id:?}")));
    }
    let which = Which::of(id);
    let Which::Id(_) = which else { return Ok(store(app)?.find(&Scope::All, &which)?) };
    let dirs = Dirs::of(&app.environment);
    let going =
        |home: &Path| dirs.as_ref().and_then(|dirs| unpublished(&dirs.state.join("homes"), home, &which));
    let home = app.environment.gemini_home();
    match (store(app)?.find(&Scope::All, &which), home.as_deref().and_then(going)) {
        // A run that resumes a session works on a copy of it.
        (Ok(stored), Some(going)) if going.id == stored.id && going.updated() >= stored.updated() => {
            Ok(going)
        }
        (Err(FindError::Unknown(_) | FindError::NoneIn(_)), Some(going)) => Ok(going),
        (Err(error @ (FindError::Unknown(_) | FindError::NoneIn(_))), None) => {
            // Runs against the scripted model have a home of their own.
            let offline = dirs.as_ref().map(Dirs::offline_home);
            let stored = |home: &Path| Store::of_home(home).find(&Scope::All, &which).ok();
            let found = offline.as_deref().and_then(|home| going(home).or_else(|| stored(home)));
            Ok(found.ok_or(error)?)
        }
        (found, _) => Ok(found?),
    }
}

/// The session of a run, a conversation or a terminal that has not ended: it is in a private home, and goes to the store at the end.
fn unpublished(homes: &Path, user_home: &Path, which: &Which) -> Option<Session> {
    let overlays = alhena_agent::home::unpublished(homes, user_home).ok()?;
    let found = overlays.into_iter().filter_map(|gemini| Store::at(gemini).find(&Scope::All, which).ok());
    found.max_by_key(Session::updated)
}

/// A session and its files. A run that ends meanwhile moves them.
fn read(app: &App, id: &str) -> Result<(Session, Files), Problem> {
    let read = || {
        let session = find(app, id)?;
        Files::read(&session).map(|files| (session, files)).map_err(Problem::broken)
    };
    read().or_else(|_moved| read())
}

/// Shows a session, by its id or the beginning of it.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/sessions/{id}", tag = "sessions", params(("id" = String, Path), Showing),
    responses((status = 200, body = SessionShown), crate::openapi::Finding)))]
pub async fn show(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Asked(asked): Asked<Showing>,
) -> Result<Response, Problem> {
    aside(move || {
        let (session, files) = read(&app, &id)?;
        Ok(match asked.form.unwrap_or_default() {
            Shown::Events => {
                let events = Some(files.conversation(What::Said).events());
                json(StatusCode::OK, &SessionShown { session: Entry::of(&session), messages: None, events })
            }
            Shown::Messages => files.with_page(&session, What::Said, |page| {
                json(StatusCode::OK, &SessionShown::messages(&session, page.messages))
            }),
        })
    })
    .await
}

/// Exports a session as a file that opens anywhere.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/sessions/{id}/export", tag = "sessions", params(("id" = String, Path), Exporting),
    responses((status = 200, description = "The file", content((String = "text/html"), (String = "text/markdown"), (SessionShown = "application/json"))), crate::openapi::Finding)))]
pub async fn export(
    State(app): State<Shared>,
    Named(id): Named<String>,
    Asked(asked): Asked<Exporting>,
) -> Result<Response, Problem> {
    aside(move || {
        let (session, files) = read(&app, &id)?;
        let form = asked.form.unwrap_or_default();
        let (mut response, ending) = files.with_page(&session, What::Said, |page| match form {
            Exported::Html => (typed(StatusCode::OK, "text/html; charset=utf-8", export::html(page)), "html"),
            Exported::Markdown => {
                (typed(StatusCode::OK, "text/markdown; charset=utf-8", export::markdown(page)), "md")
            }
            Exported::Json => {
                (json(StatusCode::OK, &SessionShown::messages(&session, page.messages)), "json")
            }
        });
        // A file to be kept, and never a page of this server: a model wrote what is in it.
        let id: String = session.id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let named = HeaderValue::from_str(&format!("attachment; filename=\"session-{id}.{ending}\""));
        response.headers_mut().insert(header::CONTENT_DISPOSITION, named.map_err(Problem::broken)?);
        Ok(response)
    })
    .await
}

/// Adds up tokens and cost, by day, model or folder.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/usage", tag = "sessions", params(Adding),
    responses((status = 200, body = crate::openapi::UsageTable), crate::openapi::Reading)))]
pub async fn usage(State(app): State<Shared>, Asked(asked): Asked<Adding>) -> Result<Response, Problem> {
    aside(move || {
        let since = match asked.since.as_deref().map(usage::day) {
            Some(None) => return Err(Problem::input("since wants a day").hint("Such as 2026-11-01.")),
            other => other.flatten(),
        };
        let wanted = asked.by.unwrap_or_default();
        let by = match wanted {
            By::Day => usage::By::Day,
            By::Model => usage::By::Model,
            By::Folder | By::Project => usage::By::Project,
        };
        let prices = alhena_agent::prices::find(None, &app.environment).map_err(Problem::broken)?;
        let (store, scope) = (store(&app)?, scope(asked.dir.as_deref())?);
        let sessions = store.list(&scope).map_err(Problem::broken)?;
        let unkept = match Dirs::of(&app.environment) {
            Some(dirs) => dirs.ledger().list(&store, &scope).map_err(Problem::broken)?,
            None => Vec::new(),
        };
        let mut table = UsageTable::of(&sessions, &unkept, by, since.as_deref(), &prices);
        if matches!(wanted, By::Folder) {
            // The command line has the other word for it.
            table.by = "folder";
        }
        Ok(json(StatusCode::OK, &table))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn what_stands_in_quotation_marks_is_a_phrase() {
        assert_eq!(words("flaky \"no such file\" test"), ["flaky", "no such file", "test"]);
        assert_eq!(words("\"open"), ["open"]);
        assert_eq!(words("  "), Vec::<String>::new());
    }
}
