//! Programs on the `PATH` of an environment.

use std::ffi::OsStr;
use std::path::PathBuf;

use alhena_sys::programs;

use crate::env::{self, Environment};

/// The directories on `PATH`, without those that depend on where one is.
pub(crate) fn search_path(env: &Environment) -> Vec<PathBuf> {
    programs::search_path(path(env))
}

fn path(env: &Environment) -> &OsStr {
    env.filled(env::PATH).unwrap_or_else(|| OsStr::new(""))
}

/// A program on `PATH`.
#[must_use]
pub fn on_path(env: &Environment, command: &str) -> Option<PathBuf> {
    programs::on_path(path(env), command)
}

/// Takes the entries that depend on the folder out of `PATH`, for what is started with this environment; tells which.
pub fn leave_out_relative(env: &mut Environment) -> Vec<PathBuf> {
    let (left, kept) = programs::relative_entries(path(env));
    if let (false, Some(path)) = (left.is_empty(), kept) {
        env.set(env::PATH, path);
    }
    left
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
