//! The prompt, which is not an option.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::error::SettingError;
use super::value::OptionValue;
use super::{BadValue, Setting};

/// A prompt, as text or in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The text itself.
    Text(String),
    /// A file that holds it.
    File(PathBuf),
}

impl Prompt {
    /// Reads the fields `prompt` and `prompt_file` of an object.
    pub fn from_fields(fields: &Map<String, Value>) -> Result<Option<Self>, SettingError> {
        let text: Option<String> = field(fields, Setting::Prompt)?;
        let file: Option<PathBuf> = field(fields, Setting::PromptFile)?;
        match (text, file) {
            (Some(_), Some(_)) => Err(SettingError::exclusive(Setting::Prompt, Setting::PromptFile)),
            (Some(text), None) => Ok(Some(Prompt::Text(text))),
            (None, file) => Ok(file.map(Prompt::File)),
        }
    }

    /// Refuses an empty prompt.
    pub fn check(&self) -> Result<(), SettingError> {
        match self {
            Prompt::Text(text) if text.trim().is_empty() => {
                let bad = BadValue::new("the prompt is empty").fix("Give a prompt or a `prompt_file`.");
                Err(SettingError::of(Setting::Prompt, bad))
            }
            _ => Ok(()),
        }
    }

    /// The field of an object that holds it, and its value there.
    pub fn to_field(&self) -> (Setting, Value) {
        match self {
            Prompt::Text(text) => (Setting::Prompt, text.as_str().into()),
            Prompt::File(file) => (Setting::PromptFile, file.to_string_lossy().into()),
        }
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt::Text(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Prompt::Text(text)
    }
}

fn field<T: OptionValue>(fields: &Map<String, Value>, setting: Setting) -> Result<T, SettingError> {
    match fields.get(setting.name()) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => T::read(value).map_err(|bad| SettingError::of(setting, bad)),
    }
}
