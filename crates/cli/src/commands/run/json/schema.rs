//! The JSON schema of an object of options.

use alhena::batch::job::FIELDS;
use serde_json::{Map, Value, json};

use super::field::{Field, Takes};
use super::{Options, refusal};

impl Options {
    /// The properties of such an object, each with its schema.
    pub fn properties(&self) -> Map<String, Value> {
        let fields = self.fields.iter().filter(|field| refusal(&field.name).is_none());
        fields.map(|field| (field.name.clone(), described(field, &self.renamed(&field.help)))).collect()
    }

    /// The schema of a job: one line of a batch.
    pub fn job_schema(&self) -> Value {
        let mut properties = Map::new();
        for (name, meaning) in FIELDS {
            let mut schema = match *name {
                "id" => json!({ "type": ["string", "integer"] }),
                "git" => json!({
                    "type": "object",
                    "properties": { "url": { "type": "string" }, "ref": { "type": "string" } },
                    "required": ["url"],
                    "additionalProperties": false,
                }),
                "outputs" => json!({
                    "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "maxItems": 100 }],
                }),
                _ => json!({ "type": "boolean" }),
            };
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".to_owned(), Value::from(*meaning));
            }
            properties.insert((*name).to_owned(), schema);
        }
        properties.extend(self.properties());
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Job",
            "description": "One job of a batch: a prompt, and any option of `alhena run` by its name.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

fn described(field: &Field, help: &str) -> Value {
    let mut schema = match field.takes {
        Takes::Nothing => json!({ "type": "boolean" }),
        Takes::One => one(field),
        Takes::Perhaps => json!({ "anyOf": [{ "type": "boolean" }, one(field)] }),
        Takes::Many => {
            let mut forms = vec![json!({ "type": "array", "items": { "type": ["string", "number"] } })];
            forms.push(json!({ "type": ["string", "number"] }));
            if field.pairs {
                forms.push(
                    json!({ "type": "object", "additionalProperties": { "type": ["string", "number"] } }),
                );
            }
            json!({ "anyOf": forms })
        }
    };
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), help.into());
    }
    schema
}

fn one(field: &Field) -> Value {
    match field {
        Field { json: true, .. } => json!({ "type": ["string", "object"] }),
        Field { choices, .. } if choices.is_empty() => json!({ "type": ["string", "number"] }),
        Field { choices, .. } => json!({ "enum": choices }),
    }
}
