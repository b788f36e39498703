//! `alhena host`: what one host needs beyond a view.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alhena_hosts::{agent_cli_sdk, aiwf, promptfoo};
use alhena_sys::files;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::command_error::{CommandError, Done};
use crate::output::{print, print_json, say};

/// What the hosts need: their metadata, checks of their configuration, the drop-in.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the hosts and how each can use Alhena.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a host's metadata: aiwf or agent-cli-sdk.
    Metadata {
        /// The host.
        name: String,
    },
    /// Check a host's configuration, given as JSON: aiwf or promptfoo.
    Validate {
        /// The host.
        name: String,
        /// The configuration.
        config: String,
    },
    /// Put a `gemini` that is Alhena into a directory; put that directory first on PATH.
    InstallDropin {
        /// The directory.
        dir: PathBuf,
    },
    /// Run a release of Gemini CLI that has no stream, and pass on what it says: for adapters.
    #[command(hide = true)]
    Report(super::report::Args),
}

/// Name, view, adapter.
const HOSTS: &[(&str, &str, &str)] = &[
    ("aiwf", "--as aiwf", "hosts/aiwf (Python)"),
    ("agent-cli-sdk", "--as agent-cli-sdk, --as agent-cli-sdk-lines", "hosts/agent-cli-sdk (TypeScript)"),
    ("openase", "--as openase, --as openase-ticket", "hosts/openase (Go)"),
    ("promptfoo", "--as promptfoo", "hosts/promptfoo (TypeScript)"),
    ("claude-agent-sdk", "alhena claude", "a link called claude: hosts/claude-agent-sdk"),
    ("cao", "alhena terminal here, classify", "hosts/cao (Python)"),
];

pub fn execute(args: Args) -> Done {
    Ok(match args.command {
        Command::List { json } => list(json),
        Command::Metadata { name } => match name.as_str() {
            "aiwf" => print_json(&aiwf::metadata()),
            "agent-cli-sdk" => {
                let cli = alhena_agent::Gemini::find()
                    .ok()
                    .map(|gemini| gemini.path.to_string_lossy().into_owned());
                print_json(&agent_cli_sdk::capabilities(cli.as_deref()))
            }
            _ => return Err(unknown(&name)),
        },
        Command::Validate { name, config } => match name.as_str() {
            "aiwf" => validate(&config, aiwf::validate)?,
            "promptfoo" => validate(&config, promptfoo::validate)?,
            _ => return Err(unknown(&name)),
        },
        Command::Report(args) => super::report::execute(args)?,
        Command::InstallDropin { dir } => {
            let link = install(&dir).map_err(|error| {
                CommandError::failed(
                    error,
                    "Give a directory that can be written to and has no other program gemini in it.",
                )
            })?;
            print(&format!("{} is Alhena now; put {} first on PATH", link.display(), dir.display()))
        }
    })
}

fn list(as_json: bool) -> ExitCode {
    if as_json {
        let rows: Vec<Value> = HOSTS
            .iter()
            .map(|(name, view, adapter)| json!({ "name": name, "view": view, "adapter": adapter }))
            .collect();
        return print_json(&rows);
    }
    let rows: Vec<String> =
        HOSTS.iter().map(|(name, view, adapter)| format!("{name:<16} {view:<44} {adapter}")).collect();
    print(&rows.join("\n"))
}

fn unknown(name: &str) -> CommandError {
    CommandError::usage(format!("nothing of the kind for {name:?}"), "`alhena host list` names the hosts.")
}

fn validate(config: &str, check: impl Fn(&Value) -> Result<Vec<String>, String>) -> Done {
    let config: Value = serde_json::from_str(config).map_err(|error| {
        CommandError::usage(format!("the configuration is not JSON: {error}"), "Give one JSON object.")
    })?;
    let warnings = check(&config).map_err(|message| CommandError::failed(message, ""))?;
    warnings.iter().for_each(|warning| say(format_args!("warning: {warning}")));
    Ok(ExitCode::SUCCESS)
}

/// A link to this program under the name `gemini`. Somebody else's `gemini` is never replaced.
fn install(dir: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    let (link, program) = (dir.join("gemini"), std::env::current_exe()?);
    match std::fs::symlink_metadata(&link) {
        Err(_) => {}
        Ok(_) if std::fs::canonicalize(&link).ok() == std::fs::canonicalize(&program).ok() => {
            return Ok(link);
        }
        Ok(_) => {
            let text = format!("{} exists and is something else", link.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
    }
    files::symlink(&program, &link)?;
    Ok(link)
}
