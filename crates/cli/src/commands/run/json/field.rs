//! One option, as a field of an object.

use std::ffi::OsString;

use clap::{Arg, ArgAction};
use serde_json::Value;

/// The arguments for Gemini CLI itself, which stand behind `--`.
pub const REST: &str = "args";

/// An option by its name.
pub struct Field {
    pub name: String,
    pub takes: Takes,
    /// Whether an object stands for `NAME=VALUE` each.
    pub pairs: bool,
    /// Whether the value may be JSON itself.
    pub json: bool,
    /// The words that can be its value; any if there are none.
    pub choices: Vec<String>,
    pub help: String,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it is said or not.
    Nothing,
    /// A value.
    One,
    /// A value, or nothing.
    Perhaps,
    /// Values.
    Many,
}

impl Field {
    pub fn of(arg: &Arg) -> Option<Self> {
        let name = match arg.get_long() {
            Some(long) => long.replace('-', "_"),
            None if arg.is_last_set() => REST.to_owned(),
            // The prompt is an option, too.
            None => return None,
        };
        let least = arg.get_num_args().map_or(1, |count| count.min_values());
        let takes = match arg.get_action() {
            ArgAction::Append => Takes::Many,
            ArgAction::Set if name == REST => Takes::Many,
            ArgAction::Set if least == 0 => Takes::Perhaps,
            ArgAction::Set => Takes::One,
            _ => Takes::Nothing,
        };
        let value_name = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
        Some(Self {
            name,
            takes,
            pairs: takes == Takes::Many && value_name.contains('='),
            json: value_name.contains("JSON"),
            choices: choices(arg),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        })
    }

    /// Its name on the command line.
    pub fn long(&self) -> String {
        self.name.replace('_', "-")
    }

    /// What would be typed for this value. Nothing for null.
    pub fn words(&self, value: &Value) -> Result<Vec<OsString>, String> {
        match (self.takes, value) {
            (_, Value::Null) => Ok(Vec::new()),
            (Takes::Nothing | Takes::Perhaps, Value::Bool(true)) => {
                Ok(vec![format!("--{}", self.long()).into()])
            }
            // What is off is said, where it can be.
            (Takes::Perhaps, Value::Bool(false)) if self.name == "sandbox" => self.said("off").map(single),
            (Takes::Nothing | Takes::Perhaps, Value::Bool(false)) => Ok(Vec::new()),
            (Takes::Nothing, _) => Err("true or false is needed".to_owned()),
            (Takes::Many, Value::Array(values)) => {
                let words = values.iter().map(|value| self.said(&plain(value)?));
                let words: Vec<OsString> = words.collect::<Result<_, String>>()?;
                Ok(self.behind_dashes(words))
            }
            (Takes::Many, Value::Object(pairs)) if self.pairs => {
                if let Some(name) = pairs.keys().find(|name| name.is_empty() || name.contains('=')) {
                    return Err(format!("the name {name:?} is empty or has a = in it"));
                }
                pairs.iter().map(|(name, value)| self.said(&format!("{name}={}", plain(value)?))).collect()
            }
            (Takes::Many, value) => {
                let word = plain(value).map_err(|_| match self.pairs {
                    true => "a list of texts, or an object with texts, is needed".to_owned(),
                    false => "a text, or a list of texts, is needed".to_owned(),
                })?;
                Ok(self.behind_dashes(vec![self.said(&word)?]))
            }
            (Takes::One | Takes::Perhaps, Value::Object(_)) if self.json => {
                self.said(&value.to_string()).map(single)
            }
            (Takes::One | Takes::Perhaps, value) => self.said(&plain(value)?).map(single),
        }
    }

    fn said(&self, value: &str) -> Result<OsString, String> {
        if value.contains('\0') {
            return Err("a text with a zero character cannot be given".to_owned());
        }
        Ok(match self.name == REST {
            true => value.into(),
            false => format!("--{}={value}", self.long()).into(),
        })
    }

    fn behind_dashes(&self, mut words: Vec<OsString>) -> Vec<OsString> {
        if self.name == REST && !words.is_empty() {
            words.insert(0, "--".into());
        }
        words
    }

    /// What a text means, where everything is text.
    pub fn value_of_text(&self, text: &str) -> Value {
        let is_json = text.starts_with('[') && self.takes == Takes::Many
            || text.starts_with('{') && (self.pairs || self.json);
        match (self.takes, text) {
            (Takes::Nothing | Takes::Perhaps, "true") => Value::Bool(true),
            (Takes::Nothing | Takes::Perhaps, "false") => Value::Bool(false),
            _ if is_json => {
                serde_json::from_str(text).unwrap_or_else(|_no_json| Value::String(text.to_owned()))
            }
            _ => Value::String(text.to_owned()),
        }
    }
}

/// Other hosts' names included.
fn choices(arg: &Arg) -> Vec<String> {
    let values = arg.get_possible_values();
    values.iter().flat_map(|value| value.get_name_and_aliases()).map(str::to_owned).collect()
}

fn single(word: OsString) -> Vec<OsString> {
    vec![word]
}

/// A value as it would be typed.
fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err("a text or a number is needed".to_owned()),
    }
}
