//! What the disk says of the files that tools claim to have written.

use std::path::PathBuf;
use std::time::SystemTime;

use alhena_model::{Disk, DiskFact};

use crate::changes;

/// The disk as it is, compared with when the run began.
pub(crate) struct RealDisk {
    dir: PathBuf,
    since: SystemTime,
}

impl RealDisk {
    /// Relative paths start at `dir`.
    pub(crate) fn new(dir: PathBuf, since: SystemTime) -> Self {
        Self { dir, since }
    }
}

impl Disk for RealDisk {
    fn look(&self, path: &str) -> DiskFact {
        let state = changes::verify(&self.dir.join(path));
        match (state.changed_since(self.since), state.created_since(self.since)) {
            (true, true) => DiskFact::Created,
            (true, false) => DiskFact::Modified,
            (false, _) => DiskFact::Untouched,
        }
    }
}
