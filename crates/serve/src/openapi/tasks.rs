//! The operations that runs and conversations share; their handlers are in `tasks/routes.rs`.
#![allow(dead_code)]

/// Operations on runs.
pub mod runs {
    use crate::openapi::{Finding, RunOptions, Starting};
    use crate::tasks::routes::From;
    use crate::tasks::{RunView, TaskWithOutcome};

    /// Starts a run. With an `Idempotency-Key`, the same request again gives the same run.
    #[utoipa::path(post, path = "/v1/runs", tag = "runs",
        params(("Idempotency-Key" = Option<String>, Header, description = "The same key is the same run", max_length = 200, pattern = "^[!-~]+$")),
        request_body(content = RunOptions, content_type = "application/json"),
        responses((status = 201, body = RunView, headers(("location" = String, description = "The run"))), Starting))]
    fn start() {}

    /// Shows a run, with its outcome once it has ended.
    #[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
        responses((status = 200, body = TaskWithOutcome), Finding))]
    fn show() {}

    /// Stops a run: gently, and if asked again at once.
    #[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path)),
        responses((status = 202, body = RunView), Finding))]
    fn cancel() {}

    /// Streams the events of a run to the last one, as server-sent events, or as JSON lines for `Accept: application/jsonl`.
    #[utoipa::path(get, path = "/v1/runs/{id}/events", tag = "runs", params(("id" = String, Path), From,
            ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that you have", max_length = 18, pattern = "^[0-9]*$")),
        responses((status = 200, description = "Events", content((String = "text/event-stream"), (String = "application/jsonl"))), (status = 204, description = "It is over, and you have its last event"), Finding))]
    fn events() {}
}

/// Operations on conversations.
pub mod conversations {
    use crate::openapi::{ConversationOptions, Finding, Starting};
    use crate::tasks::ConversationView;
    use crate::tasks::routes::From;

    /// Opens a conversation. With an `Idempotency-Key`, the same request again gives the same one.
    #[utoipa::path(post, path = "/v1/conversations", tag = "conversations",
        params(("Idempotency-Key" = Option<String>, Header, description = "The same key is the same conversation", max_length = 200, pattern = "^[!-~]+$")),
        request_body(content = ConversationOptions, content_type = "application/json"),
        responses((status = 201, body = ConversationView, headers(("location" = String, description = "The conversation"))), Starting))]
    fn open() {}

    /// Shows a conversation.
    #[utoipa::path(get, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = String, Path)),
        responses((status = 200, body = ConversationView), Finding))]
    fn show() {}

    /// Cancels the turn that is on. The conversation goes on.
    #[utoipa::path(post, path = "/v1/conversations/{id}/cancel", tag = "conversations", params(("id" = String, Path)),
        responses((status = 202, body = ConversationView), Finding))]
    fn cancel() {}

    /// Streams the events of a conversation, through all turns, as those of a run.
    #[utoipa::path(get, path = "/v1/conversations/{id}/events", tag = "conversations", params(("id" = String, Path), From,
            ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that you have", max_length = 18, pattern = "^[0-9]*$")),
        responses((status = 200, description = "Events", content((String = "text/event-stream"), (String = "application/jsonl"))), (status = 204, description = "It is over, and you have its last event"), Finding))]
    fn events() {}
}
