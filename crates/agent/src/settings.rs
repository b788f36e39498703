//! Reads Gemini CLI's settings files, as strictly as the CLI does.
//!
//! 0.61.0 replaces comments by blanks and hands the rest to `JSON.parse`: comments are welcome, a trailing comma ends the
//! CLI with exit 52. A more lenient reader would call a file good that the CLI refuses, so this one does the same two
//! steps.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use alhena_model::Hint;
use serde_json::Value;

/// Settings that cannot be read.
#[derive(Debug)]
pub struct SettingsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a settings file.
#[derive(Debug)]
pub enum Problem {
    /// It exists and cannot be read.
    Unreadable(io::Error),
    /// It is not JSON.
    Invalid {
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
        /// What was expected there.
        message: String,
    },
    /// It is JSON, but not an object.
    NotAnObject,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            Problem::Unreadable(error) => write!(f, "{path} cannot be read: {error}"),
            Problem::Invalid { line, column, message } => {
                write!(f, "{path}:{line}:{column} is not JSON: {message}")
            }
            Problem::NotAnObject => write!(f, "{path} is not a JSON object"),
        }
    }
}

impl std::error::Error for SettingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Unreadable(error) => Some(error),
            Problem::Invalid { .. } | Problem::NotAnObject => None,
        }
    }
}

impl Hint for SettingsError {}

/// Reads a settings file: an object, empty when there is no such file. References such as `$HOME` are left as they are.
pub fn read_settings(path: &Path) -> Result<Value, SettingsError> {
    let error = |problem| SettingsError { path: path.to_path_buf(), problem };
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            return Ok(Value::Object(Default::default()));
        }
        Err(other) => return Err(error(Problem::Unreadable(other))),
    };
    let value = parse(&String::from_utf8_lossy(&bytes)).map_err(error)?;
    if value.is_object() { Ok(value) } else { Err(error(Problem::NotAnObject)) }
}

/// Reads a file of a size that people write. A pipe, which might never end, is refused.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    const LIMIT: u64 = 16 << 20;
    let data = std::fs::metadata(path)?;
    if !data.is_file() {
        return Err(io::Error::other("not a file"));
    }
    if data.len() > LIMIT {
        return Err(io::Error::other("larger than 16 MiB"));
    }
    std::fs::read(path)
}

/// Reads JSON with comments.
pub fn parse(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(&without_comments(text)).map_err(|error| {
        let full = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = full.strip_suffix(&place).unwrap_or(&full).to_owned();
        Problem::Invalid { line: error.line(), column: error.column(), message }
    })
}

/// The text with a blank for every byte of a comment, so that places in it stay the same. A comment that never ends is
/// one up to the end of the file.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains('/') {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        output.push_str(before);
        let length = if from.starts_with('"') { string_length(from) } else { comment_length(from) };
        let (token, after) = from.split_at(length.unwrap_or(1));
        if from.starts_with('/') && length.is_some() {
            blank(token, &mut output);
        } else {
            output.push_str(token);
        }
        rest = after;
    }
    output.push_str(rest);
    Cow::Owned(output)
}

/// The length of the string that a text starts with, quotes included; all of it when the string does not end.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// The length of the comment that a text starts with, without the line's end; none if it starts with something else.
fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let body = text.strip_prefix("/*")?;
    Some(body.find("*/").map_or(text.len(), |at| at + 4))
}

fn blank(comment: &str, output: &mut String) {
    output.extend(
        comment.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { char::from(byte) } else { ' ' }),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_are_read_over_and_not_looked_for_in_strings() {
        let text = "// first\n{ /* a \" quote */ \"a\": \"http://x/*y*/\", // it's é\r\n \"b\\\"//\": 1 /**/ }/* no end";
        assert_eq!(parse(text).unwrap(), json!({"a": "http://x/*y*/", "b\"//": 1}));
    }

    #[test]
    fn what_the_cli_refuses_is_refused_at_its_place() {
        let place = |text: &str| match parse(text).unwrap_err() {
            Problem::Invalid { line, column, message } => (line, column, message),
            other => panic!("{other:?}"),
        };
        assert_eq!(place("{\n  // comment\n  \"a\": 1,\n}"), (4, 1, "trailing comma".to_owned()));
        assert_eq!(place("{ /* é */ 'a': 1 }"), (1, 12, "key must be a string".to_owned()));
        assert_eq!(place("").0, 1);
        assert_eq!(place("{} /").0, 1);
        assert_eq!(place("\u{feff}{}").0, 1);
    }

    #[test]
    fn missing_file_is_an_empty_object_and_variables_stay() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("settings.json");
        assert_eq!(read_settings(&path).unwrap(), json!({}));
        std::fs::write(&path, r#"{"mcpServers": {"x": {"env": {"K": "$HOME"}}}}"#).unwrap();
        assert_eq!(read_settings(&path).unwrap(), json!({"mcpServers": {"x": {"env": {"K": "$HOME"}}}}));
    }

    #[test]
    fn errors_name_the_file_and_the_place() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("settings.json");
        std::fs::write(&path, "{\"a\": }").unwrap();
        let message = read_settings(&path).unwrap_err().to_string();
        assert_eq!(message, format!("{}:1:7 is not JSON: expected value", path.display()));
        std::fs::write(&path, "[]").unwrap();
        let message = read_settings(&path).unwrap_err().to_string();
        assert_eq!(message, format!("{} is not a JSON object", path.display()));
        assert!(matches!(read_settings(root.path()).unwrap_err().problem, Problem::Unreadable(_)));
    }

    #[test]
    fn any_bytes_are_survived() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("settings.json");
        for bytes in [&b"\xff\xfe\0/*\xc3"[..], b"\"\\", b"/", b"//", b"/*/", b"\"/*\xf0\x9f"] {
            std::fs::write(&path, bytes).unwrap();
            assert!(read_settings(&path).is_err(), "{bytes:?}");
        }
        std::fs::write(&path, "[".repeat(1_000_000)).unwrap();
        assert!(read_settings(&path).is_err());
    }
}
