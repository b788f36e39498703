//! `/v1/batches`: batches on this machine, which announce themselves in Alhena's state directory.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::extract::{Named, json};
use crate::now::Item;
use crate::problem::Problem;
use crate::state::{App, Shared};

/// Those that are under way.
pub fn going(_app: &App) -> Vec<Item> {
    Vec::new()
}

/// Lists batches.
pub async fn list(State(_app): State<Shared>) -> Response {
    json(StatusCode::OK, &json!({ "batches": [] }))
}

/// How far a batch is.
pub async fn show(State(_app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    Err(Problem::not_found(format!("there is no batch {id:?}")))
}

/// Its results so far.
pub async fn results(State(_app): State<Shared>, Named(id): Named<String>) -> Result<Response, Problem> {
    Err(Problem::not_found(format!("there is no batch {id:?}")))
}
