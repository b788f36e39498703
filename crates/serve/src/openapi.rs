//! The document that describes the API, made from the types.
//!
//! Types of this crate describe themselves here; those of events, outcomes and messages are the JSON Schemas that the project has
//! of them anyway, and the options of a run those that its command line makes.

mod described;
mod responses;
mod tasks;

use alhena_model::options::{Choice, Setting};
use alhena_model::policy::MODES;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};

pub use self::described::{
    Capabilities, ConversationOptions, Examined, Found, RunOptions, Screen, Session, Terminal, UsageTable,
};
pub use self::responses::{
    Changing, ChangingTerminal, Finding, FindingTerminal, NotYet, Reading, Starting, TooMany, Unavailable,
};
use crate::policy::NOT_IN_CONVERSATIONS;

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
        self::tasks::runs::start,
        crate::tasks::routes::runs,
        self::tasks::runs::show,
        self::tasks::runs::cancel,
        self::tasks::runs::events,
        crate::tasks::routes::outcome,
        crate::tasks::routes::recording,
        self::tasks::conversations::open,
        crate::tasks::routes::conversations,
        self::tasks::conversations::show,
        crate::tasks::routes::change,
        crate::tasks::routes::close,
        crate::tasks::routes::prompt,
        self::tasks::conversations::cancel,
        self::tasks::conversations::events,
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
