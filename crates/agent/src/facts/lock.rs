//! Locks that Gemini CLI leaves in its home.
//!
//! 0.61.0 registers a project under a lock, which is a directory. Killed at that moment, it leaves the lock behind, and a
//! start within the next ten seconds waits for it to grow old: 13 s were seen. From then on the lock costs nothing, because
//! the next start takes it over.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

/// How old a lock has to be before the CLI takes it over.
const STALE: Duration = Duration::from_secs(10);

/// A lock in the home of Gemini CLI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// Its path.
    pub path: PathBuf,
    /// How long ago it was taken or refreshed; zero when the clock says that this is still to come.
    pub age: Duration,
    /// Whether the CLI waits for it.
    pub state: LockState,
}

/// What a lock means for the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockState {
    /// Somebody holds it, or left it only just now: a start waits.
    Held,
    /// Left behind: a start takes it over.
    Stale,
}

/// The locks in a home (the directory that has `.gemini`).
#[must_use]
pub fn locks(home: &Path) -> Vec<Lock> {
    let names = ["projects.json.lock", "trustedFolders.json.lock"];
    names.iter().filter_map(|name| lock(home.join(".gemini").join(name), SystemTime::now())).collect()
}

fn lock(path: PathBuf, now: SystemTime) -> Option<Lock> {
    let taken = path.symlink_metadata().ok()?.modified().ok()?;
    let age = now.duration_since(taken).unwrap_or(Duration::ZERO);
    let state = if age > STALE { LockState::Stale } else { LockState::Held };
    Some(Lock { path, age, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_held_for_ten_seconds_and_stale_after_that() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(locks(home.path()), []);
        let path = home.path().join(".gemini/projects.json.lock");
        std::fs::create_dir_all(&path).unwrap();
        let taken = path.metadata().unwrap().modified().unwrap();
        for (seconds, state) in [(3, LockState::Held), (10, LockState::Held), (11, LockState::Stale)] {
            let age = Duration::from_secs(seconds);
            assert_eq!(lock(path.clone(), taken + age), Some(Lock { path: path.clone(), age, state }));
        }
        let early = lock(path.clone(), taken - Duration::from_secs(5));
        assert_eq!(early, Some(Lock { path: path.clone(), age: Duration::ZERO, state: LockState::Held }));
        assert_eq!(locks(home.path()).into_iter().map(|lock| lock.path).collect::<Vec<_>>(), [path]);
    }
}
