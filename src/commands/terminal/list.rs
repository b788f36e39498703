//! `alhena terminal list`.

use std::process::ExitCode;

use alhena::terminal::screen::Status;
use alhena::terminal::{TerminalError, Terminals, status_name};

use super::Described;
use crate::output::{print, print_json};

/// List the terminals and what their agents do; of those that have gone, why, and how to go on.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn execute(terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let (mut rows, mut gone) = (Vec::new(), Vec::new());
    for terminal in terminals.list()? {
        // Somebody may end one meanwhile.
        if let (Ok(reading), Ok(record)) = (terminal.glance(), terminal.record()) {
            gone.push(
                (reading.status == Status::Exited).then(|| super::farewell(&terminal, record.ended.as_ref())),
            );
            rows.push(Described { record, reading });
        }
    }
    if json {
        return Ok(print_json(&rows));
    }
    if rows.is_empty() {
        return Ok(print("There are no terminals."));
    }
    let width = rows.iter().map(|row| row.record.name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows
        .iter()
        .zip(&gone)
        .map(|(row, gone)| {
            let (name, status) = (&row.record.name, status_name(row.reading.status));
            let line =
                format!("{name:<width$}  {}  {status:<10}  {}", row.record.id, row.record.dir.display());
            match gone {
                Some(farewell) => format!("{line}\n{:width$}  {farewell}", ""),
                None => line,
            }
        })
        .collect();
    Ok(print(&super::shown(&lines.join("\n"))))
}
