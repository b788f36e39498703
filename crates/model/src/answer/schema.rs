//! The schema that an answer has to fit.

use std::fmt;

use serde_json::Value;

use self::validator::Validator;
use super::last_json;
use super::wrap::{ADDED_BY_CLI, RESULT, wrap};

/// The deepest nesting of an answer: a deeper one could not be read again as part of another value.
pub const DEEPEST: usize = 100;
/// The largest schema, in bytes: larger ones no API takes.
const LARGEST: usize = 4 << 20;

/// A schema that can be checked against.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    tool_input: Value,
}

/// Why something is no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSchema(String);

impl fmt::Display for BadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSchema {}

impl Schema {
    /// Takes a schema of any draft, by its `$schema`; 2020-12 where it has none.
    pub fn new(schema: &Value) -> Result<Self, BadSchema> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(BadSchema("a JSON schema is an object".to_owned()));
        }
        if too_deep(schema, DEEPEST) {
            return Err(BadSchema(format!("it is nested deeper than {DEEPEST} levels")));
        }
        if schema.to_string().len() > LARGEST {
            return Err(BadSchema(format!("it is larger than {} MB", LARGEST >> 20)));
        }
        Ok(Self { validator: validator::build(schema)?, tool_input: wrap(schema) })
    }

    /// Reads a schema that is written as JSON.
    pub fn parse(text: &str) -> Result<Value, BadSchema> {
        serde_json::from_str(text).map_err(|error| BadSchema(format!("it is not JSON: {error}")))
    }

    /// The input of a tool that takes an answer.
    pub fn tool_input(&self) -> &Value {
        &self.tool_input
    }

    /// What is wrong with an answer, each with its path; empty when nothing is.
    pub fn errors(&self, answer: &Value) -> Vec<String> {
        if too_deep(answer, DEEPEST) {
            return vec![format!("it is nested deeper than {DEEPEST} levels")];
        }
        validator::errors(&self.validator, answer)
    }

    /// What a call of the tool brought, or what is wrong with it. A model may leave the wrapping out, and the CLI adds an
    /// argument of its own to every call.
    pub fn submitted(&self, mut arguments: serde_json::Map<String, Value>) -> Result<Value, Vec<String>> {
        match arguments.remove(RESULT) {
            Some(answer) => self.unwrapped(answer),
            None => {
                arguments.remove(ADDED_BY_CLI);
                let answer = Value::Object(arguments);
                let errors = self.errors(&answer);
                if errors.is_empty() { Ok(answer) } else { Err(errors) }
            }
        }
    }

    /// The answer that a text holds: the last JSON in it.
    pub fn told(&self, text: &str) -> Result<Value, Vec<String>> {
        match last_json(text) {
            Some(answer) => self.unwrapped(answer),
            None => Err(vec!["/: there is no JSON in the answer".to_owned()]),
        }
    }

    /// An answer that fits, or that is wrapped once too often.
    fn unwrapped(&self, mut answer: Value) -> Result<Value, Vec<String>> {
        let errors = self.errors(&answer);
        if errors.is_empty() {
            return Ok(answer);
        }
        let only = answer.as_object_mut().filter(|fields| fields.len() == 1);
        match only.and_then(|fields| fields.remove(RESULT)) {
            Some(inner) if self.errors(&inner).is_empty() => Ok(inner),
            _ => Err(errors),
        }
    }
}

/// The check by `jsonschema`.
#[cfg(feature = "jsonschema")]
mod validator {
    pub(super) use jsonschema::Validator;
    use serde_json::Value;

    use super::BadSchema;

    /// The most errors that are listed for one answer.
    const MOST_ERRORS: usize = 20;
    /// The longest error, in bytes: it quotes the answer.
    const LONGEST_ERROR: usize = 500;

    pub(super) fn build(schema: &Value) -> Result<Validator, BadSchema> {
        // Formats are asserted, whatever the draft: who writes one means it.
        let options = jsonschema::options().offline().should_validate_formats(true);
        options.build(schema).map_err(|error| {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!("{at}: ") };
            BadSchema(shortened(format!("{at}{error}")))
        })
    }

    pub(super) fn errors(validator: &Validator, answer: &Value) -> Vec<String> {
        if validator.is_valid(answer) {
            return Vec::new();
        }
        let mut errors: Vec<String> = validator
            .iter_errors(answer)
            .take(MOST_ERRORS + 1)
            .map(|error| {
                let path = error.instance_path().to_string();
                let path = if path.is_empty() { "/".to_owned() } else { path };
                shortened(format!("{path}: {error}"))
            })
            .collect();
        if errors.len() > MOST_ERRORS {
            errors.truncate(MOST_ERRORS);
            errors.push("and more".to_owned());
        }
        // Not valid and no word why must not pass for valid.
        if errors.is_empty() {
            errors.push("/: it does not fit the schema".to_owned());
        }
        errors
    }

    fn shortened(mut text: String) -> String {
        if text.len() > LONGEST_ERROR {
            text.truncate(text.floor_char_boundary(LONGEST_ERROR));
            text.push('…');
        }
        text
    }
}

/// A build that cannot check answers takes no schema.
#[cfg(not(feature = "jsonschema"))]
mod validator {
    use serde_json::Value;

    use super::BadSchema;

    #[derive(Debug)]
    pub(super) enum Validator {}

    pub(super) fn build(_: &Value) -> Result<Validator, BadSchema> {
        Err(BadSchema("this build cannot check answers: it lacks the feature `schema`".to_owned()))
    }

    pub(super) fn errors(validator: &Validator, _: &Value) -> Vec<String> {
        match *validator {}
    }
}

/// Returns true if a value is nested deeper than an answer may be.
fn too_deep(value: &Value, left: usize) -> bool {
    match (value, left) {
        (Value::Array(_) | Value::Object(_), 0) => true,
        (Value::Array(items), _) => items.iter().any(|item| too_deep(item, left - 1)),
        (Value::Object(fields), _) => fields.values().any(|field| too_deep(field, left - 1)),
        _ => false,
    }
}
