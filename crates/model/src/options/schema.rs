//! The JSON schema of an object of options.

use serde_json::{Map, Value};

#[cfg(feature = "schema")]
use super::RunOptions;
use super::Setting;

/// Returns the properties of an object with a prompt and options, each with its schema.
pub fn properties() -> Map<String, Value> {
    let described = |setting: &Setting| {
        let mut schema = setting.schema();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), setting.help().into());
        }
        (setting.name().to_owned(), schema)
    };
    Setting::ALL.iter().map(described).collect()
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RunOptions {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunOptions".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut properties = properties();
        for prompt in [Setting::Prompt, Setting::PromptFile] {
            properties.shift_remove(prompt.name());
        }
        schemars::json_schema!({
            "type": "object",
            "description": "The options of a run.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}
