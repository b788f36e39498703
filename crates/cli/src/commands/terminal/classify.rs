//! `alhena terminal classify`: what a captured screen of the interactive CLI says.

use std::io::{self, Read};
use std::path::PathBuf;

use alhena_agent::env::Environment;
use alhena_model::Timestamp;
use alhena_terminal::Hosted;
use alhena_terminal::screen::Capture;

use crate::command_error::{CommandError, Done};
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
    /// The agent, by the id that `here` was given: what its screen cannot tell is taken from its session.
    #[arg(long, value_name = "ID", conflicts_with = "turns")]
    here: Option<String>,
    /// When something was sent to it, in milliseconds since 1970: it is work until its turn has ended.
    #[arg(long, value_name = "MS", requires = "here")]
    since: Option<i64>,
}

pub fn execute(args: Args) -> Done {
    let bytes = read(&args.file).map_err(|error| {
        CommandError::usage(
            format!("{}: {error}", args.file.display()),
            "Give a file that can be read, or pipe it in.",
        )
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let mut capture = Capture::new(&text);
    if let Some(title) = &args.title {
        capture = capture.title(title);
    }
    if let Some(columns) = args.columns {
        capture = capture.columns(columns);
    }
    if args.turns {
        return Ok(print_json(&capture.turns()));
    }
    let hosted = args.here.as_deref().map(|id| Hosted::find(id, &Environment::of_process()));
    let hosted = hosted.transpose()?;
    let since = args.since.map(Timestamp::from_millis);
    if !args.last {
        let reading = hosted.map_or_else(|| capture.read(), |hosted| hosted.read(&capture, since));
        return Ok(print_json(&reading));
    }
    let from_session = hosted.and_then(|hosted| hosted.last_answer(since));
    let answer = from_session.map(|answer| answer.map_err(|error| error.message));
    let answer = answer.unwrap_or_else(|| capture.last_answer().map_err(|error| error.to_string()));
    Ok(print(&answer.map_err(|error| CommandError::failed(error, ""))?))
}

fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path.as_os_str() == "-" {
        true => io::stdin().lock().read_to_end(&mut bytes)?,
        false => std::fs::File::open(path)?.read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}
