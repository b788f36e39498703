//! MCP servers for one run.
//!
//! `gemini mcp add -e TOKEN=a=b` of 0.61.0 stores `a`, and drops `-e EMPTY=`; with user scope it changes the settings of
//! every other run. So servers go straight into the settings of the run's own home, where any value survives.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use alhena_model::Hint;
use serde_json::{Map, Value, json};

use super::settings::read_object;

/// An MCP server, as an entry of `mcpServers` in `settings.json`.
///
/// The CLI expands `$NAME` and `${NAME}` in all its values, from its environment.
#[derive(Clone, PartialEq)]
pub struct McpServer {
    /// How it is called; tools are offered as `mcp_<name>_<tool>`.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Whether its tools run without asking. Headless, those of a server that is not trusted do not run at all, unless a
    /// rule or the approval mode allows them.
    pub trust: Option<bool>,
    /// Further keys of the entry: `timeout`, `includeTools`, `oauth`, ...
    pub more: Map<String, Value>,
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A process that the CLI starts and talks to by its standard input and output.
    Process {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, on top of the CLI's own.
        env: BTreeMap<String, String>,
        /// Its working directory.
        cwd: Option<String>,
    },
    /// A server at an address.
    Url {
        /// The address.
        url: String,
        /// `http` or `sse`; the CLI tries both when it is not said.
        kind: Option<String>,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
    /// Another way that the CLI may know; its keys are in [`McpServer::more`].
    Other,
}

/// What is wrong with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAServer(String);

impl fmt::Display for NotAServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAServer {}

impl Hint for NotAServer {}

impl McpServer {
    /// A process with arguments.
    pub fn process(name: &str, command: &str, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        let transport =
            Transport::Process { command: command.to_owned(), args, env: BTreeMap::new(), cwd: None };
        Self { name: name.to_owned(), transport, trust: None, more: Map::new() }
    }

    /// Reads `NAME=COMMAND ARGS`, split as a shell would, or `NAME=URL`.
    pub fn parse(text: &str) -> Result<Self, NotAServer> {
        let (name, rest) =
            text.split_once('=').ok_or_else(|| NotAServer(format!("{text:?} is not NAME=COMMAND")))?;
        let name = checked_name(name.trim())?;
        let rest = rest.trim();
        if rest.starts_with("http://") || rest.starts_with("https://") {
            let transport = Transport::Url { url: rest.to_owned(), kind: None, headers: BTreeMap::new() };
            return Ok(Self { name, transport, trust: None, more: Map::new() });
        }
        let words = shell_words::split(rest)
            .map_err(|_| NotAServer(format!("the command of the MCP server {name} has an open quote")))?;
        let Some((command, args)) = words.split_first() else {
            return Err(NotAServer(format!("the MCP server {name} has no command")));
        };
        Ok(Self::process(&name, command, args))
    }

    /// Reads the content of a JSON file: `{"mcpServers": {NAME: {...}}}`, or the inner map alone.
    pub fn from_json(mut object: Map<String, Value>) -> Result<Vec<Self>, NotAServer> {
        let servers = match object.remove("mcpServers") {
            Some(Value::Object(servers)) => servers,
            Some(_) => return Err(NotAServer("mcpServers is not an object".to_owned())),
            None => object,
        };
        servers.into_iter().map(|(name, entry)| Self::from_entry(&name, entry)).collect()
    }

    /// Reads an argument of `--mcp-server`: a JSON file, which may have comments, if it names one, else as
    /// [`McpServer::parse`].
    pub fn from_argument(text: &str) -> Result<Vec<Self>, NotAServer> {
        let path = Path::new(text);
        if !path.is_file() {
            return Self::parse(text).map(|server| vec![server]);
        }
        let object = read_object(path).map_err(|error| NotAServer(error.to_string()))?;
        Self::from_json(object).map_err(|error| NotAServer(format!("{text}: {error}")))
    }

