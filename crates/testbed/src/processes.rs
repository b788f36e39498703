//! Looking at processes from outside, over `/proc`, for tests that nothing of a run is left.
//!
//! Gemini CLI 0.61.0 moves every shell command to a session of its own, so neither the process group nor the session
//! finds it: only ancestry and a mark in the environment do.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// Whether the process exists and is not a zombie.
pub fn alive(pid: u32) -> bool {
    status_field(pid, "State:").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The parent of a process.
pub fn parent(pid: u32) -> Option<u32> {
    status_field(pid, "PPid:")?.parse().ok()
}

/// The program that a process runs, also when its file has been replaced since.
pub fn executable(pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(PathBuf::from(path.to_string_lossy().trim_end_matches(" (deleted)")))
}

/// The command line of a process, for messages.
pub fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}

/// Every living process that was started with this entry in its environment (`NAME=value`, or `NAME=` for any value).
pub fn processes_with_env(mark: &str) -> Vec<u32> {
    let has_mark = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| match mark.ends_with('=') {
            true => entry.starts_with(mark.as_bytes()),
            false => entry == mark.as_bytes(),
        })
    };
    all().into_iter().filter(|pid| has_mark(pid) && alive(*pid)).collect()
}

/// Every living process that descends from this one, itself left out.
pub fn descendants(ancestor: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![ancestor];
    let mut looked_at = 0;
    while let Some(next) = found.get(looked_at).copied() {
        looked_at += 1;
        found.extend(parents.iter().filter(|(_, parent)| *parent == next).map(|(pid, _)| *pid));
    }
    found.into_iter().skip(1).filter(|pid| alive(*pid)).collect()
}

/// Sends a signal; a process that is gone already is fine.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Kills a process and all its descendants, whatever their group or session.
pub fn kill_tree(root: u32) {
    // Stopped first, so that it starts no more while we look.
    signal(root, Signal::STOP);
    for _ in 0..20 {
        let found = descendants(root);
        if found.is_empty() {
            break;
        }
        found.into_iter().for_each(|pid| signal(pid, Signal::KILL));
    }
    signal(root, Signal::KILL);
}

/// Every process.
pub fn all() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn status_field(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}
