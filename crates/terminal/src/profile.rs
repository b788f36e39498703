//! Profiles: who an agent is. Markdown with front matter, as CAO's: the body is the system prompt.
//!
//! Gemini CLI 0.61.0 has no notion of them. What a profile says becomes a context file in the terminal's own home, MCP
//! servers in its settings and flags, and a policy that denies by name each tool that it does not list: there is no flag for
//! that, and a policy refuses a tool also in yolo mode.

mod places;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use alhena_agent::facts::NotUsed;
use alhena_agent::home::McpServer;
use alhena_model::Hint;
use alhena_model::options::BadValue;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

pub use self::places::{Places, Project};

/// A profile larger than this is not one.
const LIMIT: u64 = 1 << 20;

/// Who an agent is.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// How it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The model that it wants.
    pub model: Option<String>,
    /// The MCP servers that it needs.
    pub servers: Vec<McpServer>,
    /// The tools that it may use, by CAO's names (`fs_read`, `execute_bash`, `@server`) or the CLI's own; all when it does
    /// not say.
    pub tools: Option<Vec<String>>,
    /// What to tell the model, without white space around it. May be empty.
    pub prompt: String,
}

/// How a system prompt gets to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileBy {
    /// By a context file in the terminal's own home: nothing in the working directory is touched.
    #[default]
    Home,
    /// As CAO's document describes: the first message (`-i`), and `GEMINI.md` in the working directory until the terminal
    /// ends.
    Document,
}

impl std::str::FromStr for ProfileBy {
    type Err = BadValue;

    fn from_str(name: &str) -> Result<Self, BadValue> {
        match name {
            "home" => Ok(ProfileBy::Home),
            "document" => Ok(ProfileBy::Document),
            _ => Err(BadValue::new(format!("unknown way {name:?}; use home or document"))),
        }
    }
}

/// A profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The name or path that was asked for.
    pub name: String,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is none of that name; these are the places that were looked at.
    NotFound(Vec<PathBuf>),
    /// The folder has one, and may not decide what runs.
    NotUsed {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: NotUsed,
    },
    /// The name would lead somewhere else.
    NotAName,
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// The file is not a profile.
    Invalid {
        /// The file; none for text from elsewhere.
        path: Option<PathBuf>,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
}

/// The text of D-30.
impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failed to load agent profile '{}': {}", self.name, self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NotFound(places) => {
                let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
                write!(f, "there is none; looked for {}", places.join(", "))
            }
            Cause::NotUsed { path, why } => write!(
                f,
                "there is none of your own, and {} {why}; give its path, or trust the folder",
                path.display()
            ),
            Cause::NotAName => f.write_str("a name has no slashes, no `..` and is not empty"),
            Cause::Unreadable { path, message } => write!(f, "{}: {message}", path.display()),
            Cause::Invalid { path: Some(path), line, message } => {
                write!(f, "{}:{line}: {message}", path.display())
            }
            Cause::Invalid { path: None, line, message } => write!(f, "line {line}: {message}"),
        }
    }
}

impl std::error::Error for ProfileError {}

impl Hint for ProfileError {}

impl Profile {
    /// Loads a profile by its path or its name. One without front matter has its file's name and only a prompt.
    pub fn load(wanted: &str, places: &Places) -> Result<Self, ProfileError> {
        let failed = |cause| ProfileError { name: wanted.to_owned(), cause };
        let found = places.find(wanted).map_err(failed)?;
        let unreadable = |message: String| failed(Cause::Unreadable { path: found.path.clone(), message });
        let bytes = read_small(&found.path).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8".to_owned()))?;
        let text = if found.of_cao { places.resolve_variables(&text) } else { text };
        Self::parse(&text, &found.name).map_err(|mut error| {
            if let Cause::Invalid { path, .. } = &mut error.cause {
                *path = Some(found.path.clone());
            }
            failed(error.cause)
        })
    }

