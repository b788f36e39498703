//! The one table of routes.

use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};

use crate::problem::Problem;
use crate::state::Shared;
use crate::tasks::{TaskKind, routes as tasks};
use crate::{about, batches, gate, now, page, sessions, terminals};

/// All that can be asked.
pub fn router(app: Shared) -> Router {
    let runs = Router::new()
        .route("/v1/runs", get(tasks::runs).post(tasks::start))
        .route("/v1/runs/{id}", get(tasks::show))
        .route("/v1/runs/{id}/cancel", post(tasks::cancel))
        .route("/v1/runs/{id}/events", get(tasks::events))
        .route("/v1/runs/{id}/outcome", get(tasks::outcome))
        .route("/v1/runs/{id}/recording", get(tasks::recording))
        .route_layer(Extension(TaskKind::Run));
    let conversations = Router::new()
        .route("/v1/conversations", get(tasks::conversations).post(tasks::start))
        .route("/v1/conversations/{id}", get(tasks::show).patch(tasks::change).delete(tasks::close))
        .route("/v1/conversations/{id}/prompt", post(tasks::prompt))
        .route("/v1/conversations/{id}/cancel", post(tasks::cancel))
        .route("/v1/conversations/{id}/events", get(tasks::events))
        .route("/v1/conversations/{id}/permissions", get(tasks::permissions))
        .route("/v1/conversations/{id}/permissions/{permission}", post(tasks::answer))
        .route_layer(Extension(TaskKind::Conversation));
    Router::new()
        .merge(runs)
        .merge(conversations)
        .route("/", get(page::index))
        .route("/page/{*file}", get(page::part))
        .route("/openapi.json", get(page::openapi))
        .route("/v1/version", get(about::version))
        .route("/v1/capabilities", get(about::capabilities))
        .route("/v1/doctor", get(about::doctor))
        .route("/v1/me", get(about::me))
        .route("/v1/now", get(now::show))
        .route("/v1/now/events", get(now::events))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/search", get(sessions::search))
        .route("/v1/sessions/{id}", get(sessions::show))
        .route("/v1/sessions/{id}/export", get(sessions::export))
        .route("/v1/usage", get(sessions::usage))
        .route("/v1/terminals", get(terminals::list))
        .route("/v1/terminals/{name}", get(terminals::show))
        .route("/v1/terminals/{name}/screen", get(terminals::screen))
        .route("/v1/terminals/{name}/send", post(terminals::send))
        .route("/v1/terminals/{name}/answer", post(terminals::answer))
        .route("/v1/terminals/{name}/exit", post(terminals::exit))
        .route("/v1/batches", get(batches::list))
        .route("/v1/batches/{id}", get(batches::show))
        .route("/v1/batches/{id}/results", get(batches::results))
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(app.clone(), gate::pass))
        .with_state(app)
}

async fn nowhere(uri: Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {:?}", uri.path()))
        .hint("/openapi.json lists what there is.")
}

async fn not_so(method: Method, uri: Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "input", format!("{:?} knows no {method}", uri.path()))
}
