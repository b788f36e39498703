//! `--schema FILE|JSON`.

use std::path::Path;

use alhena::RunError;
use alhena::answer::Schema;
use serde_json::Value;

/// A schema in a file, or given as it is.
pub fn read(given: &str) -> Result<Value, RunError> {
    let usage = |message: String| RunError::Usage {
        message: format!("--schema: {message}"),
        hint: "Give a file with a JSON schema, or the schema itself: --schema '{\"type\": \"object\"}'."
            .to_owned(),
    };
    // A schema is an object; no path that anybody has begins so.
    let json = given.trim_start().starts_with('{') && !Path::new(given).is_file();
    let text = match json {
        true => given.to_owned(),
        false => std::fs::read_to_string(given).map_err(|error| usage(format!("{given}: {error}")))?,
    };
    let schema = Schema::parse(&text).map_err(|error| usage(error.to_string()))?;
    // What is no schema is said before anything is looked for or fetched.
    Schema::new(&schema).map_err(|error| usage(error.to_string()))?;
    Ok(schema)
}
