//! MCP servers of a terminal: by default in the settings of its own home, on request in the user's.
//!
//! Either way a server learns which terminal it serves: Gemini CLI 0.61.0 passes `env` of an entry on to the process that it
//! starts. `gemini mcp add --scope user` writes without a lock, cuts values at a second `=`, and `mcp remove` takes out the
//! user's own server of that name; here a server that was there comes back, and the rest of the file stays as it is.

mod jsonc;
pub(crate) mod start;

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use alhena_agent::home::{McpServer, Transport};
use alhena_agent::settings::SettingsError;
use alhena_model::options::BadValue;
use alhena_sys::files;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::jsonc::{Document, NotEdited};
use crate::borrowed::{BorrowedFiles, BorrowedKind, Holder, Restorable};

/// Tells a server which terminal it serves; the name is CAO's (D-33).
pub const CAO_TERMINAL_ID: &str = alhena_agent::env::CAO_TERMINAL_ID;

/// Where a terminal's servers are written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpScope {
    /// In the settings of the terminal's own home.
    #[default]
    Terminal,
    /// In the user's settings, until the terminal ends.
    User,
}

impl std::str::FromStr for McpScope {
    type Err = BadValue;

    fn from_str(name: &str) -> Result<Self, BadValue> {
        match name {
            "terminal" => Ok(McpScope::Terminal),
            "user" => Ok(McpScope::User),
            _ => Err(BadValue::new(format!("unknown scope {name:?}; use terminal or user"))),
        }
    }
}

/// The servers with the terminal's id in the environment of each process. A value of its own stays.
#[must_use]
pub fn for_terminal(servers: &[McpServer], terminal: &str) -> Vec<McpServer> {
    let mut servers = servers.to_vec();
    for server in &mut servers {
        if let Transport::Process { env, .. } = &mut server.transport {
            env.entry(CAO_TERMINAL_ID.to_owned()).or_insert_with(|| terminal.to_owned());
        }
    }
    servers
}

const KEY: &str = "mcpServers";

type Held = Holder<Map<String, Value>>;

/// Servers that terminals put into the user's settings (D-31 to D-34). Of several that bring one of the same name, the latest
/// has its own in the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Servers {
    /// The text of the user's own entry for each name that a terminal uses; none if there was none.
    replaced: BTreeMap<String, Option<String>>,
    made_key: bool,
    made_file: bool,
    holders: Vec<Held>,
}

impl Servers {
    /// Puts servers into a settings file for as long as a terminal is there. Gives back what people should know.
    pub(crate) fn add(
        borrowed: &BorrowedFiles,
        settings: &Path,
        terminal: &str,
        servers: &[McpServer],
    ) -> io::Result<Vec<String>> {
        let dir = settings.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let settings = fs::canonicalize(dir)?.join(settings.file_name().unwrap_or_default());
        let entries: Map<String, Value> =
            servers.iter().map(|server| (server.name.clone(), server.entry())).collect();
        let mut warnings = Vec::new();
        let told = borrowed.lend(&settings, terminal, |before: Option<Self>| {
            let document = open(&settings)?;
            warnings
                .extend(document.as_ref().map(|document| shut_out(document, &entries)).unwrap_or_default());
            let mut borrowed = before.unwrap_or_else(|| Self {
                replaced: BTreeMap::new(),
                made_key: document.as_ref().is_none_or(|document| !document.has(KEY)),
                made_file: document.is_none(),
                holders: Vec::new(),
            });
            for name in entries.keys() {
                // What is there and no terminal put there is the user's, also if it was written meanwhile.
                let now = document.as_ref().and_then(|document| document.entry_value(KEY, name));
                if now.is_none_or(|now| !borrowed.has_put(name, &now)) {
                    let text = document.as_ref().and_then(|document| document.entry(KEY, name));
                    borrowed.replaced.insert(name.clone(), text.map(str::to_owned));
                }
            }
            borrowed.holders.push(Holder::new(terminal, entries.clone()));
            Ok(borrowed)
        })?;
        warnings.extend(told);
        Ok(warnings)
    }

    fn has_put(&self, name: &str, entry: &Value) -> bool {
        self.holders.iter().any(|holder| holder.content.get(name) == Some(entry))
    }

    fn wanted(&self, name: &str, stays: &dyn Fn(&Held) -> bool) -> Option<&Value> {
        self.holders.iter().rev().filter(|holder| stays(holder)).find_map(|holder| holder.content.get(name))
    }

