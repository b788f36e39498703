//! Variables of the CLI's environment.

use std::fmt;
use std::str::FromStr;

use super::error::BadValue;

/// A variable for the CLI: to be set, or, without a value, required to be set already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvVar {
    /// The name.
    pub name: String,
    /// The value; none if it has to be set already.
    pub value: Option<String>,
}

impl FromStr for EnvVar {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.split_once('=') {
            _ if text.is_empty() || text.starts_with('=') => {
                Err(BadValue::new(format!("{text:?} names no variable"))
                    .fix("Write NAME=VALUE, or the NAME of a variable that is set."))
            }
            Some((name, value)) => Ok(Self { name: name.to_owned(), value: Some(value.to_owned()) }),
            None => Ok(Self { name: text.to_owned(), value: None }),
        }
    }
}

impl fmt::Display for EnvVar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