    /// Reads a profile's text; `name` is its name unless it says another.
    pub fn parse(text: &str, name: &str) -> Result<Self, ProfileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let invalid = |line: usize, message: String| ProfileError {
            name: name.to_owned(),
            cause: Cause::Invalid { path: None, line, message },
        };
        let (front, body, first_line) = split(text).map_err(|line| {
            invalid(line, "the front matter that begins here has no end: a line of `---`".to_owned())
        })?;
        let mut front =
            read_front_matter(front).map_err(|wrong| invalid(wrong.line + first_line, wrong.message))?;
        front.lines.values_mut().for_each(|line| *line += first_line);
        from_parts(front, body, name).map_err(|(line, message)| invalid(line, message))
    }
}

/// The front matter, the body, and how many lines are above the front matter. An error is the line where it begins.
fn split(text: &str) -> Result<(&str, &str, usize), usize> {
    let start = text.len() - text.trim_start().len();
    let (above, rest) = text.split_at(start);
    let above = above.matches('\n').count();
    let Some(rest) = opening(rest) else { return Ok(("", text, 0)) };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (front, body) = rest.split_at(at);
            let body = body.get(line.len()..).unwrap_or_default();
            return Ok((front, body, above + 1));
        }
        at += line.len();
    }
    Err(above + 1)
}

fn opening(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    (first.trim_end() == "---").then_some(rest)
}

fn from_parts(mut front: FrontMatter, body: &str, name: &str) -> Result<Profile, (usize, String)> {
    let lines = std::mem::take(&mut front.lines);
    let line = |key: &str| lines.get(key).copied().unwrap_or(1);
    let wrong = |key: &str, what: &str| (line(key), format!("{key} is not {what}"));
    let text = |key: &str| match front.values.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(key, "text")),
    };
    let own_name = text("name")?.filter(|name| !name.trim().is_empty());
    let description = text("description")?.unwrap_or_default();
    let model = text("model")?.filter(|model| !model.trim().is_empty());
    let prompt = text("prompt")?.unwrap_or_default();
    let servers = match front.values.remove("mcpServers") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(servers)) => {
            servers_of(servers).map_err(|message| (line("mcpServers"), message))?
        }
        Some(_) => return Err(wrong("mcpServers", "a map of servers")),
    };
    // CAO's `tools` says what exists for the agent and `allowedTools` what it may use of that.
    let key = if front.values.contains_key("allowedTools") { "allowedTools" } else { "tools" };
    let tools = match front.values.remove(key) {
        None | Some(Value::Null) => None,
        Some(list) => {
            let list: Vec<String> =
                serde_json::from_value(list).map_err(|_| wrong(key, "a list of names"))?;
            (!list.iter().any(|tool| tool == "*")).then_some(list)
        }
    };
    let body = body.trim();
    let prompt = if body.is_empty() { prompt.trim() } else { body };
    Ok(Profile {
        name: own_name.unwrap_or_else(|| name.to_owned()),
        description,
        model,
        servers,
        tools,
        prompt: prompt.to_owned(),
    })
}

/// CAO's entries say `type: stdio`, which the CLI's settings do not know; and YAML has numbers where text is meant.
fn servers_of(servers: Map<String, Value>) -> Result<Vec<McpServer>, String> {
    let entries = servers.into_iter().map(|(name, mut entry)| {
        if let Some(entry) = entry.as_object_mut() {
            entry.retain(|_, value| !value.is_null());
            if entry.get("type").and_then(Value::as_str) == Some("stdio") {
                entry.remove("type");
            }
            for key in ["env", "headers"] {
                let values = entry.get_mut(key).and_then(Value::as_object_mut);
                values.into_iter().flat_map(Map::values_mut).for_each(as_text);
            }
            let args = entry.get_mut("args").and_then(Value::as_array_mut);
            args.into_iter().flatten().for_each(as_text);
        }
        (name, entry)
    });
    McpServer::from_json(Map::from_iter([("mcpServers".to_owned(), entries.collect())]))
        .map_err(|error| error.to_string())
}

fn as_text(value: &mut Value) {
    match value {
        Value::Null => *value = Value::String(String::new()),
        Value::Bool(_) | Value::Number(_) => *value = Value::String(value.to_string()),
        _ => {}
    }
}

fn read_small(path: &Path) -> std::io::Result<Vec<u8>> {
    let data = std::fs::metadata(path)?;
    match data.is_file() && data.len() <= LIMIT {
        true => std::fs::read(path),
        false => Err(std::io::Error::other("not a file of less than 1 MiB")),
    }
}