    fn from_entry(name: &str, entry: Value) -> Result<Self, NotAServer> {
        let name = checked_name(name)?;
        let wrong = |key: &str| NotAServer(format!("{key} of the MCP server {name} has the wrong type"));
        let Value::Object(mut more) = entry else {
            return Err(NotAServer(format!("the MCP server {name} is not an object")));
        };
        let trust = match more.remove("trust") {
            None => None,
            Some(value) => Some(value.as_bool().ok_or_else(|| wrong("trust"))?),
        };
        let mut text = |key: &str| match more.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(key)),
        };
        let transport = if let Some(command) = text("command")? {
            let cwd = text("cwd")?;
            let args = match more.remove("args") {
                None => Vec::new(),
                Some(args) => serde_json::from_value(args).map_err(|_| wrong("args"))?,
            };
            Transport::Process {
                command,
                args,
                env: strings(&mut more, "env").ok_or_else(|| wrong("env"))?,
                cwd,
            }
        } else if let Some(url) = text("url")? {
            let kind = text("type")?;
            let headers = strings(&mut more, "headers").ok_or_else(|| wrong("headers"))?;
            Transport::Url { url, kind, headers }
        } else if more.contains_key("httpUrl") || more.contains_key("tcp") {
            Transport::Other
        } else {
            return Err(NotAServer(format!("the MCP server {name} has neither a command nor a url")));
        };
        Ok(Self { name, transport, trust, more })
    }

    /// The entry in `mcpServers`.
    #[must_use]
    pub fn entry(&self) -> Value {
        let mut entry = Map::new();
        match &self.transport {
            Transport::Process { command, args, env, cwd } => {
                entry.insert("command".to_owned(), json!(command));
                entry.insert("args".to_owned(), json!(args));
                if !env.is_empty() {
                    entry.insert("env".to_owned(), json!(env));
                }
                entry.extend(cwd.as_ref().map(|cwd| ("cwd".to_owned(), json!(cwd))));
            }
            Transport::Url { url, kind, headers } => {
                entry.insert("url".to_owned(), json!(url));
                entry.extend(kind.as_ref().map(|kind| ("type".to_owned(), json!(kind))));
                if !headers.is_empty() {
                    entry.insert("headers".to_owned(), json!(headers));
                }
            }
            Transport::Other => {}
        }
        entry.extend(self.trust.map(|trust| ("trust".to_owned(), json!(trust))));
        entry.extend(self.more.clone());
        Value::Object(entry)
    }

    /// The part of the settings that brings these servers in, to be merged into
    /// [`HomeRequest::settings`](super::HomeRequest::settings).
    #[must_use]
    pub fn settings(servers: &[Self]) -> Map<String, Value> {
        let servers: Map<_, _> = servers.iter().map(|server| (server.name.clone(), server.entry())).collect();
        Map::from_iter([("mcpServers".to_owned(), Value::Object(servers))])
    }
}

/// A name that can be part of a tool's name.
fn checked_name(name: &str) -> Result<String, NotAServer> {
    if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(NotAServer(format!("{name:?} cannot be the name of an MCP server")));
    }
    Ok(name.to_owned())
}

fn strings(entry: &mut Map<String, Value>, key: &str) -> Option<BTreeMap<String, String>> {
    let Some(value) = entry.remove(key) else { return Some(BTreeMap::new()) };
    serde_json::from_value(value).ok()
}

/// Values of variables and headers are secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Process { command, args, env, cwd } => {
                let names: Vec<_> = env.keys().collect();
                let mut debug = f.debug_struct("Process");
                debug
                    .field("command", command)
                    .field("args", args)
                    .field("env", &names)
                    .field("cwd", cwd)
                    .finish()
            }
            Transport::Url { url, kind, headers } => {
                let names: Vec<_> = headers.keys().collect();
                f.debug_struct("Url").field("url", url).field("kind", kind).field("headers", &names).finish()
            }
            Transport::Other => f.write_str("Other"),
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more: Vec<_> = self.more.keys().collect();
        let mut debug = f.debug_struct("McpServer");
        debug.field("name", &self.name).field("transport", &self.transport).field("trust", &self.trust);
        debug.field("more", &more).finish()
    }
}

#[cfg(test)]
mod tests;
