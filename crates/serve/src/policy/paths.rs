//! Paths that a request names: made real, and kept below the root.

use std::path::{Component, Path, PathBuf};

use alhena_model::options::Setting;
use alhena_model::{PathUse, Policy};

use crate::problem::Problem;

/// Returns the real path of one that a request names.
pub fn resolve(policy: &Policy, setting: Setting, given: &Path, used: PathUse) -> Result<PathBuf, Problem> {
    let (name, path) = (setting.name(), policy.base.join(given));
    let outside = || {
        Problem::forbidden(format!("{name}: {given:?} is not below the server's root"))
            .hint("Runs may use folders and files below the server's root only.")
    };
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(_) if used == PathUse::Write && path.symlink_metadata().is_err() => {
            let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
            let made = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
            made.ok_or_else(|| Problem::input(format!("{name}: {given:?} cannot be made")))?
        }
        // Whether something is there that may not be used is nobody's business.
        Err(_) if policy.root.as_ref().is_some_and(|root| !is_plainly_below(&path, root)) => {
            return Err(outside());
        }
        Err(error) => return Err(Problem::input(format!("{name}: {given:?}: {error}"))),
    };
    if policy.root.as_ref().is_some_and(|root| !real.starts_with(root)) {
        return Err(outside());
    }
    let is_right = match used {
        PathUse::Directory => real.is_dir(),
        PathUse::Read => real.is_file(),
        PathUse::Write => !real.exists() || real.is_file(),
    };
    match (is_right, used) {
        (true, _) => Ok(real),
        (false, PathUse::Directory) => Err(Problem::input(format!("{name}: {given:?} is not a directory"))),
        (false, _) => Err(Problem::input(format!("{name}: {given:?} is not a file"))),
    }
}

fn is_plainly_below(path: &Path, root: &Path) -> bool {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    !climbs && path.starts_with(root)
}
