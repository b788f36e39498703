//! `alhena capabilities`: what the found release can do, from the version table.

use std::path::PathBuf;

use alhena_agent::supervise::custody;
use alhena_agent::{FastStart, Finder, NotFound, env::Environment};
use alhena_sys::processes;
use alhena_wire::release::{TABLE, Version};
use serde_json::{Map, Value, json};

use crate::command_error::{CommandError, Done};
use crate::output::{print, print_json};

/// List what the found Gemini CLI can do, by its version.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The Gemini CLI to look at: a path, a command on PATH, or the version of one of Alhena's own installs.
    #[arg(long, value_name = "PATH|VERSION")]
    gemini: Option<PathBuf>,
    /// Ask for a version instead of the one that is installed.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn execute(args: Args) -> Done {
    let (version, fast) = which(&args)?;
    if args.json {
        return Ok(print_json(&described(&version, fast)));
    }
    let keeper = custody::keeper_program(&Environment::of_process());
    let mut text = format!("Gemini CLI {version}\n");
    for row in TABLE {
        let mark = if version.has(row.feature) { "yes" } else { "no " };
        text.push_str(&format!("  {mark}  {:<26} {}\n", row.name, row.text));
    }
    let start = match &fast {
        Some(fast) => format!("one process, {}", fast.node.display()),
        None => "by its own launcher".to_owned(),
    };
    let keeper = keeper
        .map_or("none: processes that hide can outlive a run".to_owned(), |path| path.display().to_string());
    text.push_str(&format!("Alhena here\n  start   {start}\n  keeper  {keeper}"));
    Ok(print(&text))
}

/// The same for whoever asks over a wire.
pub fn told() -> Result<Value, NotFound> {
    let gemini = Finder::new().find()?;
    let fast = gemini.fast_start(&Environment::of_process(), &Value::Null);
    Ok(described(&gemini.version, fast))
}

fn described(version: &Version, fast: Option<FastStart>) -> Value {
    let features: Map<String, Value> =
        TABLE.iter().map(|row| (row.name.to_owned(), Value::Bool(version.has(row.feature)))).collect();
    json!({
        "version": version.to_string(),
        "features": features,
        "fast_start": fast,
        "keeper": custody::keeper_program(&Environment::of_process()),
        "every_process_is_found": processes::COMPLETE,
    })
}

fn which(args: &Args) -> Result<(Version, Option<FastStart>), CommandError> {
    if let Some(text) = &args.version {
        let version = text.parse();
        let refused = |_| CommandError::usage(format!("{text:?} is no version"), "Write it as 0.61.0.");
        return version.map(|version| (version, None)).map_err(refused);
    }
    let mut finder = Finder::new();
    if let Some(path) = &args.gemini {
        finder = finder.path(path);
    }
    let gemini = finder.find()?;
    let fast = gemini.fast_start(&Environment::of_process(), &Value::Null);
    Ok((gemini.version, fast))
}
