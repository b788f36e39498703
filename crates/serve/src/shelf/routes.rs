//! What the routes of everything on a shelf have in common: how it is begun, and how its events are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use alhena_batch::meaning::Options;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Kept, Key, Shelf, Shelved, Started};
use crate::extract::{aside, json};
use crate::policy::Beginning;
use crate::problem::Problem;
use crate::state::{App, Shared};
use crate::stream::{Form, Until, last_seen, response};
use crate::token::hex;

/// From where on events are wanted.
#[derive(Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct From {
    /// The last event that you have; `Last-Event-ID` says the same.
    after: Option<u64>,
    /// Whether to wait for more; what there is otherwise. True if it is not said.
    follow: Option<bool>,
}

/// Nothing begins any more.
pub fn ending() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "ending", "the server is ending").retry_after(30)
}

/// The options, if they may be given and make sense.
fn admitted(app: &Shared, given: &Options, what: Beginning) -> Result<Options, Problem> {
    let mut options = app.policy.admit(given, what, &|name| app.meaning.is_option(name))?;
    if what == Beginning::Conversation {
        // A run has one; a conversation is begun without.
        options.insert("prompt".to_owned(), Value::from("."));
    }
    app.meaning.check(&options).map_err(Problem::faults)?;
    Ok(options)
}

/// The key that a request has, with a mark of what it asks.
fn key(headers: &HeaderMap, given: &Options) -> Result<Option<Key>, Problem> {
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

/// What is begun over HTTP, in a thread of its own.
pub trait Begins: Shelved {
    /// By which rules its options are judged.
    const WHAT: Beginning;

    /// Where all of them are.
    fn shelf(app: &App) -> &Shelf<Self>;

    /// What is told of one that was just asked for.
    fn asked(id: &str, options: &Options) -> Self;

    /// Does it; in the thread.
    fn perform(app: &Shared, kept: &Arc<Kept<Self>>, options: &Options);

    /// There is no thread for it.
    fn not_performed(app: &Shared, kept: &Arc<Kept<Self>>, error: &std::io::Error);
}

/// Begins one, or finds the one that the same request began before.
pub async fn start<V: Begins>(app: Shared, headers: &HeaderMap, given: Options) -> Result<Response, Problem> {
    let key = key(headers, &given)?;
    if app.is_ending() {
        return Err(ending());
    }
    let started = aside(move || {
        // Whether it could be begun now says nothing about one that was: its folder may be gone.
        if let Some(before) = V::shelf(&app).before(key.as_ref())? {
            return Ok(Started::Before(before));
        }
        let options = admitted(&app, &given, V::WHAT)?;
        let started = V::shelf(&app).begin(key, |id| V::asked(id, &options))?;
        if let Started::New(kept) = &started {
            spawn(&app, kept, options)?;
        }
        Ok(started)
    });
    begun(&started.await?)
}

fn spawn<V: Begins>(app: &Shared, kept: &Arc<Kept<V>>, options: Options) -> Result<(), Problem> {
    let (hand, inner, begun) = (V::shelf(app).hand(), app.clone(), kept.clone());
    let spawned = std::thread::Builder::new().name(V::NAME.to_owned()).spawn(move || {
        V::perform(&inner, &begun, &options);
        drop(hand);
    });
    spawned.map(|_| ()).map_err(|error| {
        V::not_performed(app, kept, &error);
        Problem::broken(error)
    })
}

/// The answer to whoever began one, or asked for the same again.
fn begun<V: Shelved>(started: &Started<V>) -> Result<Response, Problem> {
    let (Started::New(kept) | Started::Before(kept)) = started;
    let mut response = json(StatusCode::CREATED, &kept.view());
    let location = HeaderValue::from_str(&format!("/v1/{}s/{}", V::NAME, kept.id));
    response.headers_mut().insert(header::LOCATION, location.map_err(Problem::broken)?);
    if matches!(started, Started::Before(_)) {
        response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// The events of one: as they come, in the form that is asked for.
pub async fn events<V: Shelved>(
    shelf: &Shelf<V>,
    id: &str,
    from: &From,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let after = last_seen(headers, from.after)?;
    let kept = shelf.get(id)?;
    let log = aside(move || kept.log().map_err(Problem::broken)).await?;
    let form = Form::of(headers);
    if form == Form::Sse && headers.contains_key("last-event-id") && log.has_nothing_after(after) {
        // Nothing else ends an EventSource: it comes back for ever to a stream that is over.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(response(&log, after, form, Until::of(from.follow)))
}
