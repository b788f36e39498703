//! `alhena detect`: which Gemini CLI would be run, and where it was found.

use std::path::PathBuf;
use std::process::ExitCode;

use alhena::wire::release::{NEWEST_KNOWN, OLDEST_SUPPORTED};
use alhena::{Failure, FailureKind, Finder, NotFound, RunError};
use serde_json::json;

use super::complain;
use crate::output::{print, print_json};

/// Tell which Gemini CLI would be run, and its version.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Gemini CLI to look at.
    #[arg(long, value_name = "PATH")]
    gemini: Option<PathBuf>,
    /// List every one that can be found, the one that would be run first.
    #[arg(long)]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The failure of a run that has no CLI.
pub fn not_found(error: &NotFound) -> RunError {
    RunError::Failed(Box::new(
        Failure::new(FailureKind::NotInstalled, error.to_string()).with_hint(error.hint()),
    ))
}

pub fn execute(args: Args) -> ExitCode {
    let mut finder = Finder::new();
    if let Some(path) = args.gemini {
        finder = finder.path(path);
    }
    let found = match args.all {
        true => Ok(finder.find_all().0).and_then(|all| match all.is_empty() {
            true => finder.find().map(|gemini| vec![gemini]),
            false => Ok(all),
        }),
        false => finder.find().map(|gemini| vec![gemini]),
    };
    match found {
        Ok(all) if args.json && args.all => print_json(&all),
        Ok(all) if args.json => all.first().map_or(ExitCode::FAILURE, print_json),
        Ok(all) => {
            let lines: Vec<String> = all
                .iter()
                .map(|gemini| {
                    let known = match &gemini.version {
                        version if *version > NEWEST_KNOWN => {
                            format!(", newer than {NEWEST_KNOWN}, the newest known")
                        }
                        version if *version < OLDEST_SUPPORTED => ", too old to be driven".to_owned(),
                        _ => String::new(),
                    };
                    format!("{} {} ({}{known})", gemini.path.display(), gemini.version, place(gemini))
                })
                .collect();
            print(&lines.join("\n"))
        }
        Err(error) => {
            if args.json {
                let said = json!({ "message": error.to_string(), "hint": error.hint() });
                print_json(&json!({ "found": false, "tried": error.tried, "error": said }));
            } else {
                complain(&error, &error.hint());
            }
            ExitCode::from(3)
        }
    }
}

fn place(gemini: &alhena::Gemini) -> String {
    serde_json::to_value(gemini.place)
        .ok()
        .and_then(|place| place.as_str().map(|place| place.replace('_', " ")))
        .unwrap_or_default()
}
