//! The one table of routes.

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::problem::Problem;
use crate::state::Shared;
use crate::{about, batches, conversations, gate, now, page, runs, sessions, terminals};

/// All that can be asked.
pub fn router(app: Shared) -> Router {
    use conversations::routes as talks;
    use runs::routes as run;
    Router::new()
        .route("/", get(page::index))
        .route("/page/{*file}", get(page::part))
        .route("/openapi.json", get(page::openapi))
        .route("/v1/version", get(about::version))
        .route("/v1/capabilities", get(about::capabilities))
        .route("/v1/doctor", get(about::doctor))
        .route("/v1/me", get(about::me))
        .route("/v1/now", get(now::show))
        .route("/v1/now/events", get(now::events))
        .route("/v1/runs", get(run::list).post(run::start))
        .route("/v1/runs/{id}", get(run::show))
        .route("/v1/runs/{id}/cancel", post(run::cancel))
        .route("/v1/runs/{id}/events", get(run::events))
        .route("/v1/runs/{id}/outcome", get(run::outcome))
        .route("/v1/runs/{id}/recording", get(run::recording))
        .route("/v1/conversations", get(talks::list).post(talks::open))
        .route("/v1/conversations/{id}", get(talks::show).patch(talks::change).delete(talks::close))
        .route("/v1/conversations/{id}/prompt", post(talks::prompt))
        .route("/v1/conversations/{id}/cancel", post(talks::cancel))
        .route("/v1/conversations/{id}/events", get(talks::events))
        .route("/v1/conversations/{id}/permissions", get(talks::permissions))
        .route("/v1/conversations/{id}/permissions/{permission}", post(talks::answer))
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
