//! What is looked at after a trial: processes, directories, marks of traps, secrets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_testbed::{Deadline, run_bounded};

use super::members::members;
use super::place::{BALLAST, Place};
use super::plan::{Home, Plan};
use super::traps::SPRUNG;
use super::trial::command;
use super::{members, secrets as told};

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
