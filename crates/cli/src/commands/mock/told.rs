//! What a server tells of itself: its address, its scenarios, and the variables that Gemini CLI needs.

use std::io;
use std::path::Path;

use alhena_agent::env::{self, Environment};
use alhena_sys::processes::Process;
use alhena_wire::display::is_unsafe;
use serde::{Deserialize, Serialize};

use super::Args;
use crate::offline::IN_THE_WAY;
use crate::output::{write, write_json};

/// Gemini CLI wants some key.
pub const KEY: &str = "mock";

/// What is exported, by `--env` and by hand.
const EXPORTED: [&str; 5] = [
    env::GOOGLE_GEMINI_BASE_URL,
    env::GEMINI_API_KEY,
    env::GEMINI_CLI_HOME,
    env::GEMINI_CLI_TRUST_WORKSPACE,
    env::ALHENA_MOCK,
];

/// A server and the shell that it is for, as `ALHENA_MOCK` names them.
#[derive(Clone, Copy)]
pub struct InShell {
    pub server: Process,
    pub shell: Option<u32>,
}

impl InShell {
    /// What the environment names.
    pub fn named() -> Option<Self> {
        let named = std::env::var(env::ALHENA_MOCK).ok()?;
        let mut numbers = named.split(':');
        let server = Process { pid: numbers.next()?.parse().ok()?, started: numbers.next()?.parse().ok()? };
        Some(Self { server, shell: numbers.next().and_then(|shell| shell.parse().ok()) })
    }
}

impl std::fmt::Display for InShell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.server.pid, self.server.started)?;
        self.shell.map_or(Ok(()), |shell| write!(f, ":{shell}"))
    }
}

/// As one line of JSON for programs.
#[derive(Serialize, Deserialize)]
pub struct Told {
    pub address: String,
    pub scenarios: Vec<Served>,
    pub env: Vec<Variable>,
    /// Variables that are set and would send the CLI elsewhere.
    pub unset: Vec<String>,
    pub pid: u32,
    /// What the shell has to remember, so that it can have it back; none where it remembers already.
    #[serde(skip)]
    remembered: Option<Vec<&'static str>>,
}

#[derive(Serialize, Deserialize)]
pub struct Served {
    pub name: String,
    pub url: String,
}

#[derive(Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

impl Told {
    pub fn new(
        address: &str,
        served: Vec<(String, String)>,
        home: &Path,
        key: Option<&str>,
        args: &Args,
        environment: &Environment,
    ) -> Self {
        let own = Process::own().map(|own| InShell { server: own, shell: args.pid }.to_string());
        let values = [
            Some(address.to_owned()),
            key.map(str::to_owned),
            Some(home.to_string_lossy().into_owned()),
            args.trust.then(|| "true".to_owned()),
            own,
        ];
        let variables = EXPORTED
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some(Variable { name: name.to_owned(), value: value? }));
        let in_the_way = IN_THE_WAY.into_iter().filter(|name| environment.filled(name).is_some());
        Self {
            address: address.to_owned(),
            scenarios: served.into_iter().map(|(name, url)| Served { name, url }).collect(),
            env: variables.collect(),
            unset: in_the_way.map(str::to_owned).collect(),
            pid: std::process::id(),
            remembered: None,
        }
    }

    /// Lets the shell remember what it has had until now. Its variables for that are its own: programs that it starts do not get them.
    pub fn remember(&mut self, environment: &Environment) {
        let had = changed().filter(|name| environment.get(name).is_some());
        self.remembered = Some(had.collect());
    }

    /// Unsets what an earlier server has set and this one does not.
    pub fn in_place_of_another(&mut self) {
        let own = |name: &&str| self.env.iter().any(|variable| variable.name == *name);
        let left = EXPORTED.into_iter().filter(|name| !own(name)).map(str::to_owned);
        self.unset.extend(left.collect::<Vec<_>>());
    }

    /// The address, and behind it the rest in shell; or all of it as JSON.
    pub fn print(&self, json: bool) -> io::Result<()> {
        match json {
            true => self.print_json(),
            false => write(|out| write!(out, "{}\n{}", self.address, self.shell())),
        }
    }

    pub fn print_json(&self) -> io::Result<()> {
        write_json(|out| {
            serde_json::to_writer(&mut *out, self)?;
            out.write_all(b"\n")
        })
    }

    /// What a shell has to do.
    pub fn shell(&self) -> String {
        let exports =
            self.env.iter().map(|Variable { name, value }| format!("export {name}={}\n", quoted(value)));
        let unset = self.unset.iter().map(|name| format!("unset {name}\n"));
        let served =
            self.scenarios.iter().map(|served| format!("# {}: {}\n", plain(&served.name), served.url));
        self.memory().chain(exports).chain(unset).chain(served).collect()
    }

    fn memory(&self) -> impl Iterator<Item = String> {
        let names = self.remembered.iter().flat_map(|_| changed());
        names.map(|name| match self.remembered.iter().flatten().any(|had| *had == name) {
            true => format!("{MEMORY}{name}=\"${name}\"\n"),
            // A subshell has the memory of the one around it.
            false => format!("unset {MEMORY}{name}\n"),
        })
    }
}

/// Begins the names of the variables in which a shell remembers what others were.
const MEMORY: &str = "alhena_had_";

/// What a server may change in a shell.
fn changed() -> impl Iterator<Item = &'static str> {
    EXPORTED.into_iter().chain(IN_THE_WAY)
}

/// What takes all that back: what was there before is there again.
pub fn restored() -> String {
    let restored = changed().map(|name| {
        let otherwise = if EXPORTED.contains(&name) { format!("else unset {name}; ") } else { String::new() };
        format!(
            "if [ \"${{{MEMORY}{name}+set}}\" ]; then export {name}=\"${MEMORY}{name}\"; unset {MEMORY}{name}; {otherwise}fi\n"
        )
    });
    restored.collect()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A comment ends with its line.
fn plain(name: &str) -> String {
    name.chars().map(|c| if is_unsafe(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_word_as_it_is() {
        assert_eq!(quoted("/a b/$c'd"), r"'/a b/$c'\''d'");
        assert_eq!(plain("a\nrm -rf x"), "a?rm -rf x");
    }
}
