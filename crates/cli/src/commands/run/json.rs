//! The options of `run` as a JSON object, for jobs of a batch and for whoever asks over a wire.
//!
//! An object means what the same command line would mean: names are the long options without dashes in front and with
//! underscores. All of it is read off the definition that the command line is parsed by, and parsed by it, so that an option
//! that `run` gets is an option here, and what is wrong with one is said by the same check.

mod field;
mod schema;
mod wrong;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args as _, Command, FromArgMatches};
use serde_json::{Map, Value};

use self::field::{Field, REST};
pub use self::wrong::Wrong;
use super::Args;
use crate::nearest::nearest;

/// Options of `run` that make no sense where somebody else starts it, and why.
const NOT_HERE: &[(&str, &str)] = &[
    ("as", "what comes of it is an outcome"),
    ("output", "what comes of it is an outcome"),
    ("quiet", "nothing is printed"),
    ("verbose", "nothing is printed"),
    ("no_stdin", "stdin is never read here"),
    ("confirm", "nobody is there who could be asked"),
];

/// All options, ready to read objects.
pub struct Options {
    command: Command,
    fields: Vec<Field>,
}

impl Options {
    pub fn new() -> Self {
        let mut command =
            Args::augment_args(Command::new("run").no_binary_name(true).disable_help_flag(true));
        command.build();
        let fields = command.get_arguments().filter_map(Field::of).collect();
        Self { command, fields }
    }

    /// The names of all options that can be given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str()).filter(|name| refusal(name).is_none())
    }

    /// What a text means as the value of an option, such as one that was typed or stands in a table.
    pub fn value_of_text(&self, name: &str, text: &str) -> Value {
        match self.field(name) {
            Some(field) => field.value_of_text(text),
            None => Value::String(text.to_owned()),
        }
    }

    /// The arguments that an object stands for, or all that is wrong with it. `beside` are names that the caller takes for itself.
    pub fn read(&self, given: &Map<String, Value>, beside: &[&str]) -> Result<Args, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut words: Vec<(&Field, Vec<OsString>)> = Vec::new();
        for (name, value) in given {
            match self.known(name, beside) {
                Ok(field) => match field.words(value) {
                    Ok(said) => words.push((field, said)),
                    Err(message) => wrong.push(Wrong::new(name, message, "")),
                },
                Err(refused) => wrong.push(refused),
            }
        }
        // What stands behind `--` comes last.
        words.sort_by_key(|(field, _)| field.name == REST);
        let parsed = self.parse(words.iter().flat_map(|(_, words)| words));
        match parsed {
            Ok(args) if wrong.is_empty() => Ok(args),
            Ok(_) => Err(wrong),
            Err(error) => {
                let alone = words.iter().filter_map(|(_, words)| self.parse(words).err());
                let before = wrong.len();
                // What one option needs of another cannot be judged by it alone.
                wrong.extend(
                    alone
                        .filter(|error| error.kind() != ErrorKind::MissingRequiredArgument)
                        .map(|error| self.reworded(&error)),
                );
                if wrong.len() == before {
                    wrong.push(self.reworded(&error));
                }
                Err(wrong)
            }
        }
    }

    fn parse<'a>(&self, words: impl IntoIterator<Item = &'a OsString>) -> Result<Args, clap::Error> {
        let matches = self.command.clone().try_get_matches_from(words)?;
        Args::from_arg_matches(&matches)
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn known(&self, name: &str, beside: &[&str]) -> Result<&Field, Wrong> {
        if let Some(why) = refusal(name) {
            let hint = "Leave it out.";
            return Err(Wrong::new(name, format!("{name} cannot be given here: {why}"), hint));
        }
        self.field(name).ok_or_else(|| {
            let names = self.names().chain(beside.iter().copied());
            let hint = match nearest(&name.replace('-', "_").to_lowercase(), names) {
                Some(meant) => format!("Did you mean {meant}?"),
                None => {
                    "Names are those of `alhena run --help`, without dashes in front and with underscores."
                        .to_owned()
                }
            };
            Wrong::new(name, format!("there is no option {name}"), hint)
        })
    }

    /// A field's name where an option of the command line is named.
    fn field_of_long(&self, long: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.long() == long).map(|field| field.name.as_str())
    }
}

fn refusal(name: &str) -> Option<&'static str> {
    NOT_HERE.iter().find(|(refused, _)| *refused == name).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests;
