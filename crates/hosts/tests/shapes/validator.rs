//! Whether a value is as a schema says, with no field that the schema does not know.

use serde_json::Value;

pub struct Validator(jsonschema::Validator);

impl Validator {
    pub fn new(schema: &Value) -> Self {
        let mut schema = schema.clone();
        // Schemas allow fields that they do not name; we do not write any.
        schema["unevaluatedProperties"] = false.into();
        Self(jsonschema::validator_for(&schema).unwrap())
    }

    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.0.validate(value).map_err(|error| format!("{}: {error}", error.instance_path()))
    }
}
