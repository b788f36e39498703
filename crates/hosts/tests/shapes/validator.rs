//! Whether a value is as a schema says, with no field that the schema does not know.

use serde_json::Value;

pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let mut schema = schema.clone();
    // Schemas allow fields that they do not name; we do not write any.
    schema["unevaluatedProperties"] = false.into();
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    validator.validate(value).map_err(|error| format!("{}: {error}", error.instance_path()))
}
