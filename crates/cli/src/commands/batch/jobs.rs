//! The jobs of a batch: from a file or a stream, with what the command line says of all of them, or all that is wrong with them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_batch::job::Fields;
use alhena_batch::launcher::Launcher;
use alhena_batch::schedule::Control;
use alhena_batch::supply::{Complaint, Format, Setting, Supply, Template, Unusable, value_of_text};
use alhena_sys::files;

use super::{Work, Written};
use crate::command_error::CommandError;

/// So many of the things that are wrong are told one by one.
pub const MOST_TOLD: usize = 50;

/// What all jobs have in common, as the command line says it.
pub fn setting(args: &Work, launcher: Arc<dyn Launcher>) -> Result<Setting, CommandError> {
    let ending = args.jobs().extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
    let format = match (args.format, ending.as_deref()) {
        (Some(Written::Csv), _) | (None, Some("csv")) => Format::Table(b','),
        (Some(Written::Tsv), _) | (None, Some("tsv")) => Format::Table(b'\t'),
        (Some(Written::Jsonl), _) | (None, _) => Format::Lines,
    };
    let mut defaults = Fields::new();
    for default in &args.defaults {
        let (name, text) = default.split_once('=').ok_or_else(|| {
            CommandError::usage(format!("--set {default} has no value"), "Write --set NAME=VALUE.")
        })?;
        let name = name.trim().trim_start_matches('-').replace('-', "_");
        if name == "id" {
            return Err(CommandError::usage("--set id would give all jobs the same id", "Leave it out."));
        }
        defaults.insert(name.clone(), value_of_text(&name, text));
    }
    let template = args.template.as_deref().map(Template::parse).transpose();
    let template = template.map_err(|fault| CommandError::usage(fault.to_string(), fault.fix))?;
    Ok(Setting { format, defaults, template, launcher, travels: args.nats.is_some() })
}

/// The jobs: of a file all, of anything else as they come.
pub fn supply(path: &Path, setting: Setting, control: &Control) -> Result<Supply, CommandError> {
    let unreadable = |error: io::Error| {
        CommandError::usage(
            format!("{}: {error}", path.display()),
            "Give a file with jobs, or `-` for stdin.",
        )
    };
    let wakes = control.clone();
    if path.as_os_str() == "-" {
        return Supply::of_stream(io::stdin(), setting, move || wakes.wake()).map_err(unreadable);
    }
    let kind = path.metadata().map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        files::may_read(path).map_err(unreadable)?;
        let pipe = Later { path: path.to_owned(), file: None };
        return Supply::of_stream(pipe, setting, move || wakes.wake()).map_err(unreadable);
    }
    match Supply::of_file(path, setting) {
        Ok(supply) if supply.entries().is_empty() => Err(CommandError::usage(
            format!("there are no jobs in {}", path.display()),
            "A job is one JSON object on one line, such as {\"prompt\": \"Say hi\"}.",
        )),
        Ok(supply) => Ok(supply),
        Err(Unusable::Io(error)) => Err(unreadable(error)),
        Err(Unusable::Wrong(complaints)) => Err(wrong_jobs(path, &complaints)),
    }
}

/// A pipe, opened by whoever reads it first: that may wait for ever for somebody who writes.
struct Later {
    path: PathBuf,
    file: Option<File>,
}

impl Read for Later {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(File::open(&self.path)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.read(buffer))
    }
}

/// All that is wrong, each with its line.
fn wrong_jobs(path: &Path, complaints: &[Complaint]) -> CommandError {
    let path = path.display();
    let told =
        complaints.iter().take(MOST_TOLD).map(|Complaint { line, fault }| match fault.fix.is_empty() {
            true => format!("{path}:{line}: {fault}"),
            false => format!("{path}:{line}: {fault}. {}", fault.fix),
        });
    let mut lines: Vec<String> = told.collect();
    if complaints.len() > MOST_TOLD {
        lines.push(format!("and {} more", complaints.len() - MOST_TOLD));
    }
    let message = format!("nothing was run:\n  {}", lines.join("\n  "));
    CommandError::usage(message, "`alhena help batch` says what a job can be.").quoting()
}
