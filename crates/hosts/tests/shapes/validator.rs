//! The check of a value against one of our schemas.

use serde_json::Value;

pub struct Validator<'a> {
    pub root: &'a Value,
}

impl Validator<'_> {
    /// What is wrong with a value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        closed(self.root).validate(value).map_err(|error| format!("{}: {error}", error.instance_path()))
    }
}

/// Schemas allow fields that they do not name; we do not write any.
pub fn closed(schema: &Value) -> jsonschema::Validator {
    let mut closed = schema.clone();
    closed["unevaluatedProperties"] = false.into();
    jsonschema::validator_for(&closed).unwrap()
}
