//! What is wrong with an object of options: what the parser of the command line says, with the names of fields.

use std::fmt;
use std::sync::LazyLock;

use alhena::{Hint, RunError};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use regex::Regex;

use super::Options;
use super::field::Takes;

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The field; none if it is not one alone.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Wrong {
    pub fn new(field: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) if !self.message.contains(field.as_str()) => write!(f, "{field}: {}", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

static LONG: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"--([a-z][a-z-]*[a-z])").ok());

impl Options {
    /// What `run` says of a request, with the names of fields.
    pub fn in_fields(&self, error: &RunError) -> Wrong {
        let hint = error.hint().unwrap_or_default();
        Wrong { field: None, message: self.renamed(&error.to_string()), hint: self.renamed(&hint) }
    }

    /// Names of fields in the place of options. A command that is quoted stays as it has to be typed.
    pub fn renamed(&self, text: &str) -> String {
        let last = text.matches('`').count();
        let parts = text.split('`').enumerate().map(|(at, part)| {
            let is_command = at % 2 == 1 && at < last && !part.starts_with("--");
            if is_command { part.to_owned() } else { self.renamed_unquoted(part) }
        });
        parts.collect::<Vec<_>>().join("`")
    }

    fn renamed_unquoted(&self, text: &str) -> String {
        let Some(long) = LONG.as_ref() else { return text.to_owned() };
        let renamed = |found: &regex::Captures<'_>| {
            let whole = found.get(0).map_or("", |found| found.as_str());
            let name = found.get(1).and_then(|name| self.field_of_long(name.as_str()));
            name.unwrap_or(whole).to_owned()
        };
        long.replace_all(text, renamed).into_owned()
    }

    /// The fields that are named in what the parser says.
    fn fields_in(&self, error: &clap::Error, kind: ContextKind) -> Vec<String> {
        let Some(long) = LONG.as_ref() else { return Vec::new() };
        let said = error.get(kind).map(ToString::to_string).unwrap_or_default();
        let names = long.captures_iter(&said).filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
        names.filter_map(|name| self.field_of_long(&name).map(str::to_owned)).collect()
    }

    pub(super) fn reworded(&self, error: &clap::Error) -> Wrong {
        let fields = self.fields_in(error, ContextKind::InvalidArg);
        let field = fields.first().cloned().unwrap_or_default();
        let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
        match error.kind() {
            ErrorKind::InvalidValue if !field.is_empty() => {
                let perhaps = self.field(&field).is_some_and(|field| field.takes == Takes::Perhaps);
                let meant = match text(ContextKind::SuggestedValue) {
                    meant if meant.is_empty() && perhaps => "Give true or one of these.".to_owned(),
                    meant if meant.is_empty() => String::new(),
                    meant => format!("Did you mean {meant}?"),
                };
                let known = match error.get(ContextKind::ValidValue) {
                    Some(ContextValue::Strings(values)) => values.join(", "),
                    _ => String::new(),
                };
                let value = text(ContextKind::InvalidValue);
                let message = match value.is_empty() {
                    true => "a value is needed".to_owned(),
                    false => format!("{value:?} is none of {known}"),
                };
                Wrong::new(&field, message, meant)
            }
            ErrorKind::ValueValidation if !field.is_empty() => {
                let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
                let value = text(ContextKind::InvalidValue);
                Wrong::new(&field, format!("{value:?} cannot be used: {why}"), "")
            }
            ErrorKind::ArgumentConflict if !field.is_empty() => {
                let others = self.fields_in(error, ContextKind::PriorArg).join(" and ");
                let message = match others == field {
                    true => format!("{field} is there twice"),
                    false => format!("{field} and {others} cannot be given together"),
                };
                Wrong { field: None, message, hint: "Leave one of them out.".to_owned() }
            }
            ErrorKind::MissingRequiredArgument if !field.is_empty() => Wrong {
                field: None,
                message: format!("{} is missing, which something else here needs", fields.join(" or ")),
                hint: format!("Give {}, or leave out what needs it.", fields.join(" or ")),
            },
            _ => {
                let text = self.renamed(&error.to_string());
                let first = text.lines().next().unwrap_or_default();
                let message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
                Wrong { field: None, message, hint: String::new() }
            }
        }
    }
}
