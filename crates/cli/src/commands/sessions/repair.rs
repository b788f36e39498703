//! `alhena sessions repair`.

use std::process::ExitCode;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_session::repair::{Caution, Plan, Step, apply, plan};
use serde::Serialize;

use super::{Where, find, store};
use crate::command_error::{CommandError, Done};
use crate::output::{Stream, print, print_json, say};
use crate::style::{Colours, Paint, one_line};

/// Mend what Gemini CLI did to its own sessions.
///
/// It says what it would do; --apply does it. Messages that the CLI dropped come back, stubs that make it delete a session are
/// moved away, files that it cannot load any more get a header. A copy of every file is kept. A session that may be in use is
/// left alone. Exits with 1 when something was to be done and not done.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions repair --all
  alhena sessions repair 9c9a14e1 --apply")]
pub struct Args {
    /// Only the session with this id, or its beginning.
    #[arg(value_name = "ID")]
    which: Option<String>,
    #[command(flatten)]
    place: Where,
    /// Do it.
    #[arg(long)]
    apply: bool,
    /// Do it also where nobody can tell whether a Gemini CLI uses the session.
    #[arg(long, requires = "apply")]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    session: String,
    state: alhena_session::SessionState,
    steps: Vec<JsonStep>,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backups: Vec<String>,
}

#[derive(Serialize)]
struct JsonStep {
    what: &'static str,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
}

pub fn execute(args: &Args) -> Done {
    let plans = plans(args)?;
    let dirs = Dirs::of(&Environment::of_process())
        .ok_or_else(|| CommandError::usage("there is no place for copies", "Set HOME or ALHENA_HOME."))?;
    let caution = if args.force { Caution::WhereUnknown } else { Caution::Full };
    let reports: Vec<Report> = plans
        .iter()
        .map(|plan| {
            let result = args.apply.then(|| apply(plan, &dirs.data.join("session-backups"), caution));
            report(plan, result.map(|result| result.map_err(|error| error.to_string())))
        })
        .collect();
    let undone = reports.iter().any(|report| !report.done);
    let printed = if args.json {
        print_json(&reports)
    } else if reports.is_empty() {
        say("Nothing to repair.");
        ExitCode::SUCCESS
    } else {
        show(&reports, args.apply)
    };
    Ok(if undone { ExitCode::FAILURE } else { printed })
}

fn plans(args: &Args) -> Result<Vec<Plan>, CommandError> {
    let store = store()?;
    let sessions = match &args.which {
        Some(which) => vec![find(&store, &args.place, which)?],
        None => store.list(&args.place.scope(&store)?).map_err(CommandError::of_store)?,
    };
    Ok(sessions.iter().filter_map(plan).collect())
}

fn report(plan: &Plan, result: Option<Result<Vec<std::path::PathBuf>, String>>) -> Report {
    let steps = plan.steps.iter().map(|step| JsonStep {
        what: match step {
            Step::Restore { .. } => "restore",
            Step::AddHeader { .. } => "add_header",
            Step::MoveAway { .. } => "move_away",
        },
        file: step.path().display().to_string(),
        messages: match step {
            Step::Restore { messages, .. } => Some(*messages),
            Step::AddHeader { .. } | Step::MoveAway { .. } => None,
        },
    });
    let (done, why_not, backups) = match result {
        None => (false, None, Vec::new()),
        Some(Ok(backups)) => (true, None, backups),
        Some(Err(error)) => (false, Some(error), Vec::new()),
    };
    Report {
        session: plan.session.clone(),
        state: plan.state,
        steps: steps.collect(),
        done,
        why_not,
        backups: backups.iter().map(|path| path.display().to_string()).collect(),
    }
}

fn show(reports: &[Report], applied: bool) -> ExitCode {
    let colours = Colours::of(Stream::Out);
    let mut lines = Vec::new();
    for report in reports {
        lines.push(colours.paint(Paint::Cyan, one_line(&report.session, 80)).to_string());
        for step in &report.steps {
            let file = one_line(&step.file, 300);
            let (said, messages) = (if report.done { "" } else { "would " }, step.messages.unwrap_or(0));
            lines.push(match step.what {
                "restore" => {
                    format!("  {said}bring back {messages} messages that Gemini CLI dropped in {file}")
                }
                "add_header" => format!("  {said}give a header to {file}"),
                _ => format!("  {said}move away the stub {file}"),
            });
        }
        for backup in &report.backups {
            let kept = colours.paint(Paint::Green, "copy kept:");
            lines.push(format!("  {kept} {}", one_line(backup, 300)));
        }
        if let Some(why) = &report.why_not {
            lines.push(format!("  {} {why}", colours.paint(Paint::Yellow, "left alone:")));
        }
    }
    let printed = print(&lines.join("\n"));
    if !applied {
        say("Nothing was changed; --apply does it.");
    }
    printed
}
