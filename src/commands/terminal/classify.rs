//! `alhena terminal classify`: what a captured screen of the interactive CLI says.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use alhena::terminal::screen::Capture;

use crate::commands::complain;
use crate::output::{print, print_json};

/// Tell what a captured screen shows: its status, the last answer, an error, what it waits for.
///
/// Reads what `tmux capture-pane -p` printed, with or without escapes (-e). Prints JSON.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The capture; stdin by default.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// The pane's title: it tells more than the screen.
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// How wide the pane is, so that wrapped lines can be joined.
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<u16>,
    /// Print only the last answer, as text.
    #[arg(long, conflicts_with = "turns")]
    last: bool,
    /// Print all turns that can be seen.
    #[arg(long)]
    turns: bool,
}

pub fn execute(args: Args) -> ExitCode {
    let bytes = match read(&args.file) {
        Ok(bytes) => bytes,
        Err(error) => {
            complain(
                &format_args!("{}: {error}", args.file.display()),
                "Give a file that can be read, or pipe it in.",
            );
            return ExitCode::from(2);
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut capture = Capture::new(&text);
    if let Some(title) = &args.title {
        capture = capture.title(title);
    }
    if let Some(columns) = args.columns {
        capture = capture.columns(columns);
    }
    if args.turns {
        return print_json(&capture.turns());
    }
    if !args.last {
        return print_json(&capture.read());
    }
    match capture.last_answer() {
        Ok(answer) => print(&answer),
        Err(error) => {
            complain(&error, "");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path.as_os_str() == "-" {
        true => io::stdin().lock().read_to_end(&mut bytes)?,
        false => std::fs::File::open(path)?.read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}
