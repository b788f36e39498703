//! What the disk says of the files that tools claim to have written.

use std::path::PathBuf;
use std::time::SystemTime;

use alhena_model::DiskFact;
use alhena_sys::files;

/// The disk as it is, compared with when the run began.
pub(crate) struct Disk {
    dir: PathBuf,
    since: SystemTime,
}

impl Disk {
    /// Relative paths start at `dir`; `since` is what `changes::scan_start` gave.
    pub(crate) fn new(dir: PathBuf, since: SystemTime) -> Self {
        Self { dir, since }
    }

    /// By the change time: a tool can set the modification time, as `cp -p` and `tar` do.
    pub(crate) fn look(&self, path: &str) -> DiskFact {
        let Ok(data) = self.dir.join(path).metadata() else { return DiskFact::Untouched };
        // Where the system keeps no change time, the modification time has to do.
        let changed = files::changed(&data).or_else(|| data.modified().ok());
        if changed.is_none_or(|changed| changed < self.since) {
            DiskFact::Untouched
        } else if data.created().is_ok_and(|created| created >= self.since) {
            DiskFact::Created
        } else {
            DiskFact::Modified
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_claim_is_compared_with_what_happened_since_the_start() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("old"), "1").unwrap();
        std::fs::write(dir.path().join("changed"), "1").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let since = SystemTime::now() - Duration::from_millis(20);
        std::fs::write(dir.path().join("changed"), "2").unwrap();
        std::fs::write(dir.path().join("new"), "1").unwrap();
        let disk = Disk::new(dir.path().to_owned(), since);
        let facts = ["old", "changed", "new", "never"].map(|path| disk.look(path));
        assert_eq!(facts, [DiskFact::Untouched, DiskFact::Modified, DiskFact::Created, DiskFact::Untouched]);
    }
}
