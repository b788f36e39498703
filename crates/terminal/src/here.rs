//! An agent in the terminal that this process has: for those who own their panes themselves, as CAO does.
//!
//! The same home, guard and ending as in a terminal of Alhena's own; only nobody else can find it.

use std::path::{Path, PathBuf};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_sys::files;

use crate::borrowed::BorrowedFiles;
use crate::equip::Equipped;
use crate::error::TerminalError;
use crate::launch::{Launch, find, new_id};
use crate::orders::Orders;
use crate::pane;
use crate::store::{self, Record};

/// No tmux server can have this name.
pub(crate) const DIRECTORY: &str = ".here";

/// Runs an agent right here until it ends, and gives its exit code. `id` is what others call the terminal; `say` tells
/// people what they should know.
pub fn here(
    launch: Launch,
    id: Option<String>,
    environment: &Environment,
    say: &dyn Fn(&str),
) -> Result<u8, TerminalError> {
    let dirs = Dirs::of(environment).ok_or_else(|| {
        TerminalError::usage("there is no home directory to work with", "Set HOME, or ALHENA_HOME.")
    })?;
    let records = dirs.state.join("terminals").join(DIRECTORY);
    files::create_private_dir(&records).map_err(|error| TerminalError::io(records.display(), &error))?;
    let borrowed = BorrowedFiles::new(&dirs.state);
    for warning in borrowed.recover(&|terminal| store::is_alive(&dirs.state, terminal)) {
        say(&warning);
    }
    forget_the_dead(&records);

    // The number of this process tells two apart that others call the same.
    let id = id.map_or_else(new_id, Ok)?;
    let own = format!("{id}-{}", std::process::id());
    let mut equipped = Equipped::of(launch, &id, environment)?;
    let dir = equipped.launch.options.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = std::fs::canonicalize(&dir).map_err(|error| TerminalError::io(dir.display(), &error))?;
    let gemini = find(&equipped, &dir)?;
    equipped.lend(&own, &borrowed, environment)?;
    let path = records.join(format!("{own}.json"));
    let mut record = Record::of(&equipped.launch, &own, &id, &dir, &gemini);
    record.warnings.clone_from(&equipped.notices);
    Orders::new(&equipped, &equipped.launch.prompt, &dir, &gemini.path)
        .leave_at(&path.with_extension("launch"))?;
    store::write(&path, &record)?;
    let _later = borrowed.confirm(&own);
    let code = pane::serve(&path, say);
    forget(&path);
    Ok(code)
}

fn forget(record: &Path) {
    for extension in ["launch", "turns", "mode", "lock", "json"] {
        let _gone = std::fs::remove_file(record.with_extension(extension));
    }
}

/// Records of those that were killed.
fn forget_the_dead(records: &Path) {
    for entry in std::fs::read_dir(records).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_record = path.extension().is_some_and(|extension| extension == "json");
        if is_record && store::read(&path).is_ok_and(|record| record.is_none_or(|record| !record.is_alive()))
        {
            forget(&path);
        }
    }
}
