//! What comes with a request: parts of its address, and its body, with a problem for whatever is wrong with them.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::state::Shared;

/// How long a body may take to arrive.
const SLOWEST_BODY: Duration = Duration::from_secs(30);

/// The names in the address.
pub struct Named<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(rejection) => Err(Problem::not_found(rejection.body_text())),
        }
    }
}

/// What stands behind the question mark.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(rejection) => Err(Problem::input(rejection.body_text())),
        }
    }
}

/// A body of JSON: an object.
pub struct Given<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Shared> for Given<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "input", "the body has to be JSON")
                .hint("Send it with Content-Type: application/json."));
        }
        let bytes = whole(request, state.settings.max_request).await?;
        // A list would be taken for one whose fields have no names.
        if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
            return Err(Problem::input("the body has to be a JSON object"));
        }
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::input(format!("the body makes no sense: {error}")))?;
        Ok(Self(value))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

async fn whole(request: Request, most: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body has more than {most} bytes"),
        )
        .hint("Put large material into files and name them in the prompt.")
    };
    let told = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if told.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(SLOWEST_BODY, axum::body::to_bytes(request.into_body(), most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_limit(&error) => Err(too_large()),
        Ok(Err(error)) => Err(Problem::input(format!("the body could not be read: {error}"))),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            format!("the body did not arrive within {} s", SLOWEST_BODY.as_secs()),
        )),
    }
}

fn is_limit(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if error.to_string().contains("length limit exceeded") {
            return true;
        }
        source = error.source();
    }
    false
}

/// An answer in JSON.
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &self.0)
    }
}

/// The same with a status.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => typed(status, "application/json", bytes),
        Err(error) => Problem::broken(error).into_response(),
    }
}

/// An answer of any kind.
pub fn typed(status: StatusCode, kind: &'static str, bytes: impl Into<axum::body::Body>) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static(kind))], bytes.into()).into_response()
}

/// Nobody looks at more of a list.
const LONGEST_LIST: u32 = 10_000;

/// How much of a list is wanted.
pub fn limit(asked: Option<u32>, otherwise: u32) -> Result<usize, Problem> {
    match asked.unwrap_or(otherwise) {
        many if many > LONGEST_LIST => Err(Problem::input(format!("limit is at most {LONGEST_LIST}"))),
        some => usize::try_from(some).map_err(Problem::broken),
    }
}

/// Does something that takes its time where it holds nobody up.
pub async fn aside<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(what).await {
        Ok(done) => done,
        Err(error) => Err(Problem::broken(error)),
    }
}
