//! The private directory in which tests keep what they fetched: shared by all tests, all processes and all later runs.
//!
//! An entry is made in a temporary directory beside its place and renamed when it is complete, under a lock: an entry
//! that exists is whole, whoever was killed in between.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use alhena_sys::locks;

/// Where the cache is, instead of `.alhena/cache` in the workspace.
pub const CACHE_VARIABLE: &str = "ALHENA_TEST_CACHE";

pub fn workspace() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

pub fn root() -> PathBuf {
    std::env::var_os(CACHE_VARIABLE).map_or_else(|| workspace().join(".alhena/cache"), PathBuf::from)
}

/// A lock between processes, held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on this file, which is made if need be.
    pub fn take(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let file = locks::open(path)?;
        locks::lock(&file)?;
        Ok(Self { _file: file })
    }
}

/// The directory `name` (may contain `/`) of the cache, made by `make` if it is not there. `make` gets an empty
/// directory to fill; on an error nothing is kept.
pub fn entry(name: &str, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    entry_in(&root(), name, make)
}

/// The same in a given cache.
pub fn entry_in(root: &Path, name: &str, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let place = root.join(name);
    if place.is_dir() {
        return Ok(place);
    }
    let _lock = Lock::take(&root.join("locks").join(name.replace('/', "-")))?;
    if place.is_dir() {
        return Ok(place);
    }
    let parent = place.parent().unwrap_or(root);
    std::fs::create_dir_all(parent)?;
    let temporary = tempfile::Builder::new().prefix(".new-").tempdir_in(parent)?;
    make(temporary.path())?;
    // Kept from here on: after the rename there is nothing left to clean up under the temporary name.
    std::fs::rename(temporary.keep(), &place)?;
    Ok(place)
}
