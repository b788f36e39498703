//! `alhena detect`: which Gemini CLI would be run, and where it was found.

use std::path::PathBuf;
use std::process::ExitCode;

use alhena_agent::env::Environment;
use alhena_agent::{Finder, Gemini, NotFound, RunError};
use alhena_model::{Failure, FailureKind, Hint};
use alhena_wire::release::{NEWEST_KNOWN, OLDEST_SUPPORTED};
use serde_json::{Value, json};

use super::check_directory;
use super::options::{Given, OfDetect};
use crate::command_error::{CommandError, Done};
use crate::config::Config;
use crate::output::{print, print_json, say};

/// Tell which Gemini CLI would be run, and its version.
///
/// Looked at in this order: --gemini, GEMINI_CLI_PATH, the project's own in node_modules/.bin here and above, PATH, the
/// places of package managers, Alhena's own installs.
///
/// The project's own is used only if Gemini's own trust covers its folder, or with --trust=settings (or that in your
/// configuration), and never if somebody else than you and root could have put it there. Relative entries of PATH are never used. What was there and
/// not used is said on stderr, and is not run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Gemini CLI to look at: a path, a command on PATH, or the version of one of Alhena's own installs.
    #[arg(long, value_name = "PATH|VERSION")]
    gemini: Option<PathBuf>,
    /// Look from this directory.
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    given: Given<OfDetect>,
    /// List every one that can be found, the one that would be run first.
    #[arg(long)]
    all: bool,
    /// Also list every place that has none.
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The failure of a run that has no CLI.
pub fn not_found(error: &NotFound) -> RunError {
    RunError::Failed(Box::new(
        Failure::new(error.kind(), error.to_string()).with_hint(error.hint().unwrap_or_default()),
    ))
}

pub fn execute(args: Args) -> Done {
    check_directory(&args.dir)?;
    let said = args.given.options.trust;
    let no_config = args.given.options.no_config;
    let config = Config::of_run(&args.dir, said, no_config, &Environment::of_process())?;
    let trust = said.or(config.options.trust).unwrap_or_default();
    let mut finder = Finder::new().dir(&args.dir).trust(trust);
    if let Some(path) = args.gemini {
        finder = finder.path(path);
    }
    let (found, mut tried) = match args.all {
        true => finder.find_all(),
        false => {
            let (found, tried) = finder.find_first();
            (Vec::from_iter(found), tried)
        }
    };
    if found.is_empty() {
        let error = NotFound { tried };
        if args.json {
            let said = json!({ "message": error.to_string(), "hint": error.hint() });
            print_json(&json!({ "found": false, "tried": error.tried, "error": said }));
            return Ok(ExitCode::from(FailureKind::NotInstalled.exit_status()));
        }
        return Err(match args.verbose {
            true => {
                let hint = error.hint().unwrap_or_default();
                CommandError::failed(error.in_full(), hint).exit(FailureKind::NotInstalled.exit_status())
            }
            false => error.into(),
        });
    }
    tried.retain(|tried| args.verbose || tried.is_worth_telling());
    if args.json {
        return Ok(match (args.all, found.first().map(serde_json::to_value)) {
            (false, Some(Ok(Value::Object(mut first)))) => {
                first.insert("passed_over".to_owned(), json!(tried));
                print_json(&first)
            }
            _ => print_json(&json!({ "found": found, "passed_over": tried })),
        });
    }
    for tried in tried {
        say(format_args!("passed over: {tried}"));
    }
    Ok(print(&found.iter().map(line).collect::<Vec<_>>().join("\n")))
}

fn line(gemini: &Gemini) -> String {
    let known = match &gemini.version {
        version if *version > NEWEST_KNOWN => format!(", newer than {NEWEST_KNOWN}, the newest known"),
        version if *version < OLDEST_SUPPORTED => ", too old to be driven".to_owned(),
        _ => String::new(),
    };
    format!("{} {} ({}{known})", gemini.path.display(), gemini.version, place(gemini))
}

fn place(gemini: &Gemini) -> String {
    serde_json::to_value(gemini.place)
        .ok()
        .and_then(|place| place.as_str().map(|place| place.replace('_', " ")))
        .unwrap_or_default()
}