/// How deep values may be nested.
const DEPTH: usize = 32;

/// What is wrong with front matter, and in which of its lines, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    message: String,
}

#[derive(Debug, Default, PartialEq)]
struct FrontMatter {
    values: Map<String, Value>,
    lines: BTreeMap<String, usize>,
}

enum Open {
    List(Vec<Value>),
    Map { entries: Map<String, Value>, key: Option<String> },
}

/// Reads front matter without its `---` lines. What people write there is small, so it is bounded: no aliases, a limited
/// depth.
fn read_front_matter(text: &str) -> Result<FrontMatter, Wrong> {
    let mut lines = BTreeMap::new();
    let mut open: Vec<Open> = Vec::new();
    let mut whole = None;
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| Wrong { line: error.marker().line(), message: error.info().to_owned() })?;
        let wrong = |message: &str| Wrong { line: span.start.line(), message: message.to_owned() };
        let done = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH => {
                return Err(wrong("nested too deeply"));
            }
            Event::Alias(_) => return Err(wrong("aliases are not supported")),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open::Map { entries: Map::new(), key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Value::Array(items),
                Some(Open::Map { entries, .. }) => Value::Object(entries),
                None => continue,
            },
            Event::Scalar(text, style, ..) => {
                let top = open.len() == 1;
                if let Some(Open::Map { entries, key: key @ None }) = open.last_mut() {
                    if entries.contains_key(text.as_ref()) {
                        return Err(wrong(&format!("{text:?} is there twice")));
                    }
                    if top {
                        lines.insert(text.clone().into_owned(), span.start.line());
                    }
                    *key = Some(text.into_owned());
                    continue;
                }
                scalar(&text, style)
            }
            Event::DocumentStart(_) if whole.is_some() => return Err(wrong("more than one document")),
            _ => continue,
        };
        match open.last_mut() {
            None => whole = Some(done),
            Some(Open::List(items)) => items.push(done),
            Some(Open::Map { entries, key }) => match key.take() {
                Some(key) => {
                    entries.insert(key, done);
                }
                None => return Err(wrong("a key must be a word")),
            },
        }
    }
    match whole {
        None | Some(Value::Null) => Ok(FrontMatter::default()),
        Some(Value::Object(values)) => Ok(FrontMatter { values, lines }),
        Some(_) => Err(Wrong { line: 1, message: "not a list of `key: value`".to_owned() }),
    }
}

/// A plain word may be a number, true, false or nothing; a quoted one is text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) => {
            let plain = text.strip_prefix('+').unwrap_or(text);
            let float = || plain.parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number);
            plain
                .parse::<i64>()
                .ok()
                .map(Value::from)
                .or_else(float)
                .unwrap_or_else(|| Value::String(text.to_owned()))
        }
        _ => Value::String(text.to_owned()),
    }
}

/// CAO's name, and what it stands for.
const TABLE: &[(&str, &[&str])] = &[
    ("execute_bash", &["run_shell_command"]),
    ("fs_read", &["read_file", "read_many_files", "list_directory", "glob", "grep_search"]),
    ("fs_write", &["write_file", "replace"]),
    ("fs_list", &["list_directory", "glob", "grep_search"]),
    ("web_fetch", &["web_fetch", "google_web_search"]),
];

impl Profile {
    /// The tools that an agent of this profile must not use: none when it does not say which it may.
    #[must_use]
    pub fn denied_tools(&self) -> Vec<String> {
        let Some(allowed) = &self.tools else { return Vec::new() };
        let means = |name: &str, word: &str, tool: &str| {
            word == "@builtin"
                || word == tool
                || word == name
                || word == "fs_*" && matches!(name, "fs_read" | "fs_write")
        };
        let mut denied: Vec<String> = Vec::new();
        let every = TABLE.iter().flat_map(|(_, tools)| tools.iter().copied());
        for tool in every {
            let names = TABLE.iter().filter(|(_, tools)| tools.contains(&tool));
            let is_allowed =
                names.into_iter().any(|(name, _)| allowed.iter().any(|word| means(name, word, tool)));
            if !is_allowed && !denied.iter().any(|known| known == tool) {
                denied.push(tool.to_owned());
            }
        }
        denied
    }
}

#[cfg(test)]
mod tests;
