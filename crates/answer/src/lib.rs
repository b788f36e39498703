//! Answers of a wanted shape: the schema that they have to fit, and the form in which a tool takes them.
//!
//! Pure, and bounded in what it does with any text: answers come from a model.

mod schema;
mod wrap;

pub use schema::{BadSchema, Schema};
pub use wrap::RESULT;

/// How deep an answer may be nested: what is deeper could not be read again by whoever gets it inside of something else.
pub const DEEPEST: usize = 100;

/// Whether a value is nested deeper than an answer may be.
fn too_deep(value: &serde_json::Value, left: usize) -> bool {
    use serde_json::Value;
    match (value, left) {
        (Value::Array(_) | Value::Object(_), 0) => true,
        (Value::Array(items), _) => items.iter().any(|item| too_deep(item, left - 1)),
        (Value::Object(fields), _) => fields.values().any(|field| too_deep(field, left - 1)),
        _ => false,
    }
}