    fn edit(&mut self, document: &mut Document, stays: &dyn Fn(&Held) -> bool) -> Result<(), NotEdited> {
        let names: Vec<String> = self.replaced.keys().cloned().collect();
        for name in names {
            let now = document.entry_value(KEY, &name);
            let users = self.replaced.get(&name).cloned().flatten();
            let is_ours = now.as_ref().is_some_and(|now| self.has_put(&name, now));
            let is_as_before = document.entry(KEY, &name) == users.as_deref();
            match self.wanted(&name, stays) {
                Some(wanted) if now.as_ref() == Some(wanted) => {}
                // Somebody else's change of the entry meanwhile stays.
                Some(wanted) if is_ours || is_as_before => document.set(KEY, &name, wanted)?,
                Some(_) => {}
                None => {
                    match users {
                        Some(text) if is_ours => document.set_text(KEY, &name, &text)?,
                        None if is_ours => document.remove(KEY, &name)?,
                        _ => {}
                    }
                    self.replaced.remove(&name);
                }
            }
        }
        if self.replaced.is_empty() && self.made_key {
            document.remove_if_empty(KEY)?;
        }
        Ok(())
    }
}

impl From<Servers> for BorrowedKind {
    fn from(borrowed: Servers) -> Self {
        BorrowedKind::Servers(borrowed)
    }
}

impl Restorable for Servers {
    type Content = Map<String, Value>;

    fn of(kind: BorrowedKind) -> Option<Self> {
        match kind {
            BorrowedKind::Servers(borrowed) => Some(borrowed),
            BorrowedKind::Context(_) => None,
        }
    }

    fn holders(&mut self) -> &mut Vec<Held> {
        &mut self.holders
    }

    fn settle(
        &mut self,
        target: &Path,
        leaving: &dyn Fn(&Held) -> bool,
        _warnings: &mut Vec<String>,
    ) -> io::Result<()> {
        let stays = |holder: &Holder<_>| !leaving(holder);
        let anybody = self.holders.iter().any(stays);
        let mut document = match open(target)? {
            Some(document) => document,
            // Whoever removed it meanwhile wanted it so.
            None if !anybody => return Ok(()),
            None => new_document()?,
        };
        let before = document.text().to_owned();
        self.edit(&mut document, &stays).map_err(|problem| failed(target, problem))?;
        if self.made_file && self.replaced.is_empty() && document.is_bare() {
            return fs::remove_file(target);
        }
        match document.text() == before && target.exists() {
            true => Ok(()),
            false => files::replace(target, document.text().as_bytes(), 0o600),
        }
    }
}

fn open(path: &Path) -> io::Result<Option<Document>> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| io::Error::other("the settings are not UTF-8"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Document::new(text).map(Some).map_err(|problem| failed(path, problem))
}

fn new_document() -> io::Result<Document> {
    Document::new("{\n}\n".to_owned()).map_err(|problem| failed(Path::new("settings.json"), problem))
}

fn failed(path: &Path, problem: NotEdited) -> io::Error {
    match problem {
        NotEdited::Text(problem) => io::Error::other(SettingsError { path: path.to_owned(), problem }),
        NotEdited::NotAnObject(key) => {
            io::Error::other(format!("{key} in {} is not an object", path.display()))
        }
    }
}

/// A list of allowed servers would keep the terminal's out; it is the user's, so it is only said.
fn shut_out(document: &Document, entries: &Map<String, Value>) -> Vec<String> {
    let names =
        |key: &str| -> Option<Vec<String>> { serde_json::from_value(document.entry_value("mcp", key)?).ok() };
    let (allowed, excluded) = (names("allowed"), names("excluded").unwrap_or_default());
    let shut = |name: &&String| {
        allowed.as_ref().is_some_and(|allowed| !allowed.contains(name)) || excluded.contains(name)
    };
    let shut = entries.keys().filter(shut);
    shut.map(|name| {
        format!("The MCP server {name} is kept out by mcp.allowed or mcp.excluded in the settings")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_process_learns_which_terminal_it_serves_and_keeps_its_own_values() {
        // D-33
        let mut own = McpServer::process("own", "serve", ["x"]);
        if let Transport::Process { env, .. } = &mut own.transport {
            env.extend([("TOKEN".to_owned(), "a=b==".to_owned()), ("EMPTY".to_owned(), String::new())]);
        }
        let url = McpServer::parse("web=https://127.0.0.1/mcp").unwrap();
        let mut fixed = McpServer::process("fixed", "serve", ["x"]);
        if let Transport::Process { env, .. } = &mut fixed.transport {
            env.insert(CAO_TERMINAL_ID.to_owned(), "mine".to_owned());
        }
        let servers = for_terminal(&[own, url.clone(), fixed.clone()], "t-1");
        let Transport::Process { env, .. } = &servers[0].transport else { panic!() };
        let expected = [("CAO_TERMINAL_ID", "t-1"), ("EMPTY", ""), ("TOKEN", "a=b==")];
        let expected: BTreeMap<_, _> = expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(*env, expected);
        assert_eq!(servers[1..], [url, fixed]);
    }
}
