//! Ending everything that is left of a run.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use alhena_sys::processes::{self, Signal};

use super::mark::marked;

/// How the sweeper lives, and so what it can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A process of its own, and a child subreaper: orphans become its children.
    Process,
    /// A thread of the host: orphans are known only by their mark.
    Thread,
}

/// What ends by itself, such as a server whose client is gone, needs no more than this.
const SETTLING: Duration = Duration::from_millis(60);
const PATIENCE: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_secs(10);
/// How many are named; there can be thousands.
const NAMED: usize = 5;

/// What a sweep found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many processes had to be ended.
    pub ended: usize,
    /// The names of the first of them.
    pub names: Vec<String>,
    /// How many could not be ended: they are in the kernel's hands.
    pub left: usize,
}

/// Ends everything that is left of the run with this mark, politely first. In a process, everything that descends from it
/// counts; it has to be a child subreaper.
pub fn sweep(mark: &str, life: Life) -> Swept {
    let started = Instant::now();
    let mut ended = HashSet::new();
    let mut names = Vec::new();
    loop {
        let children = collect_orphans(life);
        let left = remaining(mark, children);
        let over = left.is_empty() && !children;
        if over || started.elapsed() > LONGEST {
            return Swept { ended: ended.len(), names, left: left.len() };
        }
        if started.elapsed() > SETTLING {
            let fresh: Vec<u32> = left.iter().copied().filter(|pid| ended.insert(*pid)).collect();
            let room = NAMED.saturating_sub(names.len());
            names.extend(fresh.iter().take(room).map(|pid| processes::name(*pid)));
            match started.elapsed() < SETTLING + PATIENCE {
                true => processes::signal_all(&fresh, Signal::TERM),
                false => processes::signal_all(&left, Signal::KILL),
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn remaining(mark: &str, children: bool) -> Vec<u32> {
    let mut left = marked(mark);
    if children {
        left.extend(processes::descendants(std::process::id()));
        left.sort_unstable();
        left.dedup();
    }
    left
}

/// Collects orphans that have ended, and tells whether there are others.
///
/// A listing of processes can miss one that is being forked. The kernel cannot: whoever descends from a subreaper
/// has an ancestor among its children, so without children there is nobody.
fn collect_orphans(life: Life) -> bool {
    // A host's other children are not ours to collect.
    if life == Life::Thread {
        return false;
    }
    loop {
        match processes::collect_any() {
            Ok(Some(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
