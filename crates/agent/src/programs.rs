//! Programs on `PATH`, looked up in one place for everything that Alhena starts.
//!
//! An entry of `PATH` that is relative, `.` or empty means whatever folder one happens to be in, and a folder that somebody
//! else wrote could bring its own `node` along. Such entries are never used, and what a run starts does not get them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::env::{self, Environment};

/// The directories on `PATH`, without those that depend on where one is.
pub(crate) fn search_path(env: &Environment) -> Vec<PathBuf> {
    entries(env).filter(|entry| is_fixed(entry)).collect()
}

/// Whether it is the same directory for everybody: `/proc/self/cwd` looks absolute, and is the folder one is in.
fn is_fixed(entry: &Path) -> bool {
    entry.is_absolute() && !entry.starts_with("/proc")
}

fn entries(env: &Environment) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(env.filled(env::PATH).unwrap_or_else(|| OsStr::new("")))
}

/// A program on `PATH`.
#[must_use]
pub fn on_path(env: &Environment, command: &str) -> Option<PathBuf> {
    let names = file_names(command);
    let directories = search_path(env).into_iter();
    directories
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
        .find(|path| is_executable(path))
}

/// Takes the entries that depend on the folder out of `PATH`, for what is started with this environment; tells which.
pub fn leave_out_relative(env: &mut Environment) -> Vec<PathBuf> {
    let (kept, left): (Vec<_>, Vec<_>) = entries(env).partition(|entry| is_fixed(entry));
    if let (false, Ok(path)) = (left.is_empty(), std::env::join_paths(kept)) {
        env.set(env::PATH, path);
    }
    left
}

/// The file names a command may have. npm writes `NAME.cmd` on Windows; the file without an extension beside it is for
/// other shells and cannot be started directly (A-39, B-49).
pub(crate) fn file_names(command: &str) -> Vec<OsString> {
    if cfg!(windows) {
        ["cmd", "exe", "bat"].iter().map(|extension| format!("{command}.{extension}").into()).collect()
    } else {
        vec![command.into()]
    }
}

/// Whether a path is a file that may be run.
#[cfg(unix)]
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Whether a path is a file that may be run.
#[cfg(not(unix))]
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_depend_on_the_folder_are_never_used() {
        let mut env = Environment::from([(env::PATH, ".:relative::/usr/bin:./x:/bin:/proc/self/cwd:")]);
        assert_eq!(search_path(&env), ["/usr/bin", "/bin"].map(PathBuf::from));
        let left = [".", "relative", "", "./x", "/proc/self/cwd", ""].map(PathBuf::from);
        assert_eq!(leave_out_relative(&mut env), left);
        assert_eq!(env.get(env::PATH), Some(OsStr::new("/usr/bin:/bin")));
        assert_eq!(leave_out_relative(&mut env), Vec::<PathBuf>::new());
    }
}
