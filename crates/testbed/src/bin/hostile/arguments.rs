//! How the stand-in was started: the few of the CLI's arguments that show in its output, and the dump of everything.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use alhena_testbed::stand_in::{Start, StdinSeen};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    pub version: bool,
    /// `--prompt` or `-p`, joined to stdin as the CLI does it.
    pub prompt: String,
    pub model: Option<String>,
    pub session_id: Option<String>,
}

impl Arguments {
    pub fn of_this_process() -> Self {
        Self::read(std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()))
    }

    fn read(arguments: impl Iterator<Item = String>) -> Self {
        let mut found = Self::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let mut value = || inline.clone().or_else(|| arguments.next());
            match name.as_str() {
                "--version" | "-v" => found.version = true,
                "--prompt" | "-p" => found.prompt = value().unwrap_or_default(),
                "--model" | "-m" => found.model = value(),
                "--session-id" | "--resume" | "-r" => found.session_id = value(),
                _ => {}
            }
        }
        found
    }

    /// The prompt as the CLI sends it: stdin, a blank line, the prompt of the command line.
    pub fn with_stdin(mut self, stdin: &[u8]) -> Self {
        let stdin = String::from_utf8_lossy(stdin);
        self.prompt = match (stdin.is_empty(), self.prompt.is_empty()) {
            (true, _) => self.prompt,
            (false, true) => stdin.into_owned(),
            (false, false) => format!("{stdin}\n\n{}", self.prompt),
        };
        self
    }
}

/// Writes one JSON line about how the stand-in was started, so that a test can compare what the launcher built.
pub fn dump(path: &Path, stdin: Option<&[u8]>) -> Result<(), String> {
    let start = Start {
        argv: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        env: std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect(),
        cwd: std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        pid: std::process::id(),
        stdin: stdin.map(StdinSeen::of),
    };
    let mut line = serde_json::to_vec(&start).map_err(|error| error.to_string())?;
    line.push(b'\n');
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    file.write_all(&line).map_err(|error| format!("{}: {error}", path.display()))
}
