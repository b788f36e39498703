//! The checks after a trial: processes, directories, the user's home, marks of traps, secrets.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_testbed::snapshot::{Change, Entry};
use alhena_testbed::tools::files_under;
use alhena_testbed::{Deadline, Snapshot, diff, run_bounded};
use serde_json::Value;

use super::agent::{mark, prompt};
use super::members::{self, members};
use super::place::{BALLAST, OLD_PROMPT, Place};
use super::plan::{Home, Plan};
use super::secrets as told;
use super::traps::SPRUNG;
use super::trial::{EndedRun, command};

/// How long processes may take to go after Alhena has ended: only one that was killed has any left then.
const PATIENCE: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(60);

pub fn processes(place: &Place) -> Vec<String> {
    let mut left = Vec::new();
    Deadline::after(PATIENCE).wait_until(|| {
        left = members(&place.root);
        left.is_empty()
    });
    let findings = left.iter().map(|member| {
        format!("left running: {} {:?}, found by its {}", member.pid, member.command, member.by)
    });
    let findings = findings.collect();
    members::kill_all(&place.root);
    findings
}

/// A later run, which finishes what killed ones left.
pub fn next_run(plan: &Plan, place: &Place) -> Vec<String> {
    let mut plan = plan.clone();
    plan.limits = Default::default();
    let mut command = command(&plan, place, &["run", "--trust", "--as", "outcome", "--gemini"]);
    command.arg(&place.stand_in).arg("the next run");
    let full = plan.small_disk.is_some() || matches!(plan.home, Home::ReadOnly | Home::Unset);
    match run_bounded(&mut command, LIMIT) {
        Ok(done) if done.succeeded() || full => Vec::new(),
        Ok(done) => vec![format!("the next run failed ({}): {}", done.ending(), done.stderr_text().trim())],
        Err(error) => vec![format!("the next run: {error}")],
    }
}

/// Nothing of the runs lies in `TMPDIR` or in Alhena's own directories.
pub fn leftovers(plan: &Plan, place: &Place) -> Vec<String> {
    // The CLI's own: reports of its errors, Node's cache.
    let of_cli = |name: &str| plan.real && !name.starts_with("alhena");
    let mut findings = Vec::new();
    for entry in names(&place.tmp) {
        // Without any home there is no place to remember what a killed run has left.
        if entry != BALLAST && !of_cli(&entry) && plan.home != Home::Unset {
            let inside = names(&place.tmp.join(&entry));
            findings.push(format!("left in TMPDIR: {entry} with {inside:?}"));
        }
    }
    for state in state_directories(plan, place) {
        for directory in [state.join("runs"), state.join("homes")] {
            // The CLI's tools, which all runs share.
            let left = names(&directory).into_iter().filter(|name| name != "bin");
            findings.extend(left.map(|name| format!("left in {}: {name}", directory.display())));
        }
    }
    findings
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn state_directories(plan: &Plan, place: &Place) -> Vec<PathBuf> {
    match plan.alhena_home {
        true => vec![place.alhena_home.join("state")],
        false => vec![place.real_home.join(".local/state/alhena")],
    }
}

/// Commands that only look, in a folder of traps.
pub fn questions(plan: &Plan, place: &Place) -> Vec<String> {
    let mut findings = Vec::new();
    for words in [&["detect"][..], &["capabilities"], &["doctor"], &["sessions", "list"]] {
        let ended = run_bounded(&mut command(plan, place, words), LIMIT);
        if !ended.is_ok_and(|done| !done.timed_out) {
            findings.push(format!("`alhena {}` did not end", words.join(" ")));
        }
        findings.extend(
            traps(plan, place).into_iter().map(|what| format!("{what} by `alhena {}`", words.join(" "))),
        );
    }
    findings
}

pub fn traps(plan: &Plan, place: &Place) -> Vec<String> {
    let sprung = place.marks.join(SPRUNG);
    let found = if plan.traps { names(&sprung) } else { Vec::new() };
    found
        .into_iter()
        .map(|name| {
            let _once = std::fs::remove_file(sprung.join(&name));
            format!("a trap was sprung: {name}")
        })
        .collect()
}

pub fn secrets(plan: &Plan, place: &Place) -> Vec<String> {
    if !plan.secrets {
        return Vec::new();
    }
    let directories = [&place.record, &place.tmp, &place.real_home, &place.alhena_home].map(PathBuf::clone);
    // The CLI's sessions are what was said, in the user's own store.
    let is_session = |path: &Path| {
        path.components().any(|part| part.as_os_str() == "chats") && path.starts_with(&place.real_home)
    };
    let users = [place.work.join(".env")];
    told::found_in(&directories, |path| users.iter().any(|own| own == path) || is_session(path))
}

const OWN: &[&str] = &[".local", ".cache"];

/// Returns what a trial did to the user's home beside adding sessions and registering the project.
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
    // Either no store can be written, or the agent writes to it directly.
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
