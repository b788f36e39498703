//! One JSON line per start about how the stand-in was started, so that a test can compare what the launcher built.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use alhena_testbed::stand_in::{Start, StdinSeen};

pub fn append(path: &Path, stdin: Option<&[u8]>) -> Result<(), String> {
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
