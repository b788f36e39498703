//! The document that describes the API, made from the types.
//!
//! Types of this crate describe themselves here; those of events, outcomes and messages are the JSON Schemas that the project has
//! of them anyway, and the options of a run those that its command line makes.

mod described;

use std::collections::BTreeMap;

use alhena_model::options::{Choice, Setting};
use alhena_model::policy::MODES;
use serde_json::{Map, Value, json};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{ContentBuilder, Object, Ref, RefOr, Response, ResponseBuilder, Schema, Type};
use utoipa::{IntoResponses, OpenApi};

use crate::policy::NOT_IN_CONVERSATIONS;

pub use self::described::{
    Capabilities, ConversationOptions, Examined, Found, RunOptions, Screen, Session, Terminal, UsageTable,
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Alhena", description = "Runs, conversations, sessions and terminals of Gemini CLI."),
    paths(
        crate::about::version,
        crate::about::capabilities,
        crate::about::doctor,
        crate::about::me,
        crate::now::show,
        crate::now::events,
        self::runs::start,
        crate::tasks::routes::runs,
        self::runs::show,
        self::runs::cancel,
        self::runs::events,
        crate::tasks::routes::outcome,
        crate::tasks::routes::recording,
        self::conversations::open,
        crate::tasks::routes::conversations,
        self::conversations::show,
        crate::tasks::routes::change,
        crate::tasks::routes::close,
        crate::tasks::routes::prompt,
        self::conversations::cancel,
        self::conversations::events,
        crate::tasks::routes::permissions,
        crate::tasks::routes::answer,
        crate::sessions::list,
        crate::sessions::search,
        crate::sessions::show,
        crate::sessions::export,
        crate::sessions::usage,
        crate::terminals::list,
        crate::terminals::show,
        crate::terminals::screen,
        crate::terminals::send,
        crate::terminals::answer,
        crate::terminals::exit,
        crate::batches::list,
        crate::batches::show,
        crate::batches::results,
    ),
    components(schemas(crate::problem::Told, crate::problem::Wrong))
)]
struct Api;

/// The document. `options` are the properties of an object of options of `run`, each with its schema.
///
/// # Panics
/// Not for a document that can be made at all: it is made by a test.
#[allow(clippy::expect_used)]
pub fn document(options: &Map<String, Value>) -> Value {
    let mut document = serde_json::to_value(Api::openapi()).expect("a document");
    let mut schemas = Map::new();
    add::<alhena_model::Outcome>("Outcome", &mut schemas);
    add::<alhena_model::Event>("Event", &mut schemas);
    add::<alhena_model::Failure>("Failure", &mut schemas);
    add::<alhena_model::Message<'static>>("Message", &mut schemas);
    schemas.insert("RunOptions".to_owned(), object(options, |_| true));
    let not_here = |name: &str| NOT_IN_CONVERSATIONS.iter().any(|setting| setting.name() == name);
    schemas.insert("ConversationOptions".to_owned(), object(options, |name| !not_here(name)));
    if let Some(known) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        known.extend(schemas);
        known.sort_keys();
    }
    if let Some(components) = document.pointer_mut("/components").and_then(Value::as_object_mut) {
        let bearer = json!({ "bearer": { "type": "http", "scheme": "bearer" } });
        components.insert("securitySchemes".to_owned(), bearer);
    }
    name_operations(&mut document);
    plain_parameters(&mut document);
    open_streams(&mut document);
    if let Some(root) = document.as_object_mut() {
        root.insert("security".to_owned(), json!([{ "bearer": [] }]));
        if let Some(info) = root.get_mut("info").and_then(Value::as_object_mut) {
            info.remove("license");
            info.insert("version".to_owned(), json!("1"));
        }
    }
    document
}

/// Handlers of different modules have the same names; those of operations have to be different.
fn name_operations(document: &mut Value) {
    let paths =
        document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    for operation in paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        let tag = operation.pointer("/tags/0").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(Value::String(name)) = operation.get_mut("operationId") {
            *name = format!("{tag}_{name}");
        }
    }
}

/// A parameter that is not given is not there: none of them is null.
fn plain_parameters(document: &mut Value) {
    let paths =
        document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    let operations = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    let lists = operations.filter_map(|operation| operation.get_mut("parameters")?.as_array_mut());
    for schema in lists.flatten().filter_map(|parameter| parameter.get_mut("schema")?.as_object_mut()) {
        if let Some(Value::Array(kinds)) = schema.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [kind] = kinds.as_slice() {
                let kind = kind.clone();
                schema.insert("type".to_owned(), kind);
            }
        }
        if let Some(Value::Array(forms)) = schema.get_mut("oneOf") {
            forms.retain(|form| form.get("type").is_none_or(|kind| kind != "null"));
            if let [Value::Object(only)] = forms.as_slice() {
                *schema = only.clone();
            }
        }
    }
}

/// What an event of a stream looks like is said by its description: 3.1 has no word for it.
fn open_streams(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(stream) = fields.get_mut("text/event-stream") {
                *stream = json!({});
            }
            fields.values_mut().for_each(open_streams);
        }
        Value::Array(values) => values.iter_mut().for_each(open_streams),
        _ => {}
    }
}

