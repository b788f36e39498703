//! What is told when something cannot be done: `application/problem+json`, with a kind to decide by and a hint for people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use alhena_agent::RunError;
use alhena_model::{FailureKind, Hint, SettingError};
use alhena_session::FindError;
use alhena_terminal::{TerminalError, TerminalErrorKind};

/// What is told when something cannot be done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Problem(Box<Told>);

/// A problem, as RFC 9457 has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Problem))]
pub struct Told {
    /// Always `about:blank`: the kind says more.
    #[serde(rename = "type")]
    about: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What is wrong.
    detail: String,
    /// What kind of trouble: a failure kind of a run, or `not_found`, `conflict`, `too_many`, `too_large`, `too_slow`,
    /// `forbidden`, `unauthorized`, `no_tmux`, `terminal`, `ending`, `internal`.
    kind: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// All that is wrong, where that is more than one thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    errors: Vec<Wrong>,
    #[serde(skip)]
    retry_after: Option<u32>,
}

/// One thing that is wrong with what was asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Wrong {
    /// What is wrong.
    message: String,
    /// What to do; may be empty.
    hint: String,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Self(Box::new(Told {
            about: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            kind: kind.to_owned(),
            hint: None,
            errors: Vec::new(),
            retry_after: None,
        }))
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        self
    }

    /// The same with the time after which it may be tried again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// What was asked makes no sense.
    pub fn input(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "input", detail)
    }

    /// There is no such thing.
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// It does not go with how things are.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// The server starts nothing any more.
    pub fn ending() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ending", "the server is ending").retry_after(30)
    }

    /// It may not be.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// Something of ours went wrong.
    pub fn broken(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    }

    /// Something that is needed is not there.
    pub fn unavailable(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, &kind_name(kind), detail)
    }

    /// What is wrong with options.
    pub fn settings(errors: Vec<SettingError>) -> Self {
        match errors.as_slice() {
            [error] => error.clone().into(),
            _ => {
                let wrong =
                    |error: &SettingError| Wrong { message: error.to_string(), hint: error.fix.clone() };
                let mut problem = Self::input(format!("{} options are wrong", errors.len()));
                problem.0.errors = errors.iter().map(wrong).collect();
                problem
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        if let Some(seconds) = self.0.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"alhena\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The name of a failure kind, as in an outcome.
pub fn kind_name(kind: FailureKind) -> String {
    serde_json::to_value(kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default()
}

impl From<SettingError> for Problem {
    fn from(error: SettingError) -> Self {
        Self::input(error.to_string()).hint(error.fix)
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let failure = error.into_failure();
        let status = match failure.kind {
            FailureKind::Input | FailureKind::Config => StatusCode::BAD_REQUEST,
            // What is missing is on the server's side.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, &kind_name(failure.kind), failure.message.clone()).hint(failure.hint)
    }
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        let hint = error.hint().unwrap_or_default().into_owned();
        match &error {
            FindError::Unknown(_) | FindError::NoneIn(_) => Self::not_found(error.to_string()),
            FindError::Ambiguous(..) => Self::input(error.to_string()),
            _ => Self::broken(&error),
        }
        .hint(hint)
    }
}

impl From<TerminalError> for Problem {
    fn from(error: TerminalError) -> Self {
        use TerminalErrorKind as Kind;
        let (status, kind) = match error.kind {
            Kind::Usage => (StatusCode::BAD_REQUEST, "input"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Kind::NotReady | Kind::NotTaken | Kind::NoAnswer | Kind::Exited => {
                (StatusCode::CONFLICT, "conflict")
            }
            Kind::AboveLimit => (StatusCode::FORBIDDEN, "forbidden"),
            Kind::Timeout => (StatusCode::CONFLICT, "timeout"),
            Kind::NoTmux => (StatusCode::SERVICE_UNAVAILABLE, "no_tmux"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "terminal"),
        };
        let hint = error.hint().unwrap_or_default().into_owned();
        Self::new(status, kind, error.to_string()).hint(hint)
    }
}
