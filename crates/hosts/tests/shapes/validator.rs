//! A validator for the part of JSON Schema that our schemas use. Anything else is an error, so that nothing passes unseen.

use serde_json::{Map, Value};

pub struct Validator<'a> {
    pub root: &'a Value,
}

impl<'a> Validator<'a> {
    /// What is wrong with a value; nothing when it is as the schema says, with no field that the schema does not know.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.valid(self.root, value, "$")?;
        match value.as_object() {
            Some(fields) => self.no_strangers(self.root, fields),
            None => Ok(()),
        }
    }

    fn valid(&self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let Value::Object(keywords) = schema else { return Err(format!("{at}: a schema that is no object")) };
        for (keyword, argument) in keywords {
            self.keyword(keyword, argument, keywords, value, at)?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        keyword: &str,
        argument: &'a Value,
        all: &'a Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let wrong = |what: String| Err(format!("{at}: {what}, but is {value}"));
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => Ok(()),
            "$ref" => self.valid(self.resolve(argument), value, at),
            "type" => {
                let kinds: Vec<&str> = match argument {
                    Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
                    kind => vec![kind.as_str().unwrap()],
                };
                if kinds.iter().any(|kind| is_a(kind, value)) {
                    Ok(())
                } else {
                    wrong(format!("should be {kinds:?}"))
                }
            }
            "const" if argument == value => Ok(()),
            "const" => wrong(format!("should be {argument}")),
            "enum" if argument.as_array().unwrap().contains(value) => Ok(()),
            "enum" => wrong(format!("should be one of {argument}")),
            "minimum" if value.as_f64() >= argument.as_f64() => Ok(()),
            "maximum" if value.as_f64() <= argument.as_f64() => Ok(()),
            "minimum" | "maximum" => wrong(format!("{keyword} is {argument}")),
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items
                    .into_iter()
                    .try_for_each(|(index, item)| self.valid(argument, item, &format!("{at}[{index}]")))
            }
            "required" => {
                let missing = argument
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|name| value.get(name.as_str().unwrap()).is_none());
                missing.map_or(Ok(()), |name| wrong(format!("{name} is missing")))
            }
            "properties" => {
                argument.as_object().unwrap().iter().try_for_each(|(name, schema)| match value.get(name) {
                    Some(field) => self.valid(schema, field, &format!("{at}.{name}")),
                    None => Ok(()),
                })
            }
            "additionalProperties" => {
                let known = all.get("properties").and_then(Value::as_object);
                let others = value.as_object().into_iter().flatten();
                let mut others =
                    others.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                match argument {
                    Value::Bool(true) => Ok(()),
                    Value::Bool(false) => {
                        others.next().map_or(Ok(()), |(name, _)| wrong(format!("has {name}")))
                    }
                    schema => others
                        .try_for_each(|(name, field)| self.valid(schema, field, &format!("{at}.{name}"))),
                }
            }
            "oneOf" | "anyOf" => {
                let choices = argument.as_array().unwrap();
                let tried: Vec<Result<(), String>> =
                    choices.iter().map(|choice| self.valid(choice, value, at)).collect();
                match tried.iter().filter(|tried| tried.is_ok()).count() {
                    1 => Ok(()),
                    0 => wrong(format!("fits none of {} choices: {tried:?}", choices.len())),
                    _ if keyword == "anyOf" => Ok(()),
                    count => wrong(format!("fits {count} choices")),
                }
            }
            other => Err(format!("{at}: the keyword {other} is not understood")),
        }
    }

    /// Schemas allow fields that they do not name; we do not write any.
    fn no_strangers(&self, schema: &'a Value, fields: &Map<String, Value>) -> Result<(), String> {
        let mut known = Vec::new();
        self.names(schema, fields, &mut known);
        let stranger = fields.keys().find(|name| !known.contains(&name.as_str()));
        stranger.map_or(Ok(()), |name| Err(format!("the schema does not know {name}")))
    }

    fn names(&self, schema: &'a Value, fields: &Map<String, Value>, known: &mut Vec<&'a str>) {
        known.extend(
            schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys)
                .map(String::as_str),
        );
        if let Some(reference) = schema.get("$ref") {
            self.names(self.resolve(reference), fields, known);
        }
        for choice in schema.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            if self.valid(choice, &Value::Object(fields.clone()), "$").is_ok() {
                self.names(choice, fields, known);
            }
        }
    }

    fn resolve(&self, reference: &Value) -> &'a Value {
        self.root.pointer(reference.as_str().unwrap().strip_prefix('#').unwrap()).unwrap()
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
