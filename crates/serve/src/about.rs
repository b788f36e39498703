//! `/v1/version`, `/v1/capabilities`, `/v1/doctor`, `/v1/me`: what is known of the server and of whoever asks.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;

use crate::extract::{Json, aside, json};
use crate::problem::Problem;
use crate::state::{Knows, Shared};
use crate::token::Access;

/// Whoever asks, and what they may ask for.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Me {
    /// What the token allows.
    access: Access,
    /// Folders of runs are below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// The highest approval mode.
    max_approval: String,
    /// All modes that may be asked for.
    approvals: Vec<String>,
    /// Whether requests may name programs.
    allow_programs: bool,
    /// Variables that requests may set.
    allow_env: Vec<String>,
}

/// What whoever asks may do.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/me", tag = "server",
    responses((status = 200, body = Me), crate::openapi::Reading)))]
pub async fn me(State(app): State<Shared>, Extension(access): Extension<Access>) -> Json<Me> {
    let policy = &app.policy;
    Json(Me {
        access,
        root: policy.root.as_ref().map(|root| root.display().to_string()),
        max_approval: policy.max_approval.to_string(),
        approvals: policy.modes().map(|mode| mode.to_string()).collect(),
        allow_programs: policy.allow_programs,
        allow_env: policy.allow_env.clone(),
    })
}

/// The version of Alhena.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Version {
    name: &'static str,
    version: &'static str,
}

/// The version of Alhena.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/version", tag = "server",
    responses((status = 200, body = Version), crate::openapi::Reading)))]
pub async fn version() -> Json<Version> {
    Json(Version { name: "alhena", version: env!("CARGO_PKG_VERSION") })
}

/// What the found Gemini CLI can do.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/capabilities", tag = "server",
    responses((status = 200, body = crate::openapi::Capabilities), crate::openapi::Reading, crate::openapi::Unavailable)))]
pub async fn capabilities(State(app): State<Shared>) -> Result<Response, Problem> {
    looked(app, |knows| knows.capabilities()).await
}

/// Whether everything is there that a run needs, and what to do where it is not.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/doctor", tag = "server",
    responses((status = 200, body = Vec<crate::openapi::Examined>), crate::openapi::Reading)))]
pub async fn doctor(State(app): State<Shared>) -> Result<Response, Problem> {
    looked(app, |knows| knows.doctor()).await
}

/// What takes programs to be known: whoever asks often does not have many of them started at once.
async fn looked(app: Shared, look: fn(&dyn Knows) -> Result<Value, Problem>) -> Result<Response, Problem> {
    let one_at_a_time = app.looking.clone().lock_owned().await;
    aside(move || {
        let told = look(&*app.knows);
        drop(one_at_a_time);
        Ok(json(StatusCode::OK, &told?))
    })
    .await
}
