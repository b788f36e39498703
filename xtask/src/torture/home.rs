//! What a trial did to the user's home: nothing, except that sessions were added and the project was registered.

use std::io;
use std::path::Path;

use alhena_testbed::snapshot::{Change, Entry};
use alhena_testbed::tools::files_under;
use alhena_testbed::{Snapshot, diff};
use serde_json::Value;

use super::agent::{mark, prompt};
use super::place::{OLD_PROMPT, Place};
use super::plan::{Home, Plan};
use super::trial::EndedRun;

const OWN: &[&str] = &[".local", ".cache"];

pub fn changes(plan: &Plan, place: &Place, before: &Snapshot) -> io::Result<Vec<String>> {
    let after = Snapshot::of(&place.real_home)?.without(OWN);
    let unexpected = diff(before, &after).into_iter().filter(|change| !is_expected(plan, change));
    Ok(unexpected.map(|change| format!("the user's home: {}", shown(&change))).collect())
}

fn shown(change: &Change) -> String {
    let mut text = format!("{change:?}");
    if text.len() > 600 {
        text.truncate(text.floor_char_boundary(600));
        text += "...";
    }
    text
}

fn is_expected(plan: &Plan, change: &Change) -> bool {
    match change {
        Change::Added(path) => is_new(path) || (plan.home == Home::Workspace && !path.starts_with(".gemini")),
        Change::Removed(_) => false,
        Change::Changed { path, before, after } if path == Path::new(".gemini/projects.json") => {
            only_more(before, after)
        }
        // A session that was resumed has more in it than before.
        Change::Changed { path, after, .. } => {
            plan.resumes && is_session(path) && still_holds(after, OLD_PROMPT)
        }
    }
}

/// What a run adds to the store: its project's directory, and in it sessions.
fn is_new(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [".gemini"] | [".gemini", "projects.json" | "tmp" | "history"] => true,
        [".gemini", "tmp" | "history", _slug] | [".gemini", "tmp" | "history", _slug, ".project_root"] => {
            true
        }
        [".gemini", "tmp", _slug, "chats"] => true,
        [".gemini", "tmp", _slug, "chats", name] => name.starts_with("session-"),
        // Results of tools that were too large for the context, and their directories.
        [".gemini", "tmp", _slug, "tool-outputs", ..] => true,
        _ => false,
    }
}

fn is_session(path: &Path) -> bool {
    path.starts_with(".gemini/tmp/work/chats") && is_new(path)
}

fn still_holds(entry: &Entry, text: &str) -> bool {
    matches!(entry, Entry::File { bytes: Some(bytes), .. } if String::from_utf8_lossy(bytes).contains(text))
}

/// Whether all projects of the registry are still there, under their names.
fn only_more(before: &Entry, after: &Entry) -> bool {
    let read = |entry: &Entry| match entry {
        Entry::File { bytes: Some(bytes), .. } => serde_json::from_slice::<Value>(bytes).ok(),
        _ => None,
    };
    let projects = |entry: &Entry| read(entry)?.get("projects")?.as_object().cloned();
    match (projects(before), projects(after)) {
        (Some(before), Some(after)) => before.iter().all(|(path, name)| after.get(path) == Some(name)),
        _ => false,
    }
}

/// Sessions that were lost: an agent that has written one, and a real CLI whose tool was called, has one in the user's store with
/// the prompt in it.
pub fn sessions(plan: &Plan, place: &Place, runs: &[EndedRun]) -> Vec<String> {
    // There is no store that could be written to, or the agent writes to it by itself.
    if plan.is_short() || plan.home == Home::Workspace {
        return Vec::new();
    }
    let stored: Vec<String> = files_under(&place.real_home.join(".gemini/tmp"))
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "chats"))
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    let mut findings = Vec::new();
    for run in runs {
        let prompt = prompt(plan, run.run);
        let begun = mark(place, run.run, if plan.real { "tool" } else { "session" }).exists();
        let promised =
            run.stderr.contains("--resume") || String::from_utf8_lossy(&run.stdout).contains("--resume");
        let kept = stored.iter().any(|text| text.contains(&prompt));
        if (begun || promised) && !kept {
            let how = if promised { ", although `--resume` was promised" } else { "" };
            findings.push(format!("run {}: its session is lost{how}", run.run));
        }
    }
    findings
}
