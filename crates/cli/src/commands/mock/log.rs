//! The requests, as they come: a line each.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use alhena_scripted::Observed;
use alhena_sys::files;
use parking_lot::Mutex;

use crate::command_error::CommandError;
use crate::output::say;

/// So much of a prompt is shown.
const SHOWN: usize = 60;

/// Where the lines go.
pub enum Log {
    Stderr,
    File(Mutex<File>),
}

/// The log that was asked for; none where nobody wants one.
pub fn open(path: Option<&Path>, silent: bool) -> Result<Option<Log>, CommandError> {
    let Some(path) = path else { return Ok((!silent).then_some(Log::Stderr)) };
    let file = files::private(File::options().create(true).append(true)).open(path).map_err(|error| {
        CommandError::failed(format!("{}: {error}", path.display()), "Give a file that can be written to.")
    })?;
    Ok(Some(Log::File(Mutex::new(file))))
}

impl Log {
    pub fn tell(&self, seen: &Observed<'_>) {
        let line = line(seen);
        match self {
            Log::Stderr => say(line),
            Log::File(file) => {
                let mut file = file.lock();
                let _full = file.write_all(format!("{line}\n").as_bytes());
            }
        }
    }
}

fn line(seen: &Observed<'_>) -> String {
    match seen {
        Observed::Request { scenario, request } => {
            let run = if request.run.is_empty() { String::new() } else { format!("/{}", request.run) };
            let results: Vec<&str> = request.responses().map(|(tool, _)| tool).collect();
            let brings = match (results.is_empty(), request.prompt()) {
                (false, _) => format!("with the results of {}", results.join(", ")),
                (true, Some(prompt)) => format!("{:?}", beginning(prompt)),
                (true, None) => String::new(),
            };
            let (number, action, model) = (request.number, &request.action, &request.model);
            format!("{scenario}{run}: {action} {number} of {model} {brings}").trim_end().to_owned()
        }
        Observed::Passed { path, status } => format!("passed on: {path}: {status}"),
        Observed::Refused { status, reason } => format!("refused: {status} {reason}"),
        _ => String::new(),
    }
}

fn beginning(prompt: &str) -> String {
    let line = prompt.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}
