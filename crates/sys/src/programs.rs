//! Programs on `PATH`, looked up in one place for everything that is started.
//!
//! An entry of `PATH` that is relative, `.` or empty means whatever folder one happens to be in, and a folder that somebody
//! else wrote could bring its own `node` along. Such entries are never used.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The directories on a `PATH`, without those that depend on where one is.
#[must_use]
pub fn search_path(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|entry| is_fixed(entry)).collect()
}

/// The entries that depend on where one is, and the rest as a `PATH`; none where that cannot be written as one.
#[must_use]
pub fn relative_entries(path: &OsStr) -> (Vec<PathBuf>, Option<OsString>) {
    let (kept, left): (Vec<_>, Vec<_>) = std::env::split_paths(path).partition(|entry| is_fixed(entry));
    (left, std::env::join_paths(kept).ok())
}

/// Whether it is the same directory for everybody: `/proc/self/cwd` looks absolute, and is the folder one is in.
fn is_fixed(entry: &Path) -> bool {
    entry.is_absolute() && !entry.starts_with("/proc")
}

/// A program on a `PATH`.
#[must_use]
pub fn on_path(path: &OsStr, command: &str) -> Option<PathBuf> {
    let names = file_names(command);
    let directories = search_path(path).into_iter();
    directories
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)))
        .find(|path| is_executable(path))
}

/// The file names a command may have. npm writes `NAME.cmd` on Windows; the file without an extension beside it is for
/// other shells and cannot be started directly (A-39, B-49).
#[must_use]
pub fn file_names(command: &str) -> Vec<OsString> {
    if cfg!(windows) {
        ["cmd", "exe", "bat"].iter().map(|extension| format!("{command}.{extension}").into()).collect()
    } else {
        vec![command.into()]
    }
}

/// Whether a path is a file that may be run.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_is_the_first_file_on_the_path_that_may_be_run() {
        let root = tempfile::tempdir().unwrap();
        let [folder, text, program] = ["a", "b", "c"].map(|name| root.path().join(name));
        fs::create_dir_all(folder.join("tool")).unwrap();
        for (dir, mode) in [(&text, 0o644), (&program, 0o755)] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("tool"), "").unwrap();
            fs::set_permissions(dir.join("tool"), Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&folder, &text, &program]).unwrap();
        assert_eq!(on_path(&path, "tool"), Some(program.join("tool")));
        assert_eq!(on_path(&path, "other"), None);
        assert_eq!(on_path(OsStr::new(""), "tool"), None);
    }
}