/// An object of options: those that may be given over HTTP. A run needs `prompt` or `prompt_file`, which generators cannot say.
fn object(options: &Map<String, Value>, wanted: impl Fn(&str) -> bool) -> Value {
    // The policy of a server never admits that one.
    let given = |name: &str| name != Setting::Record.name();
    let mut properties: Map<String, Value> = options
        .iter()
        .filter(|(name, _)| given(name) && wanted(name))
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect();
    if let Some(approval) = properties.get_mut("approval").and_then(Value::as_object_mut) {
        // Other hosts' names are taken, too, and are the same to a generator.
        approval.insert("enum".to_owned(), json!(MODES.map(Choice::name)));
    }
    properties.values_mut().for_each(or_null);
    json!({
        "type": "object",
        "description": "Options of `alhena run`, by their names with underscores.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// An option that is null is one that is not given.
fn or_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(forms)) = fields.get_mut("anyOf") {
        forms.push(json!({ "type": "null" }));
    } else if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.push(Value::Null);
    } else if let Some(kind) = fields.get_mut("type") {
        *kind = match kind.take() {
            Value::Array(kinds) => kinds.into_iter().chain([json!("null")]).collect(),
            kind => json!([kind, "null"]),
        };
    }
}

/// A schema of the project's own, with what it is made of beside it.
fn add<T: schemars::JsonSchema>(name: &str, schemas: &mut Map<String, Value>) {
    let mut schema = schemars::schema_for!(T).to_value();
    moved(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
        if let Some(Value::Object(parts)) = fields.remove("$defs") {
            schemas.extend(parts);
        }
    }
    schemas.insert(name.to_owned(), schema);
}

/// References lead to where the document has its schemas.
fn moved(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                *reference = reference.replace("#/$defs/", "#/components/schemas/");
            }
            // A schema that takes everything is `true` to some and unknown to generators.
            if fields.get("items") == Some(&Value::Bool(true)) {
                fields.insert("items".to_owned(), json!({}));
            }
            let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
            for property in properties.into_iter().flat_map(Map::values_mut) {
                if *property == Value::Bool(true) {
                    *property = json!({});
                }
            }
            fields.values_mut().for_each(moved);
        }
        Value::Array(values) => values.iter_mut().for_each(moved),
        _ => {}
    }
}

fn reference(name: &str) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(name))
}

/// Where an outcome is.
pub fn outcome() -> RefOr<Schema> {
    reference("Outcome")
}

/// Where a problem is.
pub fn problem() -> RefOr<Schema> {
    reference("Problem")
}

/// Where a failure is.
pub fn failure() -> RefOr<Schema> {
    reference("Failure")
}

/// Where the questions of a conversation are.
pub fn permissions() -> RefOr<Schema> {
    let questions = ArrayBuilder::new().items(reference("Permission"));
    RefOr::T(Schema::Array(questions.description(Some("Questions that wait for an answer.")).build()))
}

/// Where a message is.
pub fn message() -> RefOr<Schema> {
    reference("Message")
}

/// Where an event is.
pub fn event() -> RefOr<Schema> {
    reference("Event")
}

fn problems(list: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    list.iter()
        .map(|(status, about)| {
            let mut response = ResponseBuilder::new()
                .description(*about)
                .content("application/problem+json", content.clone());
            if *status == 429 {
                let seconds = HeaderBuilder::new().schema(Object::with_type(Type::Integer)).build();
                response = response.header("retry-after", seconds);
            }
            (status.to_string(), RefOr::T(response.build()))
        })
        .collect()
}

const INPUT: (u16, &str) = (400, "What was asked makes no sense");
const TOKEN: (u16, &str) = (401, "There is no token, or a wrong one");
const REFUSED: (u16, &str) = (403, "It may not be asked for");
const UNKNOWN: (u16, &str) = (404, "There is no such thing");
const SLOW: (u16, &str) = (408, "The body did not arrive in time");
const CONFLICT: (u16, &str) = (409, "It does not go with how things are");
const LARGE: (u16, &str) = (413, "The body is too large");
const KIND: (u16, &str) = (415, "The body is not JSON");
const MANY: (u16, &str) = (429, "There are too many already");
const BROKEN: (u16, &str) = (500, "Something of the server's own went wrong");
const AWAY: (u16, &str) = (503, "Something that is needed is not there, or the server is ending");

macro_rules! sets {
    ($($(#[$about:meta])* $name:ident: $list:expr;)*) => {$(
        $(#[$about])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problems(&$list)
            }
        }
    )*};
}

sets! {
    /// Of lists.
    Reading: [INPUT, TOKEN, REFUSED, BROKEN];
    /// Of one thing.
    Finding: [INPUT, TOKEN, REFUSED, UNKNOWN, BROKEN];
    /// Of what is only there when a run is over.
    NotYet: [CONFLICT];
    /// Of what only so many get at once.
    TooMany: [MANY];
    /// Of what begins something.
    Starting: [INPUT, TOKEN, REFUSED, SLOW, CONFLICT, LARGE, KIND, MANY, BROKEN, AWAY];
    /// Of what changes something.
    Changing: [INPUT, TOKEN, REFUSED, UNKNOWN, SLOW, CONFLICT, LARGE, KIND, BROKEN, AWAY];
    /// Of one terminal.
    FindingTerminal: [INPUT, TOKEN, REFUSED, UNKNOWN, CONFLICT, BROKEN, AWAY];
    /// Of what changes a terminal.
    ChangingTerminal: [INPUT, TOKEN, REFUSED, UNKNOWN, SLOW, CONFLICT, LARGE, KIND, BROKEN, AWAY];
    /// Of what needs Gemini CLI.
    Unavailable: [AWAY];
}

/// Operations on runs; their handlers are in `tasks/routes.rs`, as are those on conversations.
#[allow(dead_code)]
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
#[allow(dead_code)]
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
