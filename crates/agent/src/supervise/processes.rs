//! Which processes belong to a run: those that descend from its keeper, and those that carry its mark.
//!
//! Descent finds what cleared its environment or moved to another session; the mark finds what escaped when there
//! was no subreaper. Both come from `/proc`; other systems have neither, and say so.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that carries the mark of a run.
pub use crate::env::ALHENA_RUN as MARK;

/// Whether this system can name the processes of a run.
pub const COMPLETE: bool = cfg!(target_os = "linux");

/// One row of `/proc`.
struct Row {
    pid: i32,
    parent: i32,
    dead: bool,
}

fn table() -> Vec<Row> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            // The name stands in parentheses and may hold any byte, a parenthesis too.
            let after = stat.iter().rposition(|byte| *byte == b')')?;
            let rest = String::from_utf8_lossy(stat.get(after + 1..)?).into_owned();
            let mut fields = rest.split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            Some(Row { pid, parent, dead: matches!(state, "Z" | "X" | "x") })
        })
        .collect()
}

/// All living processes below `root`, without it.
pub fn descendants(root: i32) -> Vec<i32> {
    descendants_without(root, &HashSet::new())
}

/// The same without these and what is below them.
pub fn descendants_without(root: i32, spared: &HashSet<i32>) -> Vec<i32> {
    let table = table();
    let mut children: HashMap<i32, Vec<&Row>> = HashMap::new();
    for row in &table {
        children.entry(row.parent).or_default().push(row);
    }
    let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for row in children.get(&parent).into_iter().flatten() {
            if !spared.contains(&row.pid) && seen.insert(row.pid) {
                next.push(row.pid);
                if !row.dead {
                    found.push(row.pid);
                }
            }
        }
    }
    found
}

/// All living processes whose environment carries the mark of this run, without the caller.
pub fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let this = rustix::process::getpid().as_raw_nonzero().get();
    table()
        .into_iter()
        .filter(|row| row.pid != this && !row.dead)
        .filter(|row| {
            let environ = fs::read(format!("/proc/{}/environ", row.pid)).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        })
        .map(|row| row.pid)
        .collect()
}

/// Marks of runs that still have processes, with those: leftovers, when nobody holds the run.
pub fn marks() -> HashMap<String, Vec<i32>> {
    let prefix = format!("{MARK}=");
    let mut runs: HashMap<String, Vec<i32>> = HashMap::new();
    for row in table().into_iter().filter(|row| !row.dead) {
        let environ = fs::read(format!("/proc/{}/environ", row.pid)).unwrap_or_default();
        let mark = environ
            .split(|byte| *byte == 0)
            .find_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix(&prefix).map(str::to_owned));
        if let Some(mark) = mark {
            runs.entry(mark).or_default().push(row.pid);
        }
    }
    runs
}

/// What a process calls itself, for people.
pub fn name(pid: i32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    name.trim_end().chars().filter(|character| !character.is_control()).collect()
}

/// Sends a signal to each; those that are gone do not matter.
pub fn signal_all(pids: &[i32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _gone = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_found_by_descent_and_by_its_mark() {
        let mark = format!("test-{}", std::process::id());
        let mut child =
            Command::new("sleep").arg("30").env(MARK, &mark).stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id() as i32;
        let this = std::process::id() as i32;
        assert!(descendants(this).contains(&pid));
        assert_eq!(marked(&mark), [pid]);
        assert_eq!(marks().get(&mark), Some(&vec![pid]));
        signal_all(&[pid], Signal::KILL);
        child.wait().unwrap();
        assert!(marked(&mark).is_empty());
        assert!(!descendants(this).contains(&pid));
    }
}
