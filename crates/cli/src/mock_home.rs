//! A home for Gemini CLI that lives as long as the server that it talks to.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::{self, Environment};
use alhena_sys::{files, locks};
use tempfile::TempDir;

use crate::offline::furnish;

/// Whoever holds it is alive.
const LOCK: &str = "lock";

/// The home; it is removed when this is dropped, or by the next server when this one was killed.
pub struct MockHome {
    dir: TempDir,
    _alive: Option<File>,
}

impl MockHome {
    pub fn new(environment: &Environment) -> io::Result<Self> {
        let dirs = Dirs::of(environment).ok_or_else(|| io::Error::other("there is no home directory"))?;
        let place = dirs.state.join("mock");
        files::create_private_dir(&place)?;
        // A home that is just being made looks like one that was left.
        let turn = locks::open(&place.join(LOCK))?;
        locks::lock(&turn)?;
        remove_left(&place);
        let dir = tempfile::Builder::new().prefix("home-").tempdir_in(&place)?;
        let alive = locks::take(&dir.path().join(LOCK))?;
        furnish(dir.path())?;
        trust_as_before(dir.path(), environment)?;
        Ok(Self { dir, _alive: alive })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the homes of servers that were killed.
fn remove_left(place: &Path) {
    for name in files::names_in(place).unwrap_or_default() {
        let home = place.join(name);
        let left = files::is_plain_dir(&home) && !matches!(locks::take_existing(&home.join(LOCK)), Ok(None));
        if left {
            // Whatever still uses it makes it the next one's business.
            let _in_use = std::fs::remove_dir_all(home);
        }
    }
}

/// What the user trusts stays trusted.
fn trust_as_before(home: &Path, environment: &Environment) -> io::Result<()> {
    let named = environment.filled(env::GEMINI_CLI_TRUSTED_FOLDERS_PATH).map(PathBuf::from);
    let usual = || environment.gemini_home().map(|home| home.join(".gemini/trustedFolders.json"));
    let Some(theirs) = named.or_else(usual) else { return Ok(()) };
    match files::read_if_there(&theirs) {
        Ok(Some(folders)) => files::write_private(&home.join(".gemini/trustedFolders.json"), &folders),
        _ => Ok(()),
    }
}
