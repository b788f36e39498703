//! MCP servers of a terminal.
//!
//! By default they are in the settings of the terminal's own home, which no other run sees. On request they go into the
//! user's settings and come out again when the terminal ends ([`Servers`]). Either way a server learns
//! which terminal it serves: Gemini CLI 0.61.0 passes `env` of an entry on to the process that it starts.

use alhena_agent::home::{McpServer, Transport};
use alhena_model::options::BadValue;

pub use self::user::Servers;

mod jsonc;
pub(crate) mod start;
pub(crate) mod user;

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
