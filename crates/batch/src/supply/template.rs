//! Prompts made of the fields of a job: `Review {file}`.

use alhena_model::{Setting, SettingError};
use serde_json::Value;

use crate::job::{FIELDS, Fields};

/// A prompt with places for fields. `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(String),
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        let fault = |message: String| {
            Err(SettingError::new(message, "Write {name} for a field, {{ and }} for braces."))
        };
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            match character {
                '{' | '}' if rest.peek() == Some(&character) => {
                    rest.next();
                    plain.push(character);
                }
                '{' => {
                    let mut closed = false;
                    let is_name = |character: &char| {
                        closed = *character == '}';
                        !closed
                    };
                    let name: String = rest.by_ref().take_while(is_name).collect();
                    if name.trim().is_empty() || name.contains(['{', '\n']) || !closed {
                        return fault(format!("the template has no field in {{{name}"));
                    }
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Field(name.trim().to_owned()));
                }
                '}' => return fault("the template has a } that closes nothing".to_owned()),
                _ => plain.push(character),
            }
        }
        parts.push(Part::Text(plain));
        match parts.iter().any(|part| matches!(part, Part::Field(_))) {
            true => Ok(Self { parts }),
            false => fault("the template names no field".to_owned()),
        }
    }

    /// The fields it has places for.
    pub fn fields(&self) -> impl Iterator<Item = &str> + Clone {
        self.parts.iter().filter_map(|part| match part {
            Part::Field(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Whether it has a place for this field.
    pub fn uses(&self, name: &str) -> bool {
        self.fields().any(|field| field == name)
    }

    /// Makes the prompt of a job, and takes out what was only meant for it.
    pub fn fill(&self, options: &mut Fields) -> Result<(), SettingError> {
        let mut prompt = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => prompt.push_str(text),
                Part::Field(name) => prompt.push_str(&value(options, name)?),
            }
        }
        for given in ["prompt", "prompt_file"] {
            if !self.uses(given) && options.get(given).is_some_and(|value| !value.is_null()) {
                let message = format!("{given} is given, and the template has no place for it");
                return Err(SettingError::new(
                    message,
                    format!("Leave {given} out, or write {{{given}}} in the template."),
                ));
            }
        }
        let is_ours =
            |name: &str| Setting::named(name).is_some() || FIELDS.iter().any(|(field, _)| *field == name);
        let spent: Vec<String> = self.fields().filter(|name| !is_ours(name)).map(str::to_owned).collect();
        options.retain(|name, _| !spent.contains(name) && name != "prompt_file");
        options.insert("prompt".to_owned(), Value::String(prompt));
        Ok(())
    }
}

fn value(options: &Fields, name: &str) -> Result<String, SettingError> {
    match options.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(Value::Null) | None => Err(SettingError::new(
            format!("the template needs {name}, which is not given"),
            format!("Give {name}."),
        )),
        Some(_) => {
            Err(SettingError::new(format!("the template needs {name}, which is neither text nor number"), ""))
        }
    }
}
