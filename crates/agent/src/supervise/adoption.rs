//! Orphans of runs whose guard and keeper were killed together, for a program that has no children but runs.
//!
//! The `alhena` binary is such a program: it can be a child subreaper itself, so that the kernel hands it what such a run
//! leaves. A library must not do that to its host: the host's own orphans would become the host's children.

use std::collections::HashSet;
use std::io;
use std::process::Child;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use alhena_sys::fork::adopt_orphans;
use alhena_sys::processes::{self, Signal};
use parking_lot::Mutex;

const LONGEST: Duration = Duration::from_secs(5);

/// The guards of the runs that are under way; nothing is kept unless orphans are adopted.
static GUARDS: OnceLock<Mutex<HashSet<u32>>> = OnceLock::new();

/// From now on every child of this process that is not the guard of a run is an orphan of one.
pub fn every_child_is_a_runs() -> io::Result<()> {
    adopt_orphans()?;
    GUARDS.get_or_init(Mutex::default);
    Ok(())
}

/// Starts a guard. Nobody can take it for an orphan before it is known to be one: many runs begin and end at the same time.
pub(super) fn keeping(start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let Some(guards) = GUARDS.get() else { return start() };
    let mut guards = guards.lock();
    let guard = start()?;
    guards.insert(guard.id());
    Ok(guard)
}

pub(super) fn lost(guard: u32) {
    if let Some(guards) = GUARDS.get() {
        guards.lock().remove(&guard);
    }
}

/// Ends what has become ours, and collects it. Does nothing where no orphans are adopted.
pub(super) fn end_orphans() {
    let Some(guards) = GUARDS.get() else { return };
    let deadline = Instant::now() + LONGEST;
    loop {
        let held = guards.lock();
        let orphans = processes::descendants_without(std::process::id(), &held);
        if orphans.is_empty() || Instant::now() >= deadline {
            return;
        }
        processes::signal_all(&orphans, Signal::KILL);
        drop(held);
        for pid in orphans {
            let _not_yet_or_not_ours = processes::collect(pid);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
