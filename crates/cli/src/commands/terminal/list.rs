//! `alhena terminal list`.

use std::process::ExitCode;

use alhena_terminal::{Described, Listed, Terminal, TerminalError, Terminals, status_name};

use super::farewell;
use crate::output::{print, print_json};

/// List the terminals and what their agents do; of those that have gone, why, and how to go on.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn execute(terminals: &Terminals, json: bool) -> Result<ExitCode, TerminalError> {
    let rows = terminals.listed()?;
    if json {
        let rows: Vec<Listed> = rows.into_iter().map(|(_, row)| row).collect();
        return Ok(print_json(&rows));
    }
    if rows.is_empty() {
        return Ok(print("There are no terminals."));
    }
    let width = rows.iter().map(|(terminal, _)| terminal.name().len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(terminal, row)| line(terminal, row, width)).collect();
    Ok(print(&super::shown(&lines.join("\n"))))
}

fn line(terminal: &Terminal, row: &Listed, width: usize) -> String {
    let Described { record, reading } = &row.described;
    let (name, status) = (&record.name, status_name(reading.status));
    let line = format!("{name:<width$}  {}  {status:<10}  {}", record.id, record.dir.display());
    match &row.why {
        Some(why) => {
            let farewell = farewell(terminal, why, row.session_id.as_deref());
            format!("{line}\n{:width$}  {farewell}", "")
        }
        None => line,
    }
}
